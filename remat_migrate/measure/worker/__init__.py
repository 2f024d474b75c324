"""The process that measures, in the user's interpreter: needs the standard library, numpy and jax.

Functions are traced on shapes, and compiled on request, but never executed. Python 3.11 and jax
0.4.30 are the oldest versions that it supports.
"""
