"""Set up the measuring worker in the process of a benchmark."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def intercept_checkpoints() -> None:
    """Intercept checkpoints, before any of the programs to measure is imported."""
    sys.path[:0] = [str(ROOT), str(ROOT / "fixtures" / "measured")]
    import jax

    from remat_migrate.measure.worker import interception, libraries
    from remat_migrate.measure.worker.instruments.compiled import choose_scheduler

    choose_scheduler(jax.__version__)
    interception.install()
    libraries.install()
