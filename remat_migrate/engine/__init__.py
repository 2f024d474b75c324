"""Files to findings, and findings to new text on disk."""
