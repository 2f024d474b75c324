"""Evaluating units and comparing what they compute."""
