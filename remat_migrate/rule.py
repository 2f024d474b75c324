"""The interface for rules: Rule, Finding, Fix, Safety, Example, Fails.

A rule is a class with a code and a name that yields findings. A finding has a location and at most
one fix. A fix is a set of Changes, possibly in several files, applied as a whole or not at all. A
package provides rules through the entry point group `remat_migrate.rules`: the entry point is a
rule class, or a module with a list `RULES` of rule classes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from .codemod.changes import Change, SetComment
from .errors import CodemodError
from .settings.settings import Severity as Severity
from .text import Edit, SourceFile, Span

if TYPE_CHECKING:
    from .analysis import Module, Project, Site
    from .suppressions import Directive

Confidence = Literal["high", "medium", "low"]


class Safety(enum.StrEnum):
    """How safe a fix is.

    SAFE: same values and gradients, comments kept, nothing renamed. UNSAFE: same values, but memory
    use, run time or names may change; needs `--unsafe-fixes`. MANUAL: shown, never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Related:
    """A related location that explains a finding, such as "called here"."""

    source: SourceFile
    span: Span
    message: str


@dataclass(frozen=True)
class Fix:
    """Changes that fix a finding, applied as a whole or not at all.

    The new code is computed, and LibCST imported, on access to `edits`.

    Attributes:
        title: what the fix does; for a MANUAL fix, what to write by hand.
        safety: how safe it is.
        changes: Changes of syntax trees, and edits of files that are not Python. Empty for a MANUAL
            fix.
    """

    title: str
    safety: Safety
    changes: tuple[Change | Edit, ...] = ()

    @classmethod
    def manual(cls, advice: str) -> Fix:
        """Return a fix that is never applied and only says what to write by hand."""
        return cls(advice, Safety.MANUAL)

    @property
    def is_automatic(self) -> bool:
        """Whether the fix can be applied without the user."""
        return bool(self.changes) and self.safety is not Safety.MANUAL

    @cached_property
    def paths(self) -> frozenset[Path]:
        """The files that the fix edits."""
        return frozenset(map(_path, self.changes))

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The fix as text edits; none if it cannot be produced, see `written`."""
        return self.written[0]

    @cached_property
    def written(self) -> tuple[tuple[Edit, ...], CodemodError | None]:
        """The edits, or the error that prevents them."""
        try:
            return tuple(_written(self.changes)), None
        except CodemodError as error:
            return (), error


def joint_edits(path: Path, fixes: Sequence[Fix]) -> list[Edit]:
    """Return the edits of one file that apply several fixes together.

    Raises:
        CodemodError: LibCST cannot parse a statement, or two changes conflict.
    """
    if len(fixes) == 1:
        edits, error = fixes[0].written
        if error is not None:
            raise error
        return [edit for edit in edits if edit.path == path]
    every = dict.fromkeys(change for fix in fixes for change in fix.changes)
    return _written(change for change in every if _path(change) == path)


def _path(change: Change | Edit) -> Path:
    return change.path if isinstance(change, Edit) else change.file.source.path


def _written(changes: Iterable[Change | Edit]) -> list[Edit]:
    edits: dict[Edit, None] = {}
    trees: list[Change] = []
    for change in changes:
        if isinstance(change, Edit):
            edits[change] = None
        elif isinstance(change, SetComment):
            edits[change.edit()] = None
        else:
            trees.append(change)
    if trees:
        from .codemod.writer import write

        edits |= dict.fromkeys(write(trees))
    return list(edits)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem at one location.

    Attributes:
        code: the code of the rule.
        name: the name of the rule.
        message: one line that says what is wrong and since when.
        source: the file.
        span: the characters to underline.
        severity: "error" if current JAX fails, "warning" if the code is silently wrong or wasteful,
            "note" for advice, which does not fail a run.
        confidence: how certain the analysis is.
        fix: the fix, if there is one.
        related: related locations.
        reason: why there is no automatic fix and what to write instead, or details of the problem.
        url: documentation by the library.
        is_withheld: whether the fix is not applied, because it also edits files that must not be
            edited.
        sites: the checkpoints concerned, besides those in the statement of the finding.
    """

    code: str
    name: str
    message: str
    source: SourceFile
    span: Span
    severity: Severity = "error"
    confidence: Confidence = "high"
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    reason: str = ""
    url: str = ""
    is_withheld: bool = False
    sites: tuple[Site, ...] = field(default=(), compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self.source.path

    @property
    def line(self) -> int:
        """The line where it starts, from 1."""
        return self.source.position(self.span.start)[0]

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """What findings are sorted by."""
        return (str(self.path), *self.span, self.code, self.message)

    def has_fix(self, safety: Safety) -> bool:
        """Return whether the run can apply a fix of a safety."""
        fix = self.fix
        if fix is None or self.is_withheld:
            return False
        return bool(fix.changes) and fix.safety is safety


@dataclass(frozen=True, slots=True)
class Fails:
    """How code fails under JAX.

    Attributes:
        error: a regular expression to search for in `TypeName: message`.
        since: the first JAX release in which the code fails; "" for all releases.
    """

    error: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """Wrong code and its fix, or right code.

    Tests run examples that have a `use` under JAX: the old code must fail as `fails` says or meet
    the assertions of `shows`; the new code must run and meet those of `holds`.

    Attributes:
        before: the code.
        after: the fixed code; None if there is no fix or the code is right.
        filename: the name of the file, for rules about files that are not Python.
        use: code that exercises the example, run in the same namespace.
        fails: how `before` with `use` fails.
        shows: assertions about what silently goes wrong with `before`, run after `use`.
        holds: assertions about `after` or right code, run after `use`.
    """

    before: str
    after: str | None = None
    filename: str = "example.py"
    use: str = ""
    fails: Fails | None = None
    shows: str = ""
    holds: str = ""


class Rule:
    """The base of all rules.

    Class attributes:
        code: unique; letters followed by three digits.
        name: words joined by hyphens, like the name of the module.
        since: the JAX release in which the code starts to fail, or "".
        url: documentation by the library, such as a release note or a JEP.
        severity: the default severity of its findings.
        fix_safety: the safety of its fixes, as a rule; each fix says what it is.
        words: further words for the prefilter: the rule also checks files that mention JAX and one
            of these words, although they have no checkpoint, policy, flag or suppression.
        wrong: code that the rule finds, and the fixed code if there is a fix.
        right: code in which the rule must find nothing.

    `remat-migrate explain` shows the class docstring, with the sections `## What it does`,
    `## Why is this bad?`, `## Fix`.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    since: ClassVar[str] = ""
    url: ClassVar[str] = ""
    severity: ClassVar[Severity] = "error"
    fix_safety: ClassVar[Safety] = Safety.SAFE
    words: ClassVar[tuple[str, ...]] = ()
    wrong: ClassVar[list[Example]] = []
    right: ClassVar[list[Example | str]] = []

    @property
    def right_examples(self) -> list[Example]:
        """What `right` holds, as examples."""
        return [one if isinstance(one, Example) else Example(one) for one in self.right]

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Yield findings about the whole project; by default none."""
        return iter(())

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Yield findings in a Python module; by default none."""
        return iter(())

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """Yield findings in a file that is not Python; by default none."""
        return iter(())

    def check_suppressions(
        self, source: SourceFile, unused: Sequence[tuple[Directive, tuple[str, ...]]]
    ) -> Iterator[Finding]:
        """Yield findings about the unused suppressions of a file, each with its unused codes."""
        return iter(())

    def finding(
        self,
        source: SourceFile,
        span: Span,
        message: str,
        *,
        severity: Severity | None = None,
        confidence: Confidence = "high",
        fix: Fix | None = None,
        related: tuple[Related, ...] = (),
        reason: str = "",
        sites: tuple[Site, ...] = (),
    ) -> Finding:
        """Return a finding of this rule; the reason defaults to the advice of a manual fix."""
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            source=source,
            span=span,
            severity=severity or self.severity,
            confidence=confidence,
            fix=fix,
            related=related,
            reason=reason or (fix.title if fix and fix.safety is Safety.MANUAL else ""),
            url=self.url,
            sites=sites,
        )
