"""Text of files: decoding, positions, spans, and edits."""

from .edits import Edit, OffsetMap, Span, apply_edits
from .source_file import SourceFile, first_line, read_source

__all__ = ["Edit", "OffsetMap", "SourceFile", "Span", "apply_edits", "first_line", "read_source"]
