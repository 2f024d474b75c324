"""Commit the fixes of a source on a branch in a clone of its own; nothing is pushed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..verify.scratch import remove_folder
from .checkout import Git, check_out, find_commit
from .limited import SourceFailed, Status
from .record import Outcome
from .sources import Source
from .store import Store

BRANCH = "remat-migrate/fixes"
CLONES = "clones"
_NOBODY = ("-c", "user.name=remat-migrate", "-c", "user.email=remat-migrate@localhost")


def commit_patch(outcome: Outcome, root: Path, git: Git, store: Store) -> str:
    """Commit the patch of a source in a clone below the sweep's folder.

    Args:
        outcome: what checking the source gave.
        root: the clone that was checked, which is moved; or a folder, whose last commit is cloned.
        git: runs git.
        store: where the clone goes.

    Returns:
        The name of the branch.

    Raises:
        SourceFailed: there is no repository, the patch does not apply to its last commit, or
            clones cannot be stored there.
    """
    source = outcome.source
    if not store.is_local:
        raise SourceFailed(Status.FAILED, "clones are only made in a folder")
    if not outcome.commit:
        if not (root / ".git").exists():
            raise SourceFailed(Status.FAILED, "the folder is not a git repository")
        source = Source(source.address, "HEAD")
        root = git.scratch / "clone"
        check_out(source, find_commit(source, git), root, git)
    patch = git.scratch / "changes.patch"
    patch.write_bytes(outcome.patch)
    git.output(root, "apply", "--index", "--whitespace=nowarn", str(patch))
    git.output(root, "switch", "--quiet", "--create", BRANCH)
    identity = () if git.run(root, "config", "user.email").code == 0 else _NOBODY
    git.output(root, *identity, "commit", "--quiet", "--no-verify", "--message", _message(outcome))
    to = Path(store.path(f"{CLONES}/{outcome.source.name}"))
    if to.exists():
        remove_folder(to)
    os.makedirs(to.parent, exist_ok=True)
    shutil.move(root, to)
    return BRANCH


def _message(outcome: Outcome) -> str:
    findings = outcome.report["findings"]
    codes = sorted({row["code"] for row in findings if row["fix"]})
    return (
        f"Migrate jax.checkpoint to current JAX\n\nFixes {', '.join(codes)}, with remat-migrate.\n"
    )
