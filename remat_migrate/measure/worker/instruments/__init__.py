"""Measurements of a jaxpr or a compiled program."""
