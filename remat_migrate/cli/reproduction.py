"""The command line that reproduces a verdict: the user's own, limited to one unit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

# Options that decide neither what is compared nor how. Those that take a value, and those that do
# not.
_WITH_VALUE = ("--unit", "--output-format", "--output-file", "-o")
_FLAGS = ("--statistics", "--exit-zero", "--diff", "--fix")


def invocation(arguments: Sequence[str]) -> str:
    """Return a command that verifies what these arguments of remat-migrate verify.

    Where they write fixes, it shows them instead.
    """
    kept = list(_kept(arguments))
    if kept and kept[0] in ("check", "report"):
        del kept[0]
    if arguments and arguments[0] != "verify":
        kept.insert(0, "--diff")
    return shlex.join(["remat-migrate", *kept])


def _kept(arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for argument in rest:
        name, given, _ = argument.partition("=")
        if name in _WITH_VALUE:
            if not given:
                next(rest, None)
        elif argument not in _FLAGS and not argument.startswith("-o"):
            yield argument
