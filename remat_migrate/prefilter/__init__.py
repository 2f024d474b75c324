"""What the bytes of a file say before it is parsed."""
