"""Copies of the project in which code can run."""
