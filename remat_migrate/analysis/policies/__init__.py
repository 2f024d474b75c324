"""Checkpoint policies and the names they refer to."""
