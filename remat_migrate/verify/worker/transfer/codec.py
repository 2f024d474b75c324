"""Values as files, and back: JSON for what they are made of, one .npy file per array; never pickle.

A folder holds `value.json`: `{"format", "root", "nodes"}`. None, booleans, strings, small integers
and finite floats stand in it as they are; anything else is a node of its own, and where it is used
stands `[index]`, so that what is shared stays shared and a value may contain itself. Classes and
functions are written by name and found again by importing the module; objects as their class and
state, by the protocol that `copy.copy` follows too. Flax modules are written without what they are
bound to.
"""

from __future__ import annotations

import json
import os
from typing import Any, Optional

import numpy as np

from .read import CannotLoad, Reader
from .write import CannotSave, Writer

__all__ = ["CannotLoad", "CannotSave", "load", "save"]

FORMAT = 1
DOCUMENT = "value.json"


def save(value: Any, folder: Any, main: Optional[str] = None) -> None:
    """Write a value into a folder, which is created; nothing is written if it cannot be saved.

    `main` is the module name to write in place of `__main__`: the same file as other processes
    import it. Raises CannotSave, and OSError when the disk does not take it.
    """
    writer = Writer(main)
    try:
        root = writer.child(value, ())
    except CannotSave:
        raise
    except RecursionError:
        raise CannotSave("the value: nested too deeply") from None
    except Exception as error:  # taking objects apart runs code of theirs
        message = "the value: {}: {}".format(type(error).__name__, error)
        raise CannotSave(message) from error
    os.makedirs(str(folder), exist_ok=True)
    for name, array in writer.files.items():
        np.save(os.path.join(str(folder), name), array, allow_pickle=False)
    document = {"format": FORMAT, "root": root, "nodes": writer.nodes}
    with open(os.path.join(str(folder), DOCUMENT), "w", encoding="ascii") as file:
        json.dump(document, file)


def load(folder: Any) -> Any:
    """The value that was saved in a folder; modules that it names are imported.

    Raises CannotLoad where a name is not found any more or a class does not take its state, and
    OSError where there is no such folder.
    """
    with open(os.path.join(str(folder), DOCUMENT), encoding="ascii") as file:
        document = json.load(file)
    if document["format"] != FORMAT:
        raise CannotLoad("written in format {}, not {}".format(document["format"], FORMAT))
    return Reader(str(folder), document["nodes"]).child(document["root"])
