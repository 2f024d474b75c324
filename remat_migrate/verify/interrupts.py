"""Signals that ask the tool to end: raised as exceptions, so that copies and processes go first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than SIGINT.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.signal = number


def signal_of(interrupt: BaseException) -> int:
    """Return the number of the signal that raised an interrupt."""
    return interrupt.signal if isinstance(interrupt, Terminated) else int(signal.SIGINT)


@contextmanager
def raised_signals() -> Iterator[None]:
    """Raise `Terminated` in the main thread for signals that would end the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # An ignored signal stays ignored, as `nohup` wants it.
    replaced = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)
