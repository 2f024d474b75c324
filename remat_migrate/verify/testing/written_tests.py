"""Write pytest files with the inputs of units and what the old code computes for them.

The files need the project, pytest, NumPy, and JAX, and not remat-migrate: inputs are written as
source and as arrays, without pickles.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import __version__
from ...discovery.named_outputs import open_named, write_named
from ...errors import UsageError
from ..compare_case import OTHER_FORMS
from ..copies.sides import Sides, error_line
from ..evidence import Inputs, Outcome, Unit, UnitKey, Verdict
from ..inputs import Cases
from ..options import VerifyOptions
from ..session import WORKER, WorkerEnded

_SUPPORT = WORKER / "written" / "support.py"
_MOST_TESTS = 4  # of a unit
_COMPARED = (Outcome.EQUAL, Outcome.DIFFERS, Outcome.FAILS_AFTER)
_ORIGINS = {
    Inputs.DECLARED: "Declared inputs",
    Inputs.RECORDED: "Recorded inputs",
    Inputs.MADE: "Generated inputs",
}
_HEAD = '''"""What {module} computed before its checkpoints were migrated.

Written by remat-migrate {version}, which this file does not need. The inputs and the results, with
gradients, are in {arrays} beside it. The old code computed the
results with jax {jax} on {platform}.
{how}"""
'''


@dataclass(slots=True)
class _Tests:
    """The tests of a unit: source, modules to import, npz files; or why there are none."""

    unit: Unit
    jax: str = ""
    texts: list[str] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)
    arrays: list[bytes] = field(default_factory=list)
    reason: str = ""


class WrittenTests:
    """Collects tests, and writes a file for each module."""

    def __init__(self, folder: Path, root: Path, platform: str) -> None:
        self._notes: list[str] = []
        self._folder = folder
        self._root = root
        self._platform = platform
        self._tests: dict[UnitKey, _Tests] = {}

    def add(self, sides: Sides, unit: Unit, cases: Cases, verdict: Verdict) -> None:
        """Write the tests of a unit that was compared, as `cases` has its inputs."""
        if verdict.outcome not in _COMPARED:
            return
        tests = _Tests(unit)
        known: set[str] = set()
        origins = [*cases.tests, *[""] * len(cases.files)]
        origin = "Recorded" if cases.tests else _ORIGINS[cases.inputs]
        for case, about, test in zip(cases.files, cases.about, origins, strict=False):
            if len(tests.texts) == _MOST_TESTS:
                break
            readable = f"{unit.qualname} {about}".replace("__", "")
            label = re.sub(r"\W+", "_", readable).strip("_").lower()
            while label in known:
                label += "_again"
            known.add(label)
            comment = (
                origin + (f" from {test}" if test else "") + (f", with {about}" if about else "")
            )
            self._write(
                sides, unit, tests, case, {"test": label, "comment": comment + "."}, verdict
            )
        tests.jax = sides.maker.jax
        self._tests[unit.key] = tests

    def _write(
        self,
        sides: Sides,
        unit: Unit,
        tests: _Tests,
        case: str,
        about: Mapping[str, str],
        verdict: Verdict,
    ) -> None:
        reply: Mapping[str, Any] = {}
        failure = ""
        for form in ("", *OTHER_FORMS):
            folder = sides.folder("test")
            arguments = {**about, "case": case, "folder": folder, "form": form}
            try:
                reply = sides.ask(sides.maker, unit, "write", **arguments)
                failure = reply.get("reason") or reply.get("missing") or ""
                if "error" in reply:
                    failure = error_line(reply["error"])
                if failure:
                    break
                tried = sides.ask(sides.after, unit, "try", **reply["test"])
                failure = tried.get("failure") or tried.get("missing") or ""
                if "error" in tried:
                    failure = error_line(tried["error"])
            except WorkerEnded as error:
                failure = f"the test {error}"
                break
            if not failure or verdict.outcome is not Outcome.EQUAL:
                failure = ""
                break
            # A migrated call may pass arguments in another way than the case.
        if failure:
            tests.reason = tests.reason or sides.translate(failure)
            return
        tests.texts.append(reply["test"]["text"])
        tests.modules.update(reply["test"]["modules"])
        tests.arrays.append(Path(reply["test"]["arrays"]).read_bytes())

    def write(self) -> tuple[str, ...]:
        """Write the files, and return notes: what was written, what was not, and why."""
        by_module: dict[str, list[_Tests]] = {}
        for tests in self._tests.values():
            name = tests.unit.name
            if tests.texts:
                by_module.setdefault(tests.unit.module or "", []).append(tests)
            else:
                self._notes.append(f"--write-tests: no test for {name}: {tests.reason}")
        for module, several in sorted(by_module.items()):
            self._write_module(module, several)
        return tuple(self._notes)

    def _write_module(self, module: str, several: Sequence[_Tests]) -> None:
        stem = f"test_{module.replace('.', '_')}_migration"
        modules = sorted({module, *(name for tests in several for name in tests.modules)})
        support = re.sub(r"\A(?:#.*\n)+", "", _SUPPORT.read_text(encoding="utf-8"))
        standard, _, rest = support.partition("\n\n")
        own = {"jax", "jax.numpy", "numpy"}
        imports = "\n".join(f"import {name}" for name in modules if name not in own)
        third, _, rest = rest.partition("\n\n")
        missing = sorted(
            f"- {tests.unit.qualname}: {tests.reason}"
            for tests in self._tests.values()
            if tests.unit.module == module and not tests.texts
        )
        how = ""
        folders = sorted({self._relative(path) for tests in several for path in tests.unit.search})
        if folders not in ([], ["."]):
            how = f"Run it with {' and '.join(folders)} on `sys.path`.\n"
        if missing:
            how += "\nUnits whose inputs cannot be written:\n\n" + "\n".join(missing) + "\n"
        head = _HEAD.format(
            module=module,
            version=__version__,
            arrays=f"{stem}.npz",
            jax=several[0].jax,
            platform=self._platform,
            how=how,
        )
        text = "\n\n".join([head.rstrip(), standard, f"{third}\n\n{imports}", rest.rstrip()])
        text = text.replace(' if __name__ != "support" else {}', "")
        texts = "\n\n".join(text for tests in several for text in tests.texts)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for data in (data for tests in several for data in tests.arrays):
                with zipfile.ZipFile(io.BytesIO(data)) as part:
                    for name in part.namelist():
                        # Without times, so that the same arrays give the same file.
                        file.writestr(zipfile.ZipInfo(name), part.read(name), zipfile.ZIP_DEFLATED)
        try:
            write_named(self._folder / f"{stem}.py", f"{text}\n\n\n{texts}".encode())
            write_named(self._folder / f"{stem}.npz", archive.getvalue())
        except OSError as error:
            raise _cannot_write(self._folder, error) from error
        count = sum(len(tests.texts) for tests in several)
        self._notes.append(f"wrote {count} tests of {module} to {self._folder.name}/{stem}.py")

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path != self._root else "."


def written_tests(options: VerifyOptions, root: Path) -> WrittenTests | None:
    """Return what collects tests; None unless the options ask for them.

    Raises:
        UsageError: the folder cannot be created.
    """
    folder = options.write_tests
    if folder is None:
        return None
    try:
        with open_named(folder, create=True):
            return WrittenTests(folder, root, options.platform)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _cannot_write(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"--write-tests: {folder}: {error.strerror or error}")
