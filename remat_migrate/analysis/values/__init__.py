"""What an expression may denote."""
