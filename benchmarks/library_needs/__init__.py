"""Probe which arguments of library functions must be concrete at trace time.

    python -m benchmarks.library_needs probe --output 0.10.2.json     # in each environment
    python -m benchmarks.library_needs merge *.json                   # writes the table

`probe` calls every public function of JAX, and of optax, einops, Flax and Haiku if they are
installed, with one argument traced at a time. `merge` writes
`remat_migrate/libraries/library_needs.txt` from the results of several versions.
"""
