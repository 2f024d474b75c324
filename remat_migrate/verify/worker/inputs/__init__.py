"""Inputs for a unit: declared by the user, or made from its signature."""
