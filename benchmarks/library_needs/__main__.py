"""Command line of the probe, see the package."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    """Probe the installed version, or merge the results of several."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library_needs")
    commands = parser.add_subparsers(dest="command", required=True)
    probing = commands.add_parser("probe")
    probing.add_argument("--output", type=Path, required=True)
    probing.add_argument("--only", default="", help="prefix of qualified names to probe")
    merging = commands.add_parser("merge")
    merging.add_argument("results", type=Path, nargs="+", help="oldest version first")
    options = parser.parse_args()
    if options.command == "merge":
        from .table import merge

        merge(options.results)
        return

    # Optimizations do not pay for many small programs that run once.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    from .modules import public_functions
    from .probe import probe, probe_methods

    start = time.perf_counter()
    found = {}
    for name, function in public_functions():
        if name.startswith(options.only):
            began = time.perf_counter()
            result = probe(name, function)
            if result is not None:
                found[name] = result.as_json()
            took = time.perf_counter() - began
            if took > 5:
                print(f"{name}: {took:.0f} s", file=sys.stderr, flush=True)
    if "jax.Array".startswith(options.only):
        found |= {name: result.as_json() for name, result in probe_methods().items()}
    document = {"jax": jax.__version__, "functions": found}
    options.output.write_text(json.dumps(document, indent=1, default=str))
    parameters = [s for f in found.values() for s in f["status"].values()]
    counts = {s: parameters.count(s) for s in sorted(set(parameters))}
    print(
        f"jax {jax.__version__}: {len(found)} functions, {len(parameters)} parameters, {counts},"
        f" {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
