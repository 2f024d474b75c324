"""Sweeps: many repositories, or one of millions of lines, checked by the workers of a Dask cluster."""
