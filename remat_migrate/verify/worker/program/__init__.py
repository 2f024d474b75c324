"""Compare two functions as programs: trace them, and number the values by what computes them."""
