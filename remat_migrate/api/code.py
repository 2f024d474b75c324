"""Questions about code in general: values, scopes, tests, names, and text."""

from ..analysis.names.expected_failures import EXPECTED, expects_failure, in_test
from ..analysis.names.module import FunctionNode, Place, find_mentions, has_side_effects, parameters
from ..analysis.sites.references import import_of, is_used_elsewhere, reference_to
from ..analysis.values.bind import Arguments, positional_parameters
from ..analysis.values.evaluator import class_chain, targets_of
from ..analysis.values.values import (
    Applied,
    Bound,
    Class,
    Constant,
    External,
    Function,
    Parameter,
    Partial,
    Value,
    layers,
)
from ..errors import SourceError
from ..suppressions import Directive, suppressed_at
from ..text import Edit, SourceFile, Span
from ..text.source_file import read_bytes
