"""Sweeps of git repositories and folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support import write_files

from remat_migrate.settings import Options
from remat_migrate.sweep.checkout import tree_size
from remat_migrate.sweep.job import Plan, run_sweep
from remat_migrate.sweep.limited import Limits
from remat_migrate.sweep.sources import Source, parse_sources
from remat_migrate.sweep.store import Store, StoreFailed
from remat_migrate.sweep.totals import write_results

ROOT = Path(__file__).parents[2]
LIMITS = Limits(120, 4 << 30, 1 << 30)
RESULTS = ("record.json", "report.json", "findings.sarif", "changes.patch")

OLD = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def block(x):
    return jnp.sin(x)


def loss(x, train):
    return jnp.sum(jax.checkpoint(stage, concrete=True)(x, train))


def stage(x, train):
    return jnp.sin(x) if train else x
"""


def git(folder, *arguments):
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    command = ("git", *identity, "-C", str(folder), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders and repositories to sweep."""
    base = tmp_path_factory.mktemp("sources")
    git(base, "init", "--quiet", "--initial-branch=main", "models")
    models = base / "models"
    commit(models, {"pyproject.toml": "", "models/net.py": OLD, "models/__init__.py": ""})
    git(models, "tag", "v1")
    commit(models, {"models/net.py": OLD.replace(", concrete=True", ", static_argnums=(1,)")})
    shutil.copytree(ROOT / "fixtures/old_trainer", base / "trainer")
    (base / "empty").mkdir()
    return base


@pytest.fixture(scope="module")
def sources(places):
    models = (places / "models").as_uri()
    return (
        Source(models),
        Source(models, "v1"),
        Source(models, git(places / "models", "rev-parse", "--short=12", "v1")),
        Source(str(places / "models" / ".git"), "v1"),
        Source(str(places / "trainer")),
        Source(str(places / "empty")),
        Source(str(places / "absent")),
        Source(models, "v9"),
        Source((places / "absent").as_uri()),
    )


def plan_for(out, **more):
    return Plan(Store(out), Options(), more.pop("limits", LIMITS), **more)


def swept(sources, plan, workers=2):
    briefs = {}
    run_sweep(sources, plan, workers, lambda brief: briefs.update({brief.source: brief}))
    assert briefs.keys() == set(sources)
    return briefs


@pytest.fixture(scope="module")
def first(sources, tmp_path_factory):
    """The folder of a sweep, and what it said."""
    out = tmp_path_factory.mktemp("out")
    briefs = swept(sources, plan_for(out))
    return out, briefs, write_results(sorted(sources), plan_for(out).store)


def results(out, source):
    folder = out / "repositories" / source.name
    return {name: p.read_bytes() for name in RESULTS if (p := folder / name).exists()}


def record(out, source):
    return json.loads(results(out, source)["record.json"])


def run_alone(folder):
    command = (sys.executable, "-P", "-m", "remat_migrate")
    options = ("--no-cache", "--output-format", "json")
    report = subprocess.run((*command, "report", ".", *options), cwd=folder, capture_output=True)
    patch = subprocess.run((*command, "--diff", "--no-cache"), cwd=folder, capture_output=True)
    return report.returncode, json.loads(report.stdout), patch.stdout


def test_same_as_single_runs(first, sources, places, tmp_path):
    out, briefs, _ = first
    head, tag, short, bare, trainer, empty, *_ = sources
    git(tmp_path, "clone", "--quiet", str(places / "models"), "head")
    git(tmp_path, "clone", "--quiet", "--branch=v1", str(places / "models"), "v1")
    for source, folder in {
        head: tmp_path / "head",
        tag: tmp_path / "v1",
        short: tmp_path / "v1",
        bare: tmp_path / "v1",
        trainer: places / "trainer",
        empty: places / "empty",
    }.items():
        assert briefs[source].status == "checked", briefs[source].reason
        code, report, patch = run_alone(folder)
        found = results(out, source)
        assert json.loads(found["report.json"]) == report
        assert found.get("changes.patch", b"") == patch
        assert record(out, source)["exit_code"] == code
    assert record(out, tag)["commit"] == git(places / "models", "rev-parse", "v1")
    assert {f["code"] for f in record(out, tag)["findings"]} >= {"RMT101"}


def test_what_cannot_be_checked(first, sources):
    _, briefs, totals = first
    *_, absent, unknown, nowhere = sources
    assert {briefs[one].status for one in (absent, unknown, nowhere)} == {"missing"}
    assert "no branch, tag, or whole hash v9" in briefs[unknown].reason
    assert [row["source"] for row in totals.failed] == sorted(
        one.address for one in (absent, unknown, nowhere)
    )


def test_page_and_links(first):
    out, _, totals = first
    page = (out / "index.html").read_text()
    links = re.findall(r'href="([^"#][^"]*)"', page)
    assert len([link for link in links if link.endswith(".patch")]) == totals.patches == 4
    assert all((out / link).is_file() for link in links)
    assert "no branch, tag, or whole hash v9" in page


def test_queries_of_the_documentation(first, monkeypatch):
    out, _, totals = first
    monkeypatch.chdir(out)
    page = (ROOT / "docs/how-to/sweep.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    breaks, _, proved, checkpoints, unchecked = [duckdb.sql(one).fetchall() for one in queries]
    assert sum(row[2] for row in breaks) == totals.findings["error"]
    assert len(proved) == totals.statuses.total()
    assert sum(row[2] for row in checkpoints) == totals.risks.total()
    assert sum(row[2] for row in unchecked) == len(totals.failed)


@pytest.mark.slow
def test_other_order_and_one_worker(first, sources, tmp_path):
    out, *_ = first
    swept(tuple(reversed(sources)), plan_for(tmp_path), workers=1)
    for source in sources:
        assert results(tmp_path, source) == results(out, source)


def test_repeated(places, tmp_path):
    models = tmp_path / "models"
    git(tmp_path, "clone", "--quiet", str(places / "models"), "models")
    folder = tmp_path / "folder"
    shutil.copytree(places / "trainer", folder)
    sources = (Source(models.as_uri()), Source(models.as_uri(), "v1"), Source(str(folder)))
    plan = plan_for(tmp_path / "out")
    assert not any(brief.kept for brief in swept(sources, plan).values())
    before = {source: results(tmp_path / "out", source) for source in sources}
    assert all(brief.kept for brief in swept(sources, plan).values())
    commit(models, {"new.py": OLD})
    with (folder / "trainer" / "blocks.py").open("a") as file:
        file.write("\n# changed\n")
    kept = [brief.kept for brief in swept(sources, plan).values()]
    assert [kept.count(True), kept.count(False)] == [1, 2]
    assert results(tmp_path / "out", sources[1]) == before[sources[1]]
    assert record(tmp_path / "out", sources[0])["commit"] != before[sources[0]]
    other = replace(plan, options=Options(select=("RMT2",)))
    assert not any(brief.kept for brief in swept(sources, other).values())


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (replace(LIMITS, seconds=0.01), "timeout"),
        (replace(LIMITS, memory=1 << 20), "memory"),
        (replace(LIMITS, size=100), "too-large"),
    ],
)
def test_limits(sources, tmp_path, limits, status):
    brief = swept(sources[:1], plan_for(tmp_path, limits=limits))[sources[0]]
    assert (brief.status, record(tmp_path, sources[0])["status"]) == (status, status)
    # The next sweep tries it again.
    assert swept(sources[:1], plan_for(tmp_path))[sources[0]].status == "checked"


def test_more_paths_than_fit_on_a_disk(tmp_path):
    """Twelve trees, each of which has the one below it ten times: 10^12 long paths."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "bomb")
    bomb = tmp_path / "bomb"
    below = git(bomb, "hash-object", "-w", "-t", "blob", "/dev/null")
    entry = f"100644 blob {below}\tfile"
    for _ in range(12):
        names = ("",) if entry.endswith("file") else [str(digit) * 200 for digit in range(10)]
        lines = "".join(f"{entry}{name}\n" for name in names)
        made = subprocess.run(
            ("git", "-C", str(bomb), "mktree"),
            input=lines,
            check=True,
            capture_output=True,
            text=True,
        )
        entry = f"040000 tree {made.stdout.strip()}\t"
    tree = entry.split()[2]
    git(bomb, "update-ref", "refs/heads/main", git(bomb, "commit-tree", tree, "-m", "bomb"))
    source = Source(bomb.as_uri())
    plan = plan_for(tmp_path / "out")
    brief = swept((source,), plan)[source]
    assert brief.status == "too-large", brief.reason


def test_size_of_many_small_files():
    entries = ("100644 blob ab 1\ta/b/c", "100644 blob ab 5000\ta/b/d", "160000 commit ab -\tz")
    listing = "\0".join((*entries, ""))
    assert tree_size(listing) == 2 * 4096 + 4096 + 5000 + 4096


@pytest.mark.parametrize("credentials", ["user:S3CRET@", "S3CRET@"], ids=["both", "token"])
def test_credentials(tmp_path, credentials):
    [source] = parse_sources([f"http://{credentials}127.0.0.1:1/a/b@main"])
    assert source.address == "http://127.0.0.1:1/a/b"
    brief = swept((source,), plan_for(tmp_path))[source]
    write_results((source,), plan_for(tmp_path).store)
    assert brief.status == "missing"
    said = f"{brief} {source} {list(tmp_path.rglob('*'))}"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert "S3CRET" not in said
    assert b"S3CRET" not in written


def test_nothing_of_a_repository_is_executed(tmp_path):
    hostile = tmp_path / "hostile"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "hostile")
    commit(hostile, {"net.py": OLD, ".gitattributes": "*.py filter=mark\n"})
    mark = tmp_path / "mark"
    for hook in ("post-checkout", "pre-commit", "post-commit", "post-index-change"):
        path = hostile / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    git(hostile, "config", "filter.mark.smudge", f"touch {mark}")
    git(hostile, "config", "core.fsmonitor", f"touch {mark}")
    source = Source(str(hostile / ".git"))
    assert swept((source,), plan_for(tmp_path / "out"))[source].status == "checked"
    assert not mark.exists()


