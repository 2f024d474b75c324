"""Probes which arguments of library functions must be concrete while JAX traces.

    python -m benchmarks.library_needs probe --output 0.10.2.json     # in each environment
    python -m benchmarks.library_needs merge *.json                   # writes the table

`probe` calls every public function of JAX, and of optax, einops, Flax and Haiku where they are
installed, with each argument traced in turn. `merge` writes
`remat_migrate/libraries/library_needs.txt` from the results of several versions.
"""
