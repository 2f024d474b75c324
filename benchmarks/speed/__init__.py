"""Compare the speed of remat-migrate with ruff and grep.

    python -m benchmarks.speed [--runs 5] [--only cold warm]

Run it in the root of the checkout. It creates everything it needs in `build/benchmarks`, or in
`--folder`: a tree of packages from PyPI, generated trees, and a virtual environment per tool. Needs
Linux (or another system with `os.wait4`), git, grep and a package index. The first run downloads
the packages, which takes some minutes.

Compared commands alternate, A B A B, so that other load on the machine affects both, and ratios are
computed pair by pair. Times are CPU times, user and system, including children; wall times are also
shown. Prints Markdown.
"""
