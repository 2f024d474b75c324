"""Values into nodes; `codec` says what a node is."""

from __future__ import annotations

import base64
import contextlib
import copyreg
import enum
import functools
import io
import math
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Union

import jax
import numpy as np

from ..frameworks import flax_modules
from . import arrays as codec_arrays
from . import names as codec_names

MAIN = "__main__"
Node = Dict[str, Any]
Way = Tuple[str, ...]  # how a part is reached from the value: "['args']", "[2]", ".field"


class CannotSave(Exception):
    """A value has a part that no file can hold; the message says where and what kind."""


def place(way: Way) -> str:
    """Where in a value something stands, in words. Of a case, arguments count from 1."""
    if len(way) > 1 and way[0] == "['args']":
        return " ".join(["argument {}".format(int(way[1][1:-1]) + 1), *way[2:3]]) + "".join(way[3:])
    if len(way) > 1 and way[0] == "['kwargs']":
        return " ".join(["argument {}".format(way[1][2:-2]), *way[2:3]]) + "".join(way[3:])
    return "".join(way) or "the value"


def kind(value: Any) -> str:
    """What a value is, in words."""
    if codec_arrays.is_tracer(value):
        return "a value that JAX is tracing"
    if isinstance(value, io.IOBase):
        return "an open file"
    if isinstance(value, types.GeneratorType):
        return "a generator"
    if type(value).__name__ in ("lock", "RLock"):
        return "a lock"
    if isinstance(value, type) or codec_names.is_named(value):
        name = codec_names.own_name(value) or "without a name"
        what = "a class" if isinstance(value, type) else "a function"
        what = "a lambda" if name.endswith("<lambda>") else what
        if codec_names.INSIDE in name:
            what += " made inside a function"
        return "{}, {}.{}".format(what, codec_names.own_module(value), name)
    return "an object of {}.{}".format(type(value).__module__, type(value).__qualname__)


