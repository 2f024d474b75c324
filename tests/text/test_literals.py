"""String literals: their value, and their source with parts removed."""

from __future__ import annotations

import ast

import pytest

from remat_migrate.analysis.flag.string_literals import HOLE, read_literal

LITERALS = [
    '"plain"',
    "'it\\'s'",
    "\"a\" 'b'",
    '"a"  # c\n "b"',
    '"a" \\\n "b"',
    '"""a\nb "quoted" \\\nc"""',
    r'r"a\nb\"c"',
    r'"\x41\u00e9\N{BULLET}\101\t\q"',
    'R"""\\d"""',
    "u'x'",
    "''",
    '"" "a"',
]


@pytest.mark.parametrize("segment", LITERALS)
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_text_is_what_python_reads(segment):
    literal = read_literal(segment)
    assert literal is not None
    assert literal.value == ast.literal_eval(f"({segment})")
    assert len(literal.spans) == len(literal.value)


# An unescaped backslash would start an escape with the character that follows the removed one.
@pytest.mark.parametrize("segment", [s for s in LITERALS if s[0] not in "rR" and "\\q" not in s])
def test_removing_one_character(segment):
    literal = read_literal(segment)
    assert literal is not None
    for index in range(len(literal.value)):
        new = literal.without([(index, index + 1, "")])
        expected = literal.value[:index] + literal.value[index + 1 :]
        assert ast.literal_eval(f"({new})") == expected


@pytest.mark.parametrize(
    ("segment", "value"),
    [
        ('f"a {x} b"', f"a {HOLE} b"),
        ("f\"{{a}} {x!r:>{w}} {d['k']}\"", f"{{a}} {HOLE} {HOLE}"),
        ("f'{f(1, {2: 3})}' \"b\"", f"{HOLE}b"),
    ],
)
def test_f_strings_have_holes(segment, value):
    literal = read_literal(segment)
    assert literal is not None
    assert literal.value == value


def test_an_empty_literal_is_removed():
    segment = '"python t.py "\n    "--old "\n    "--lr 3"'
    literal = read_literal(segment)
    assert literal is not None
    start = literal.value.index("--old ")
    assert literal.without([(start, start + 6, "")]) == '"python t.py "\n    "--lr 3"'
    assert literal.without([(0, len(literal.value), "")]).startswith('""')


def test_bytes_are_not_text():
    assert read_literal('b"x"') is None
