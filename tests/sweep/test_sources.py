"""Sources of a sweep: folders, addresses, revisions, and files that list them."""

from __future__ import annotations

import pytest

from remat_migrate.errors import UsageError
from remat_migrate.sweep.sources import Source, parse_sources

HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "address", "revision"),
    [
        ("https://example.com/a/b", "https://example.com/a/b", ""),
        ("https://example.com/a/b.git@v1.2", "https://example.com/a/b.git", "v1.2"),
        ("https://user@example.com/a/b", "https://example.com/a/b", ""),
        ("https://user:word@example.com/a@main", "https://example.com/a", "main"),
        ("git@example.com:a/b.git", "git@example.com:a/b.git", ""),
        ("git@example.com:a/b.git@feature/x", "git@example.com:a/b.git", "feature/x"),
        (f"ssh://git@example.com/a@{HASH}", "ssh://git@example.com/a", HASH),
        ("file:///repositories/a@v1", "file:///repositories/a", "v1"),
    ],
)
def test_addresses(text, address, revision):
    assert parse_sources([text]) == (Source(address, revision),)


def test_list(tmp_path):
    for name in ("plain", "with space", "at@sign", "repository"):
        (tmp_path / name).mkdir()
    listing = tmp_path / "sources.txt"
    listing.write_text(
        "# a comment\n\nplain\n'with space'   # another\nat@sign\nrepository v1\nrepository@v1\n"
        "repository@v2\nabsent\nhttps://example.com/a main\n"
    )
    expected = {
        Source(str(tmp_path / "plain")),
        Source(str(tmp_path / "with space")),
        Source(str(tmp_path / "at@sign")),
        Source(str(tmp_path / "repository"), "v1"),
        Source(str(tmp_path / "repository"), "v2"),
        Source(str(tmp_path / "absent")),
        Source("https://example.com/a", "main"),
    }
    found = parse_sources([str(listing), str(tmp_path / "plain")])
    assert set(found) == expected
    assert list(found) == sorted(found)
    assert len({source.name for source in found}) == len(found)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a b c", "expected ADDRESS"),
        ("'unclosed", "No closing quotation"),
        ("https://example.com/a --upload-pack=x", "neither an address nor a revision"),
        ("https://example.com/a@--exec=x", "neither an address nor a revision"),
        ("# nothing", "no sources"),
    ],
)
def test_wrong_lists(tmp_path, line, message):
    listing = tmp_path / "sources.txt"
    listing.write_text(line)
    with pytest.raises(UsageError, match=message):
        parse_sources([str(listing)])


def test_absent_folder():
    with pytest.raises(UsageError, match="no such file or folder"):
        parse_sources(["absent/folder"])