def test_command(places, tmp_path):
    listing = tmp_path / "sources.txt"
    listing.write_text(f"{(places / 'models').as_uri()} v1\n{places / 'trainer'}\n")
    command = (sys.executable, "-P", "-m", "remat_migrate", "sweep")

    def sweep(*arguments):
        done = subprocess.run(
            (*command, *arguments, "--workers=1"), cwd=tmp_path, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    code, said = sweep("sources.txt", "--out=out")
    assert code == 1, said
    assert "Checked 2 of 2 sources." in said
    assert "out/index.html" in said
    code, said = sweep("sources.txt", "--out=out", "--exit-zero")
    assert code == 0
    assert "2 of them unchanged" in said
    assert sweep("sources.txt", "--out=out", "--select=RMT9")[0] == 1
    code, said = sweep("absent.txt", "--out=out")
    assert code == 2
    assert "no such file or folder" in said


def test_file_names_that_are_not_text(tmp_path):
    """Names with line breaks, markup, and bytes that are not UTF-8, in a folder of such a name."""
    folder = tmp_path / os.fsdecode(b"old \xff")
    names = (b"new\nline.py", b'quo"te.py', b"<b>.py", b"bad\xff.py")
    write_files(folder, {os.fsdecode(name): OLD for name in names})
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "empty")
    sources = (Source(str(folder)), Source((tmp_path / "empty").as_uri()))
    plan = plan_for(tmp_path / "out")
    briefs = swept(sources, plan)
    assert briefs[sources[1]].reason == "the repository has no commits"
    totals = write_results(sources, plan.store)
    assert totals.findings["error"] == len(names)
    rows = duckdb.sql(f"SELECT DISTINCT path FROM '{tmp_path}/out/findings.parquet'").fetchall()
    assert {row[0] for row in rows} == {"new\nline.py", 'quo"te.py', "<b>.py", "bad\ufffd.py"}
    assert "old \ufffd" in (tmp_path / "out/index.html").read_text()


