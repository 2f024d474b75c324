"""Tests as inputs of verification, and tests as what it leaves behind."""
