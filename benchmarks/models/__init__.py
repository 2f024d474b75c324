"""Models with many placements of checkpoints, to be traced on shapes."""
