"""The processes that programs are run in, which take seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.execution import Workers


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    with Workers() as started:
        yield started
