"""Models with many placements of checkpoints, on shapes alone."""
