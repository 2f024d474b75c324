"""The prefilter for single files, such as those that a commit hook passes: most cannot matter.

It imports neither rules nor analysis, whose import takes longer than a hook should.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..discovery.roots import find_root, repository
from ..errors import SourceError
from ..settings import Settings, load_settings
from ..text import read_source
from ..text.regular_files import MAX_BYTES
from ..text.source_file import may_be_notebook, read_bytes
from .code import code_of
from .first_look import FirstLook
from .imports import Import, imports_of
from .words import ESCAPED, FAMILY, WORDS, bound_aliases

# For more files than this, a full run is worth its start-up time.
_MOST_FILES = 50
# Names are followed through at most so many files before a full run takes over.
_MOST_FOLLOWED = 200

_WORD = re.compile(rb"\w+")
# `save = ops.ck`: another name for something from another file.
_RENAMED = re.compile(rb"^[ \t]*(\w+)[ \t]*(?::[^=\n]*)?=(?!=)([^\n]*)", re.MULTILINE)


def cannot_matter(
    paths: Sequence[Path], concerned: Callable[[Settings], bool] = lambda settings: False
) -> bool:
    """Return whether `paths` are files without findings, judging by their bytes and the settings.

    The result is false if the question needs a closer look: for folders, for files that cannot be
    read or decoded, for settings that must be checked, and if `concerned` returns true.

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
    folders = dict.fromkeys(Path(path).resolve().parent for path in paths)
    return not any(_may_matter(load_settings(root, folder), concerned) for folder in folders)


def _may_matter(settings: Settings, concerned: Callable[[Settings], bool]) -> bool:
    # Only rules and analysis can check codes and wrappers that the settings name.
    unchecked = (
        settings.select,
        settings.extend_select,
        settings.ignore,
        settings.per_file_ignores,
        settings.wrappers,
        settings.scans,
        settings.max_file_size < MAX_BYTES >> 20,
    )
    return any(unchecked) or concerned(settings)


def _has_nothing(path: Path) -> bool:
    try:
        data = read_bytes(path)
    except SourceError:
        return False
    look = FirstLook((name.decode() for name in FAMILY), ("ad_checkpoint",))
    places = look.search.places(data)
    if b"\0" in data or look.matters(data, places):
        return False
    if may_be_notebook(path) and (places or ESCAPED.search(data)):
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


def _imports_alias(path: Path, top: Path) -> bool:
    """Return whether a file may import an alias of a checkpoint from another file below `top`."""
    data = read_bytes(path)
    if may_be_notebook(path):
        try:
            data = read_source(path, data).text.encode()
        except SourceError:
            return False  # without the words, a broken notebook has no findings either
    words = _words_of(data)
    return _gives_alias(path, data, words, words, top, {path})


def _words_of(data: bytes) -> frozenset[str]:
    return frozenset(word.decode(errors="replace") for word in _WORD.findall(data))


def _gives_alias(
    path: Path,
    data: bytes,
    names: frozenset[str],
    words: frozenset[str],
    top: Path,
    seen: set[Path],
) -> bool:
    """Return whether what a file imports may be an alias of a checkpoint, or have static arguments.

    Args:
        path: the file.
        data: its text.
        names: the names in it that matter; imports of other names are not followed.
        words: the words by which attributes may be read in the end.
        top: the folder within which imports are followed.
        seen: the files that were read.
    """
    for one in imports_of(code_of(data)):
        if one.name != "*" and one.bound not in names:
            continue
        for file in _imported_files(path, one, top):
            if file in seen:
                continue
            seen.add(file)
            if len(seen) > _MOST_FOLLOWED:
                return True
            try:
                text = read_bytes(file)
            except SourceError:
                continue
            if any(word in text for word in WORDS):
                aliases = {alias.decode(errors="replace") for alias in bound_aliases(text)}
                if one.name in aliases or not words.isdisjoint(aliases):
                    return True
                if b"static_argnums" in text:
                    return True  # Calls in the file may misplace a static argument.
            if b"import" in text:
                # All names of a module may be read; of an imported name, only itself.
                is_module = not one.base or file.stem == one.name
                meant = words if is_module or one.name == "*" else frozenset((one.name,))
                for renamed, value in _RENAMED.findall(text) if meant is not words else ():
                    if renamed.decode() in meant:
                        meant |= _words_of(value)
                if _gives_alias(file, text, meant, words, top, seen):
                    return True
    return False


def _imported_files(path: Path, one: Import, top: Path) -> Iterator[Path]:
    """Yield the files below `top` that an import in a file may mean."""
    dots = len(one.base) - len(one.base.lstrip("."))
    start = [part for part in one.base.split(".") if part]
    if dots:
        within = path.parents[dots - 1 : dots]
    else:
        around = [folder for folder in (path.parent, *path.parents) if folder.is_relative_to(top)]
        within = tuple(dict.fromkeys([*around, top / "src"]))
    parts = [*start, *(() if one.name == "*" else one.name.split("."))]
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
    """Return whether a folder contains a module or a folder of a name."""
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()
