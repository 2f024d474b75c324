"""A glance at single files: most of those that a commit hook hands over cannot matter.

To say so takes neither rules nor model, whose import costs more than a hook should take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..discovery.roots import find_root, repository
from ..errors import SourceError
from ..settings import Settings, load_settings
from ..text import read_source
from ..text.source_file import may_be_notebook
from .mentions import shows_name
from .words import ESCAPED, FAMILY, FLAGS, SUPPRESSION, WORDS, bound_aliases, may_differentiate_scan

# With more files than this a full run is worth its start.
_MOST_FILES = 50

# `import a.b, c` and `from .a import b, c`, also in brackets over several lines.
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+)?import\b[ \t]*(?P<names>\([^)]*\)|[^\n]*)",
    re.MULTILINE,
)
_DOTTED = re.compile(rb"\w[\w.]*")
_NAME = re.compile(rb"(\*|\w[\w.]*)(?:[ \t\\\r\n]+as[ \t]+(\w+))?")
# `save = ops.ck`: one more name for what another file gives.
_RENAMED = re.compile(rb"^[ \t]*(\w+)[ \t]*(?::[^=\n]*)?=(?!=)([^\n]*)", re.MULTILINE)
# Names are followed through so many files; beyond, a full run is worth its start.
_MOST_FOLLOWED = 200


def cannot_matter(
    paths: Sequence[Path], concerned: Callable[[Settings], bool] = lambda settings: False
) -> bool:
    """Whether `paths` are files in which there is nothing to find, by their bytes and the settings.

    False whenever that takes a closer look: for folders, for what cannot be read or decoded, and
    where the settings hold something that needs checking, or that `concerned` says more is asked.

    Raises:
        SettingsError: the settings are wrong.
    """
    if not 0 < len(paths) <= _MOST_FILES or not all(path.is_file() for path in paths):
        return False
    if not all(map(_has_nothing, paths)):
        return False
    root = find_root(paths)
    top = repository(root)
    if any(_imports_alias(path.resolve(), top) for path in paths):
        return False
    start = Path(paths[0]).resolve()
    settings = load_settings(root, start)
    return _is_plain(settings) and not concerned(settings)


def _has_nothing(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if may_be_notebook(path) and ESCAPED.search(data):
        return False
    # A wrapper of a checkpoint may have any name, but then the option gives it away.
    if b"\0" in data or b"concrete" in data:
        return False
    if any(word in data for word in WORDS) and (may_be_notebook(path) or _may_name(data)):
        return False
    if may_differentiate_scan(data):
        return False
    if data.isascii():
        return True
    if any(b"coding" in line for line in data.split(b"\n", 2)[:2]):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _may_name(data: bytes) -> bool:
    """Whether a file may name a checkpoint, the flag, a suppression, or what rules look for."""
    return (
        SUPPRESSION.search(data) is not None
        or any(word in data for word in (*FLAGS, b"ad_checkpoint"))
        or shows_name(data, FAMILY)
    )


def _imports_alias(path: Path, top: Path) -> bool:
    """Whether a file may use an alias of a checkpoint that it imports from another one."""
    data = path.read_bytes()
    if may_be_notebook(path):
        try:
            data = read_source(path, data).text.encode()
        except SourceError:
            return False  # it has none of the words without which that does not matter
    words = _words_of(data)
    return _gives_alias(path, data, words, words, top, {path})


def _words_of(data: bytes) -> frozenset[bytes]:
    return frozenset(_DOTTED.findall(data.replace(b".", b" ")))


def _gives_alias(
    path: Path,
    data: bytes,
    names: frozenset[bytes],
    words: frozenset[bytes],
    top: Path,
    seen: set[Path],
) -> bool:
    """Whether what a file imports may be an alias of a checkpoint.

    Args:
        path: the file.
        data: its text.
        names: the names in it that matter; what has another name is not followed.
        words: the words by which attributes may be read in the end.
        top: the folder within which files are followed.
        seen: the files that were asked.
    """
    for base, listed in _IMPORT.findall(data):
        for name, other in _NAME.findall(listed):
            bound = other or name.partition(b".")[0]
            if name != b"*" and bound not in names:
                continue
            for file in _imported_files(path, base, name, top):
                if file in seen:
                    continue
                seen.add(file)
                if len(seen) > _MOST_FOLLOWED:
                    return True
                try:
                    text = file.read_bytes()
                except OSError:
                    continue
                if any(word in text for word in WORDS):
                    if not words.isdisjoint(aliases := frozenset(bound_aliases(text))):
                        return True
                    if name in aliases:
                        return True
                if b"import" in text:
                    # Of a module all names may be read, of others the one.
                    is_module = not base or file.stem == name.decode(errors="replace")
                    meant = words if is_module or name == b"*" else frozenset((name,))
                    for renamed, value in _RENAMED.findall(text) if meant is not words else ():
                        if renamed in meant:
                            meant |= _words_of(value)
                    if _gives_alias(file, text, meant, words, top, seen):
                        return True
    return False


def _imported_files(path: Path, base: bytes, name: bytes, top: Path) -> Iterator[Path]:
    """The files below `top` that `from base import name` may mean in a file."""
    dots = len(base) - len(base.lstrip(b"."))
    start = base.strip(b".").decode().split(".") if base.strip(b".") else []
    if dots:
        within = path.parents[dots - 1 : dots]
    else:
        around = [folder for folder in (path.parent, *path.parents) if folder.is_relative_to(top)]
        within = tuple(dict.fromkeys([*around, top / "src"]))
    parts = [*start, *(() if name == b"*" else name.decode(errors="replace").split("."))]
    for folder in within:
        if dots and not start:
            yield from filter(Path.is_file, [folder / "__init__.py"])
        if not parts or not _holds(folder, parts[0]):
            continue
        # `from a import b` means a file a.py, or a/b.py.
        for length in range(1, len(parts) + 1):
            file = folder.joinpath(*parts[:length])
            found = (file.with_name(f"{file.name}.py"), file / "__init__.py")
            yield from filter(Path.is_file, found)


def _holds(folder: Path, name: str) -> bool:
    """Whether a folder has a module of a name, or a folder."""
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()


def _is_plain(settings: Settings) -> bool:
    """Whether settings name neither codes nor wrappers, which only rules and model can check."""
    return not (
        settings.select
        or settings.extend_select
        or settings.ignore
        or settings.per_file_ignores
        or settings.wrappers
        or settings.scans
    )
