"""Text of files: decoding, positions, spans, edits."""

from .edits import Edit, apply_edits
from .text import SourceFile, Span, read_source

__all__ = ["Edit", "SourceFile", "Span", "apply_edits", "read_source"]
