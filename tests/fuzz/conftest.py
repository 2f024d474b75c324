"""The processes that run programs, shared by all tests because starting them takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.execution import Workers


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    with Workers() as started:
        yield started
