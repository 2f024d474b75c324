"""Evaluate units and compare their results."""
