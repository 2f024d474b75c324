"""Writing what the user names: reports, baselines, rule pages, and tests.

Links are followed where the user has made them. A link in a project may be part of somebody's
repository and lead anywhere, so it is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..text.folders import link_error, open_folder
from .roots import outermost_project

_MOST_LINKS = 40
# The folder is not writable, or the file is mounted by itself, as in a container.
_CANNOT_REPLACE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})


def resolve_named(path: Path) -> tuple[Path, Path | None]:
    """Return the real path of a file or folder to write, and the project that it is in, if any.

    Raises:
        OSError: the path leads through a link in a project.
    """
    path = path.absolute()
    here, links = Path(path.anchor), 0
    left = list(reversed(path.parts[1:]))
    while left:
        name = left.pop()
        if name == os.pardir:
            here = here.parent
            continue
        try:
            target = Path(os.readlink(here / name))
        except OSError:
            here /= name  # not a link, or it does not exist
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if outermost_project(here) is not None:
            raise link_error(here / name)
        if target.is_absolute():
            here = Path(target.anchor)
        left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return here, outermost_project(here)


def write_named(file: Path, data: bytes, *, append: bool = False) -> None:
    """Write a file, atomically if it is a regular one.

    Raises:
        OSError: it cannot be written, or the path leads through a link in a project.
    """
    real, project = resolve_named(file.parent)
    with open_folder(real, project or real) as folder:
        found = folder.stat(file.name)
        if not append and (found is None or stat.S_ISREG(found.st_mode)):
            try:
                folder.write(file.name, data)
                return
            except OSError as error:
                if found is None or found.st_nlink > 1 or error.errno not in _CANNOT_REPLACE:
                    raise
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
        if project is None:
            handle = os.open(file, flags | getattr(os, "O_BINARY", 0), 0o666)
        else:
            handle = folder.open_unchecked(file.name, flags)
            if os.fstat(handle).st_nlink > 1:
                os.close(handle)
                raise OSError(errno.EMLINK, f"{real / file.name} has another name elsewhere")
            if os.name == "posix":
                os.set_blocking(handle, True)
        with open(handle, "wb") as stream:
            stream.write(data)
