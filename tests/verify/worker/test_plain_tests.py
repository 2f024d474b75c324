"""Test files run without pytest: the likeliest test first, failing ones counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from worker_package import load_worker

project_tests = load_worker("recording.project_tests")

TESTS = """\
import unittest

calls = []


def test_other():
    calls.append("other")


def test_with_fixture(tmp_path):
    calls.append("fixture")


def test_block():
    calls.append("block")


class Cases(unittest.TestCase):
    def setUp(self):
        self.x = 1

    def test_fails(self):
        calls.append(("block", self.x))
        self.fail()
"""


def test_runs_the_tests_that_name_a_unit_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_plain_sample.py").write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "")
    selection = project_tests.Selection({"seconds": 20, "units": [], "names": [["block"]]})
    assert project_tests._run_plainly("test_plain_sample.py", selection) == 3
    calls = sys.modules.pop("test_plain_sample").calls
    assert sorted(calls[:2], key=str) == [("block", 1), "block"]
    assert calls[2:] == ["other"]
    assert (selection.run, selection.failed) == (3, 1)


def test_other_files_are_left_out_when_all_units_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_named.py").write_text("# block\n")
    (tmp_path / "test_near.py").write_text("# net\n")
    monkeypatch.chdir(tmp_path)
    request = {"seconds": 20, "units": ["block"], "names": [["block"], ["net"]]}
    selection = project_tests.Selection(request)
    assert not selection.is_over_at("test_near.py")
    monkeypatch.setattr(selection, "_has_all", lambda: True)
    assert not selection.is_over_at("test_named.py")
    assert selection.is_over_at("test_near.py")
