"""Writes fixes: Changes of a syntax tree become new source code, through LibCST."""
