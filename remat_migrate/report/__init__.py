"""What a run found, in one module per output format."""
