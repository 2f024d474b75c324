"""Write placements of checkpoints into the source, replacing the current checkpoints."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..analysis import Module, Project
from ..analysis.sites.find_sites import sites_in
from ..codemod import changes as codemod
from ..codemod.writer import write
from ..engine.fix_rounds import FileChange
from ..engine.integrity import check_integrity
from ..errors import CodemodError
from ..measure.worker.records import PLAIN, Chain
from ..rewrite.placement import remove_site
from ..rewrite.refusal import Refused
from ..text import Edit, OffsetMap, SourceFile, apply_edits
from .chain import Arc, Place
from .plan import Obstacle, StageDecision
from .writing import checkpointed, named, names_in, statement_on

# Loads the project, with new texts of some files.
Open = Callable[[Mapping[Path, SourceFile]], Project]
Texts = dict[Path, SourceFile]


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """A placement written into the source.

    Attributes:
        changes: the files that differ; none if there are obstacles.
        obstacles: why the placement cannot be written.
    """

    changes: tuple[FileChange, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


class _Obstacles(list[Obstacle]):
    """Collects the refusals to write parts of a placement."""

    @contextmanager
    def of(self, path: Path, line: int) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            self.append(Obstacle(path, line, refused.reason))


class Source:
    """The source of a target, which placements can be written into."""

    def __init__(
        self,
        opened: Open,
        sites: Sequence[tuple[Path, int]],
        values: Mapping[str, Place] | None = None,
    ) -> None:
        """Remove the current checkpoints.

        Args:
            opened: opens the project.
            sites: the files and lines of the current checkpoints.
            values: the assignments of values that policies save by name.
        """
        self._values = values or {}
        self._opened, self._sites = opened, sites
        self._project = opened({})
        self._in_the_way = _Obstacles()
        self._before: Texts = {}
        # The planned checkpoints need the import of jax.
        self._bare, removed = self._without_checkpoints(("jax",))
        self._moved = {path: OffsetMap(edits) for path, edits in removed.items()}
        self._written = opened(self._bare) if self._bare else self._project
        self._answers: dict[tuple[object, ...], bool] = {}

    # -- what can be written

    def allows(self, chain: Chain, arc: Arc) -> bool:
        """Return whether the checkpoint of an arc can be written."""
        if arc.kind == PLAIN:
            return True
        path, function, line = chain[arc.start].place
        group = arc.lines if len(arc.lines) > 1 else ()
        names = names_in(arc.policy)
        key = path, line, arc.kind, group, names
        if key not in self._answers:
            try:
                self._changes(
                    StageDecision(Path(path), line, function, 1, 1, arc.kind, arc.policy, group)
                )
                self._answers[key] = True
            except Refused:
                self._answers[key] = False
        return self._answers[key]

    # -- writing

    def apply(self, stages: Sequence[StageDecision]) -> AppliedPlan:
        """Write a placement: remove the current checkpoints and add the planned ones."""
        if self._in_the_way:
            return AppliedPlan(obstacles=tuple(dict.fromkeys(self._in_the_way)))
        obstacles = _Obstacles()
        wraps = [stage for stage in stages if stage.decision != PLAIN]
        additions: dict[codemod.Change, None] = {}
        for stage in wraps:
            with obstacles.of(stage.path, stage.line):
                additions.update(dict.fromkeys(self._changes(stage)))
        after = dict(self._bare if wraps else self._without_checkpoints(())[0])
        for stage in wraps[:1] if not obstacles else ():
            with obstacles.of(stage.path, stage.line):
                after |= self._made(list(additions))[0]
        if obstacles:
            return AppliedPlan(obstacles=tuple(dict.fromkeys(obstacles)))
        before = self._before
        changed = (path for path in sorted(after) if after[path].text != before[path].text)
        return AppliedPlan(tuple(FileChange(before[path], after[path]) for path in changed))

    def _changes(self, stage: StageDecision) -> list[codemod.Change]:
        module = _module(self._written, stage.path)
        statements = tuple(self._statements(stage))
        changes = checkpointed(self._written, stage, module, statements)
        for name in names_in(stage.policy):
            if name in self._values:
                path, function, line = self._values[name]
                holder = _module(self._written, Path(path))
                assignment = self._statement((path, function, line))
                changes += named(self._written, holder, assignment, name)
        return changes

    def _statements(self, stage: StageDecision) -> Iterator[ast.stmt]:
        """Yield the statements of a stage or group, in the source without checkpoints."""
        for line in [line for line in stage.group if line] or [stage.line]:
            yield self._statement((str(stage.path), stage.function, line))

    def _statement(self, place: Place) -> ast.stmt:
        """Return the statement on a line, in the source without checkpoints."""
        path, function, line = Path(place[0]), *place[1:]
        module, now = _module(self._project, path), _module(self._written, path)
        start = module.span(statement_on(module, line, function)).start
        if path in self._moved:
            start = self._moved[path].moved(start)
        for node in now.nodes:
            if isinstance(node, ast.stmt) and not hasattr(node, "body"):
                if now.span(node).start == start:
                    return node
        raise Refused("without the current checkpoints, nothing is left of the line")

    def _without_checkpoints(self, kept: Sequence[str]) -> tuple[Texts, dict[Path, list[Edit]]]:
        """Return the texts without the current checkpoints, and the edits that remove them."""
        removals: list[codemod.Change] = []
        for path, line in self._sites:
            with self._in_the_way.of(path, line):
                removals += _removed(self._project, path, line, kept)
        return self._made(removals)

    def _made(self, changes: Sequence[codemod.Change]) -> tuple[Texts, dict[Path, list[Edit]]]:
        """Return the new texts and their edits; remember the old texts.

        Raises:
            Refused: the changes contradict each other, or would break a file.
        """
        sources = {change.file.source.path: change.file.source for change in changes}
        edits: dict[Path, list[Edit]] = defaultdict(list)
        try:
            for edit in write(changes):
                edits[edit.path].append(edit)
        except CodemodError as error:
            raise Refused(str(error)) from error
        found = {}
        for path, here in edits.items():
            source = sources[path]
            text = apply_edits(source.text, here)
            reason = check_integrity(source, text, here)
            if reason is not None:
                raise Refused(reason)
            self._before.setdefault(path, source)
            found[path] = source.replaced(text)
        return found, edits


def _module(project: Project, path: Path) -> Module:
    module = project.module(path) if path in project.files.targets else None
    if module is None:
        raise Refused("its file is not among the files to change")
    return module


def _removed(project: Project, path: Path, line: int, kept: Sequence[str]) -> list[codemod.Change]:
    """Return the changes that remove the checkpoints on a line."""
    module = _module(project, path)
    found = [
        site
        for site in sites_in(project, module)
        if site.application is not None
        and site.application.lineno <= line <= (site.application.end_lineno or line)
    ]
    first = [site for site in found if site.application and site.application.lineno == line]
    if not found:
        raise Refused("the source shows no checkpoint on this line")
    return [c for site in first or found for c in remove_site(project, site, kept=kept)]
