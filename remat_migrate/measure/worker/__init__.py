"""What measures in the user's interpreter: needs the standard library, numpy and jax alone.

It keeps to the syntax of Python 3.9, the oldest that jax 0.4.30 runs on. Nothing is executed on
arrays: functions are traced on shapes, and compiled where that is asked for.
"""
