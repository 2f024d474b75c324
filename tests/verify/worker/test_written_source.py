"""Arguments as source: what a written test builds must be what the unit was called with."""

from __future__ import annotations

import types

from worker_package import load_worker

source = load_worker("written.source")


def test_namespaces():
    settings = types.SimpleNamespace(rate=0.5, inner=types.SimpleNamespace(name="a"))
    text = source.Writer().expression(settings, "case")
    assert "restore" not in text
    assert eval(text, {"types": types}) == settings