def test_results_that_cannot_be_written(sources, tmp_path):
    """A folder where a file should be: the source has a record of that, or the sweep ends."""
    head, tag, *_ = sources
    blocked = tmp_path / "repositories" / head.name
    (blocked / "report.json" / "inner").mkdir(parents=True)
    briefs = swept((head, tag), plan_for(tmp_path))
    assert (briefs[head].status, briefs[tag].status) == ("failed", "checked")
    assert "report.json" in record(tmp_path, head)["reason"]
    (blocked / "record.json").unlink()
    (blocked / "record.json").mkdir()
    (blocked / "record.json" / "inner").touch()
    with pytest.raises(StoreFailed, match=re.escape(str(tmp_path))):
        swept((head, tag), plan_for(tmp_path))


@pytest.mark.slow
def test_killed_and_started_again(places, sources, tmp_path):
    """The client, and with it the scheduler, is killed; the same command goes on."""
    listing = tmp_path / "sources.txt"
    lines = [f"{source.address} {source.revision}" for source in sources[:6]]
    for number in range(12):
        shutil.copytree(places / "trainer", tmp_path / f"copy{number}")
        lines.append(str(tmp_path / f"copy{number}"))
    listing.write_text("\n".join(lines))
    command = (sys.executable, "-P", "-m", "remat_migrate", "sweep", str(listing), "--workers=2")
    process = subprocess.Popen((*command, "--out", str(tmp_path / "killed")))
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "killed").glob("repositories/*/done.json"))) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    done = subprocess.run((*command, "--out", str(tmp_path / "killed")), capture_output=True)
    assert re.search(rb"\(\d+ of them unchanged", done.stdout), done.stderr
    subprocess.run((*command, "--out", str(tmp_path / "whole")), check=False)
    names = {path.name for path in (tmp_path / "whole/repositories").iterdir()}
    assert names == {path.name for path in (tmp_path / "killed/repositories").iterdir()}
    for name in names:
        for file in RESULTS:
            one, other = (
                tmp_path / out / "repositories" / name / file for out in ("whole", "killed")
            )
            assert one.exists() == other.exists()
            assert not one.exists() or one.read_bytes() == other.read_bytes()
    assert not list((tmp_path / "killed").rglob("*.part"))