class Writer:
    """Turns values into nodes. Keeps what it has seen alive, for an id is only good as long."""

    def __init__(self, main: Optional[str]) -> None:
        self.main = main
        self.nodes: List[Node] = []
        self.files: Dict[str, Any] = {}
        self.seen: Dict[int, Tuple[int, Any]] = {}
        self.unfinished: Set[int] = set()  # cannot be referred to before all their parts are there

    def child(self, value: Any, way: Way) -> Any:
        """The value itself where JSON can hold it, else a reference to its node."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int and abs(value) < 2**63:
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if id(value) in self.seen:
            index = self.seen[id(value)][0]
            if index in self.unfinished:
                raise self.refusal(value, way, "it contains itself")
            return [index]
        index = len(self.nodes)
        self.nodes.append({})
        self.seen[id(value)] = (index, value)
        self.nodes[index].update(self.node(value, way, index))
        return [index]

    def node(self, value: Any, way: Way, index: int) -> Node:
        """The node of a value that JSON has no form for."""
        if codec_arrays.is_tracer(value):
            raise self.refusal(value, way)
        write = _EXACT.get(type(value))
        if write is not None:
            return write(self, value, way, index)
        for holds, write in _LIKE:
            if holds(value):
                return write(self, value, way, index)
        return self.reduced(value, way, index)

    def refusal(self, value: Any, way: Way, why: str = "") -> CannotSave:
        """The error that says that a part cannot be saved."""
        reason = " ({})".format(why) if why else ""
        return CannotSave("{}: {}{}".format(place(way), kind(value), reason))

    @contextlib.contextmanager
    def whole(self, index: int) -> Iterator[None]:
        """While parts are written without which the value cannot be made."""
        self.unfinished.add(index)
        yield
        self.unfinished.discard(index)

    def number(self, value: Any, way: Way, index: int) -> Node:
        """An integer or float beyond JSON's, or a complex number."""
        if type(value) is int:
            return {"is": "int", "hex": hex(value)}
        if type(value) is complex:
            return {"is": "complex", "hex": [value.real.hex(), value.imag.hex()]}
        return {"is": "float", "hex": value.hex()}

    def bytes(self, value: Any, way: Way, index: int) -> Node:
        """Bytes."""
        return {"is": "bytes", "base64": base64.b64encode(value).decode("ascii")}

    def sequence(self, value: Any, way: Way, index: int) -> Node:
        """A tuple, list, set or frozenset."""
        name = type(value).__name__
        if name not in ("tuple", "frozenset"):
            return {"is": name, "of": self.elements(value, way)}
        with self.whole(index):
            return {"is": name, "of": self.elements(value, way)}

    def elements(self, values: Any, way: Way) -> List[Any]:
        """What stands in a sequence."""
        return [self.child(value, (*way, "[{}]".format(i))) for i, value in enumerate(values)]

    def mapping(self, value: Any, way: Way, index: int) -> Node:
        """A dictionary."""
        return {"is": "dict", "of": self.pairs(value.items(), way)}

    def pairs(self, items: Any, way: Way) -> List[List[Any]]:
        """Keys and values."""
        written = []
        for i, (key, value) in enumerate(items):
            name = repr(key) if isinstance(key, (str, int)) else "key {}".format(i + 1)
            inside = (*way, "[{}]".format(name))
            written.append([self.child(key, inside), self.child(value, inside)])
        return written

    def span(self, value: Any, way: Way, index: int) -> Node:
        """A slice or range."""
        with self.whole(index):
            ends = [self.child(x, way) for x in (value.start, value.stop, value.step)]
        return {"is": type(value).__name__, "of": ends}

    def constant(self, value: Any, way: Way, index: int) -> Node:
        """One of Python's constants."""
        return {"is": "named", "module": "builtins", "name": repr(value), "inner": False}

    def module(self, value: Any, way: Way, index: int) -> Node:
        """A Python module."""
        return {"is": "module", "name": self.module_name(value.__name__, value, way)}

    def module_name(self, name: str, value: Any, way: Way) -> str:
        """The name under which another process can import a module."""
        if name != MAIN:
            return name
        if self.main is None:
            raise self.refusal(value, way, "of the script that is being run")
        return self.main

    def member(self, value: Any, way: Way, index: int) -> Node:
        """A member of an enumeration, or several flags at once."""
        cls, name = self.child(type(value), way), getattr(value, "_name_", None)
        if isinstance(name, str) and type(value).__members__.get(name) is value:
            return {"is": "member", "class": cls, "name": name}
        with self.whole(index):
            return {"is": "member", "class": cls, "value": self.child(value.value, way)}

    def array(self, value: Any, way: Way, index: int) -> Node:
        """An array or numpy scalar."""
        if type(value) is np.ndarray and value.dtype == np.dtype(object):
            return {
                "is": "objects",
                "shape": list(value.shape),
                "of": self.elements(value.flat, way),
            }
        try:
            about, bits = codec_arrays.describe(value)
        except (TypeError, RuntimeError) as error:
            raise self.refusal(value, way, str(error)) from error
        if bits is None:
            return {"is": "array", "about": about}
        name = "{}.npy".format(index)
        self.files[name] = bits
        return {"is": "array", "about": about, "file": name}

    def dtype(self, value: Any, way: Way, index: int) -> Node:
        """A numpy dtype."""
        return {"is": "dtype", "name": codec_arrays.dtype_name(value)}

    def abstract(self, value: Any, way: Way, index: int) -> Node:
        """A `jax.ShapeDtypeStruct`; where it would lie is left out."""
        weak = bool(getattr(value, "weak_type", False))
        dtype = self.child(value.dtype, way)
        return {"is": "abstract", "shape": list(value.shape), "weak": weak, "dtype": dtype}

    def device(self, value: Any, way: Way, index: int) -> Node:
        """A device, by its platform and number."""
        return {"is": "device", "platform": value.platform, "id": value.id}

    def structure(self, value: Any, way: Way, index: int) -> Node:
        """The structure of a tree."""
        with self.whole(index):
            tree = jax.tree_util.tree_unflatten(value, [0] * value.num_leaves)
            return {"is": "structure", "of": self.child(tree, way)}

    def method(self, value: Any, way: Way, index: int) -> Node:
        """A method together with its object."""
        with self.whole(index):
            owner = self.child(value.__self__, (*way, ".__self__"))
        return {"is": "method", "self": owner, "name": value.__name__}

    def named(self, value: Any, way: Way, index: int) -> Node:
        """A class, or something with a name that is called."""
        for constant in (None, ..., NotImplemented):
            if value is type(constant):
                return {"is": "type", "of": self.child(constant, way)}
        found = codec_names.find(value)
        if found is not None:
            module = self.module_name(found.module, value, way)
            return {"is": "named", "module": module, "name": found.name, "inner": found.inner}
        if isinstance(value, types.FunctionType):
            return self.nested(value, way)
        if isinstance(value, type) or not codec_names.is_object(value):
            raise self.refusal(value, way)
        return self.reduced(value, way, index)

    def nested(self, value: Any, way: Way) -> Node:
        """A function made inside another, with what it closes over."""
        where = codec_names.find_nested(value)
        if where is None:
            nested = codec_names.INSIDE in value.__qualname__ or value.__name__ == "<lambda>"
            raise self.refusal(value, way, "" if nested else "another thing is found by its name")
        cells = []
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            with contextlib.suppress(ValueError):  # a cell that nothing was put into yet
                content = cell.cell_contents
                cells.append([name, self.child(content, (*way, " closing over " + name))])
        return {
            "is": "nested",
            "at": [self.module_name(where.module, value, way), where.outer, where.steps],
            "cells": cells,
            "defaults": self.child(value.__defaults__, (*way, ".__defaults__")),
            "keywords": self.child(value.__kwdefaults__, (*way, ".__kwdefaults__")),
        }

    def linen(self, value: Any, way: Way, index: int) -> Node:
        """A Flax module, without the parent and the variables that it may be bound to."""
        module = flax_modules.unbound(value)
        self.seen[id(module)] = (index, module)
        with self.whole(index):
            cls = self.child(flax_modules.nearest_class(module, codec_names.find), way)
            parts = [
                [name, self.child(part, (*way, "." + name))]
                for name, part in flax_modules.fields(module)
            ]
        return {"is": "linen", "class": cls, "fields": parts}

    def reduced(self, value: Any, way: Way, index: int) -> Node:
        """An object as `copy.copy` takes it apart: how to make it, and the state to put into it."""
        parts = self.taken_apart(value, way)
        if isinstance(parts, str):
            module = codec_names.module_holding(value, parts)
            if module is None:
                raise self.refusal(value, way, "it is found by no name")
            module = self.module_name(module, value, way)
            return {"is": "named", "module": module, "name": parts, "inner": False}
        make, arguments, state, items, pairs = (*parts, None, None, None)[:5]
        bare = len(arguments) == 1 and arguments[0] is type(value)
        if bare and not state and items is None and pairs is None:
            found = codec_names.find(value)  # a mark that only its identity tells from others
            if found is not None:
                module = self.module_name(found.module, value, way)
                return {"is": "named", "module": module, "name": found.name, "inner": False}
        with self.whole(index):
            node: Node = {"is": "object", "make": self.child(make, way)}
            node["with"] = [self.child(argument, way) for argument in arguments]
        if state is not None:
            node["state"] = self.state(value, state, way)
        if items is not None:
            node["items"] = self.elements(items, way)
        if pairs is not None:
            node["pairs"] = self.pairs(pairs, way)
        return node

    def taken_apart(self, value: Any, way: Way) -> Union[str, Tuple[Any, ...]]:
        """What an object's type gives for its copying: parts, or the name it is known by."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts: Any = reduce(value) if reduce is not None else value.__reduce_ex__(4)
        except RecursionError:
            raise
        except Exception as error:  # each type says in its own way that it cannot be copied
            raise self.refusal(value, way, str(error)) from error
        if len(parts) > 5 and not isinstance(parts, str) and parts[5] is not None:
            raise self.refusal(value, way, "it has a way of its own to take back its state")
        return parts  # type: ignore[no-any-return]

    def state(self, value: Any, state: Any, way: Way) -> Node:
        """Attributes by name where the class leaves that to Python, else what it gave, as it is."""
        if hasattr(type(value), "__setstate__"):
            return {"own": self.child(state, way)}
        both = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        node = {}
        for name, attributes in zip(("dict", "slots"), both):
            if not (attributes is None or type(attributes) is dict):
                raise self.refusal(value, way, "its state is no dictionary")
            node[name] = [
                [key, self.attribute(value, key, part, (*way, "." + str(key)))]
                for key, part in (attributes or {}).items()
            ]
        return node

    def attribute(self, owner: Any, name: str, value: Any, way: Way) -> Any:
        """An attribute of an object; maybe the function that its class has under the same name."""
        if isinstance(value, types.FunctionType):
            for cls in type(owner).__mro__:
                if vars(cls).get(name) is value:
                    return {"class": self.child(cls, way)}
        return self.child(value, way)


_Write = Callable[[Writer, Any, Way, int], Node]

_EXACT: Dict[type, _Write] = {
    int: Writer.number,
    float: Writer.number,
    complex: Writer.number,
    bytes: Writer.bytes,
    tuple: Writer.sequence,
    list: Writer.sequence,
    set: Writer.sequence,
    frozenset: Writer.sequence,
    dict: Writer.mapping,
    slice: Writer.span,
    range: Writer.span,
    type(...): Writer.constant,
    type(NotImplemented): Writer.constant,
    types.ModuleType: Writer.module,
    types.MethodType: Writer.method,
    jax.ShapeDtypeStruct: Writer.abstract,
    jax.tree_util.PyTreeDef: Writer.structure,
}

# Tried in this order.
_LIKE: Tuple[Tuple[Callable[[Any], bool], _Write], ...] = (
    (codec_arrays.is_array, Writer.array),
    (lambda value: isinstance(value, np.dtype), Writer.dtype),
    (lambda value: isinstance(value, enum.Enum), Writer.member),
    (flax_modules.is_module, Writer.linen),
    (codec_arrays.is_device, Writer.device),
    (codec_names.is_method_of_value, Writer.method),
    (lambda value: isinstance(value, functools.partial), Writer.reduced),
    (codec_names.is_named, Writer.named),
)
