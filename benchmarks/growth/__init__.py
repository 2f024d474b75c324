"""Measure how the CPU time of a run grows with the size of its input.

    python -m benchmarks.growth [--only NAME ...] [--jobs 2] [--json FILE]

Each program of `generators` writes inputs of size n, 2n, 4n and so on until a run takes seconds.
The exponent is the slope of the line through log(time) over log(size), where the time is that of
the run less that of an empty one: 1 is linear, 2 quadratic. Needs Linux (or another system with
`os.wait4`). Prints Markdown.
"""
