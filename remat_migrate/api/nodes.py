"""Functions of LibCST nodes. Import it where a node is rewritten: it loads LibCST."""

from ..codemod.expressions import without_middle
