"""Scopes, bindings and the names that reach each use."""
