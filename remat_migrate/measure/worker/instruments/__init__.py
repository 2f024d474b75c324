"""Measure jaxprs and compiled programs."""
