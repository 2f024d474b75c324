"""How fast remat-migrate is, beside ruff, torchfix, Fixit and grep.

    python -m benchmarks.speed [--runs 5] [--only cold warm] [--skip torchfix] [--json FILE]
    python -m benchmarks.speed --profile

In the top folder of the checkout. All it needs it makes in `build/benchmarks`, or in `--folder`: a
tree of installed packages from PyPI, trees that it generates, and a virtual environment for each
tool. It needs Linux (or another system with `os.wait4`), git, grep and a package index; the first
run downloads, and takes some minutes for that.

What is compared runs in turn, A B A B, so that whatever else the machine does falls on both, and
ratios are taken pair by pair. Times are processor time, user and system, children included; the
clock is shown beside it. Printed is Markdown.
"""
