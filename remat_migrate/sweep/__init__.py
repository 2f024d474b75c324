"""Sweeps: many repositories, or a very large one, checked by the workers of a Dask cluster."""
