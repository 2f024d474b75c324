"""The errors of remat-migrate: one hierarchy, each saying what was wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path


class RematMigrateError(Exception):
    """The base of every error that is shown to a user as a message, without a traceback."""


class UsageError(RematMigrateError):
    """The command line asks for something that cannot be: a missing path, an unknown code."""


class SettingsError(RematMigrateError):
    """`[tool.remat-migrate]` holds an unknown key or a value of the wrong type."""


class SourceError(RematMigrateError):
    """One file cannot be read, decoded or parsed; reported as RMT000, the run goes on.

    Attributes:
        path: the file.
        line: where, counted from 1; 1 when the whole file is meant.
        column: where, counted from 1 in characters.
    """

    def __init__(self, path: Path, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.column = column


class ApplyError(RematMigrateError):
    """A fix could not be applied or written; the files it names are as they were."""


class CodemodError(ApplyError):
    """A fix cannot be written: Changes contradict each other, or the new code does not parse."""


class UnreadableCodeError(CodemodError):
    """LibCST cannot parse code that Python can, or reads it in another way."""


class VerificationError(RematMigrateError):
    """Verification itself could not run."""


class PluginError(RematMigrateError):
    """A package that offers rules cannot be loaded, or offers something that is no rule."""
