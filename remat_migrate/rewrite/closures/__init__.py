"""Closing over values that must be concrete."""
