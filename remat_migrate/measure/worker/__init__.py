"""The process that measures, in the user's interpreter: needs the standard library, numpy and jax.

Uses the syntax of Python 3.9, the oldest version that jax 0.4.30 supports. Functions are traced on
shapes, and compiled on request, but never executed.
"""
