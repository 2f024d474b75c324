"""The exceptions of remat-migrate. Their messages say what is wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path


class RematMigrateError(Exception):
    """The base of all errors that are shown to users without a traceback."""


class UsageError(RematMigrateError):
    """The command line is invalid: a missing path, an unknown code."""


class SettingsError(RematMigrateError):
    """`[tool.remat-migrate]` has an unknown key or an invalid value."""


class SourceError(RematMigrateError):
    """A file cannot be read, decoded or parsed. Reported as RMT000; the run continues.

    Attributes:
        path: the file.
        line: the line, from 1.
        column: the column in characters, from 1.
    """

    def __init__(self, path: Path, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.column = column


class BoundReached(RecursionError):
    """The code of a file is beyond a bound of the analysis. Reported as RMT000; the run
    continues.
    """


class ApplyError(RematMigrateError):
    """A fix could not be applied; the files it names are unchanged."""


class CodemodError(ApplyError):
    """A fix cannot be produced: Changes conflict, or the new code does not parse."""


class UnreadableCodeError(CodemodError):
    """LibCST cannot parse valid code, or parses it differently from Python."""


class VerificationError(RematMigrateError):
    """Verification or measurement cannot run."""


class PluginError(RematMigrateError):
    """A plug-in cannot be loaded, or provides something that is not a rule."""
