"""What to sweep: folders and git repositories, by name or in files that list them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import UsageError

# `https://host/path` and `user@host:path`
_URL = re.compile(r"\w[\w+.-]*://")
_SCP = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!\\)[^\s:]+")
# A password, or a token in the place of a user or of a password. That of ssh is only a user.
_CREDENTIALS = re.compile(r"\b((?!ssh:)\w[\w+.-]*://)([^/\s'\"]*)@")
_UNNAMED = re.compile(r"[^\w.-]+")
# Enough to tell apart a million sources.
_HASH_LENGTH = 10
_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A folder or a repository.

    Attributes:
        address: an absolute folder, or the address of a git repository.
        revision: the branch, tag, or hash to check; empty for the files of a folder as they are,
            or for the default branch of a repository.
        credentials: what precedes the host in the address that was given, such as `user:token`.
    """

    address: str
    revision: str = ""
    credentials: str = field(default="", compare=False, repr=False)

    @property
    def name(self) -> str:
        """A file name that no other source has: `google-flax-1f3870be27`."""
        parts = [part for part in re.split(r"[/\\:]", self.address) if part]
        last = "-".join(parts[-2:]).removesuffix(".git")
        readable = _UNNAMED.sub("-", last).strip("-.")[-_NAME_LENGTH:]
        digest = hashlib.sha256(f"{self.address}\0{self.revision}".encode(errors="surrogateescape"))
        return f"{readable}-{digest.hexdigest()[:_HASH_LENGTH]}"

    @property
    def is_folder(self) -> bool:
        """Whether the address is a folder, which may be or hold a repository."""
        return os.path.isabs(self.address)

    @property
    def with_credentials(self) -> str:
        """The address for git alone."""
        return self.address.replace("://", f"://{self.credentials}@", 1)

    def __str__(self) -> str:
        return f"{self.address}@{self.revision}" if self.revision else self.address


def parse_sources(texts: Sequence[str]) -> tuple[Source, ...]:
    """Return the sources that command-line arguments name, sorted and without repeats.

    An argument is a folder, an address with an optional `@REVISION`, or a file with one of them per
    line; there, the revision may also follow after a space, and `#` starts a comment. Relative
    folders in a file are relative to it.

    Raises:
        UsageError: an argument is none of these, a file cannot be read or parsed, or there are no
            sources.
    """
    found = {source for text in texts for source in _sources(text)}
    if not found:
        raise UsageError("no sources: the files list no folder and no repository")
    return tuple(sorted(found))


def _sources(text: str) -> Iterator[Source]:
    if os.path.isfile(text):
        yield from _listed(Path(text))
        return
    source = _source(text, Path.cwd())
    if source.is_folder and not os.path.isdir(source.address):
        text = without_credentials(text)
        raise UsageError(f"{text}: no such file or folder, and not the address of a repository")
    yield source


def _listed(file: Path) -> Iterator[Source]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read as a list of sources: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise UsageError(f"{file}:{number}: {error}") from error
        match words:
            case []:
                continue
            case [address]:
                yield _source(address, file.parent)
            case [address, revision]:
                yield replace(_source(address, file.parent), revision=_checked(revision, line))
            case _:
                raise UsageError(
                    f"{file}:{number}: expected ADDRESS [REVISION], got {len(words)} words: quote"
                    " a name that has spaces"
                )


def _source(text: str, base: Path) -> Source:
    """Parse a folder, or an address with an optional revision behind `@`."""
    if os.path.exists(base / os.path.expanduser(text)):
        return Source(_absolute(text, base))
    address, revision = text, ""
    for at in (found.start() for found in re.finditer("@", text)):
        # `git@host:name` and `https://user@host/name` have no revision: a path precedes one.
        url = _URL.match(text)
        before = text[url.end() : at] if url else text[:at]
        is_folder = url is None and (base / before).is_dir()
        if "/" in before or is_folder or (url is None and ":" in before):
            address, revision = text[:at], _checked(text[at + 1 :], text)
            break
    if _URL.match(address) or (_SCP.fullmatch(address) and not os.path.exists(base / address)):
        found = _CREDENTIALS.match(address)
        clean = without_credentials(_checked(address, text))
        return Source(clean, revision, found[2] if found else "")
    return Source(_absolute(address, base), revision)


def _absolute(text: str, base: Path) -> str:
    return os.path.realpath(base / os.path.expanduser(text))


def _checked(text: str, whole: str) -> str:
    """Return a word that git gets as an argument, which must not look like an option."""
    if text.startswith("-") or not text:
        whole = without_credentials(whole.strip())
        raise UsageError(f"{whole}: {text!r} is neither an address nor a revision")
    return text


def without_credentials(text: str) -> str:
    """Return a text in which no address of a repository has a password or a token."""
    return _CREDENTIALS.sub(r"\1", text)
