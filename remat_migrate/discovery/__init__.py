"""Which files a run reads: project roots, ignore patterns, installed packages."""
