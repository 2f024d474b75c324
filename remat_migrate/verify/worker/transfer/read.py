"""Nodes into values; `codec` says what a node is."""

from __future__ import annotations

import base64
import importlib
import os
import types
from typing import Any, Callable, Dict, List

import jax
import numpy as np

from . import arrays as codec_arrays
from . import names as codec_names

Node = Dict[str, Any]


class CannotLoad(Exception):
    """A saved value names something that this process does not have; the message says what."""


class Reader:
    """Makes the values of nodes, each once."""

    def __init__(self, folder: str, nodes: List[Node]) -> None:
        self.folder = folder
        self.nodes = nodes
        self.made: Dict[int, Any] = {}

    def child(self, written: Any) -> Any:
        """The value that stands in a node's place for a part of it."""
        if not isinstance(written, list):
            return written
        (index,) = written
        if index not in self.made:
            node = self.nodes[index]
            self.made[index] = _READ[node["is"]](self, node, index)
        return self.made[index]

    def children(self, written: List[Any]) -> List[Any]:
        """The values of several parts."""
        return [self.child(part) for part in written]

    def number(self, node: Node, index: int) -> Any:
        """An integer, float or complex number by its bits."""
        if node["is"] == "int":
            return int(node["hex"], 16)
        if node["is"] == "float":
            return float.fromhex(node["hex"])
        return complex(*map(float.fromhex, node["hex"]))

    def bytes(self, node: Node, index: int) -> Any:
        """Bytes."""
        return base64.b64decode(node["base64"])

    def immutable(self, node: Node, index: int) -> Any:
        """A tuple, frozenset, slice or range."""
        parts = self.children(node["of"])
        if node["is"] in ("slice", "range"):
            return (slice if node["is"] == "slice" else range)(*parts)
        return tuple(parts) if node["is"] == "tuple" else frozenset(parts)

    def mutable(self, node: Node, index: int) -> Any:
        """A list, set or dict. It stands before its parts, for one of them may be itself."""
        if node["is"] == "list":
            elements = self.made[index] = []
            elements.extend(self.child(part) for part in node["of"])
            return elements
        if node["is"] == "set":
            members = self.made[index] = set()
            members.update(self.children(node["of"]))
            return members
        items = self.made[index] = {}
        for key, value in node["of"]:
            items[self.child(key)] = self.child(value)
        return items

    def module(self, node: Node, index: int) -> Any:
        """A Python module."""
        return self.importing(lambda: importlib.import_module(node["name"]), node["name"])

    def named(self, node: Node, index: int) -> Any:
        """What a module holds under a name."""
        held = self.importing(
            lambda: codec_names.attribute(node["module"], node["name"]),
            "{}.{}".format(node["module"], node["name"]),
        )
        return codec_names.innermost(held) if node["inner"] else held

    def importing(self, find: Callable[[], Any], name: str) -> Any:
        """What `find` gives. Importing runs the user's code, which may raise anything."""
        try:
            return find()
        except CannotLoad:
            raise
        except Exception as error:
            message = "{} is not to be had: {}: {}".format(name, type(error).__name__, error)
            raise CannotLoad(message) from error

    def type(self, node: Node, index: int) -> Any:
        """The type of one of Python's constants."""
        return type(self.child(node["of"]))

    def member(self, node: Node, index: int) -> Any:
        """A member of an enumeration."""
        cls = self.child(node["class"])
        if "value" in node:
            return cls(self.child(node["value"]))
        if node["name"] not in cls.__members__:
            raise CannotLoad("{!r} has no member {}".format(cls, node["name"]))
        return cls[node["name"]]

    def array(self, node: Node, index: int) -> Any:
        """An array or numpy scalar."""
        bits = None
        if "file" in node:
            bits = np.load(os.path.join(self.folder, node["file"]), allow_pickle=False)
        return codec_arrays.restore(node["about"], bits)

    def objects(self, node: Node, index: int) -> Any:
        """An array of Python objects."""
        array = np.empty(tuple(node["shape"]), object)
        self.made[index] = array
        array.reshape(-1)[:] = self.flat_objects(node)
        return array

    def flat_objects(self, node: Node) -> Any:
        """The objects in a row, which numpy must not take for arrays of arrays."""
        flat = np.empty(len(node["of"]), object)
        for i, part in enumerate(node["of"]):
            flat[i] = self.child(part)
        return flat

    def dtype(self, node: Node, index: int) -> Any:
        """A numpy dtype."""
        return codec_arrays.dtype_named(node["name"])

    def abstract(self, node: Node, index: int) -> Any:
        """A `jax.ShapeDtypeStruct`."""
        shape, dtype = tuple(node["shape"]), self.child(node["dtype"])
        weak = {"weak_type": True} if node["weak"] else {}  # not known to the oldest versions
        make: Any = jax.ShapeDtypeStruct
        return make(shape, dtype, **weak)

    def device(self, node: Node, index: int) -> Any:
        """A device of this machine."""
        platform, number = node["platform"], node["id"]
        name = "device {} of {}".format(number, platform)
        devices = self.importing(lambda: jax.devices(platform), name)
        for device in devices:
            if device.id == number:
                return device
        raise CannotLoad("{} is not to be had".format(name))

    def structure(self, node: Node, index: int) -> Any:
        """The structure of a tree."""
        return jax.tree_util.tree_structure(self.child(node["of"]))

    def method(self, node: Node, index: int) -> Any:
        """A method together with its object."""
        owner = self.child(node["self"])
        name = node["name"]
        return self.importing(lambda: getattr(owner, name), "{!r}.{}".format(type(owner), name))

    def nested(self, node: Node, index: int) -> Any:
        """A function made inside another. It stands before what it closes over: maybe itself."""
        module, outer, steps = node["at"]
        place = codec_names.Nested(module, outer, tuple((name, mark) for name, mark in steps))
        code, namespace = self.importing(
            lambda: codec_names.code_of(place), ".".join([module, outer, *(s[0] for s in steps)])
        )
        names = [name for name, _ in node["cells"]]
        if not set(names) <= set(code.co_freevars):
            missing = ", ".join(sorted(set(names) - set(code.co_freevars)))
            raise CannotLoad("{}.{} closes no more over {}".format(module, outer, missing))
        cells = {name: codec_names.new_cell() for name in code.co_freevars}
        closure = tuple(cells[name] for name in code.co_freevars)
        function = types.FunctionType(code, namespace, code.co_name, None, closure)
        self.made[index] = function
        function.__module__ = module
        inside = "." + codec_names.INSIDE + "."
        function.__qualname__ = inside.join([outer, *(step[0] for step in steps)])
        function.__defaults__ = self.child(node["defaults"])
        function.__kwdefaults__ = self.child(node["keywords"])
        for name, content in node["cells"]:
            cells[name].cell_contents = self.child(content)
        return function

    def linen(self, node: Node, index: int) -> Any:
        """A Flax module, unbound."""
        cls = self.child(node["class"])
        fields = {name: self.child(part) for name, part in node["fields"]}
        return self.importing(lambda: cls(parent=None, **fields), repr(cls))

    def object(self, node: Node, index: int) -> Any:
        """An object, put together as `copy.copy` does."""
        make, arguments = self.child(node["make"]), self.children(node["with"])
        value = self.importing(lambda: make(*arguments), "an object of " + repr(make))
        self.made[index] = value
        if "state" in node:
            self.importing(
                lambda: self.put(value, node["state"]), "a state of " + repr(type(value))
            )
        for part in node.get("items", ()):
            value.append(self.child(part))
        for key, part in node.get("pairs", ()):
            value[self.child(key)] = self.child(part)
        return value

    def put(self, value: Any, state: Node) -> None:
        """Give an object its state, also where its class forbids to set attributes."""
        if "own" in state:
            value.__setstate__(self.child(state["own"]))
            return
        for name, part in state["dict"]:
            value.__dict__[name] = self.attribute(name, part)
        for name, part in state["slots"]:
            object.__setattr__(value, name, self.attribute(name, part))

    def attribute(self, name: str, written: Any) -> Any:
        """An attribute's value, which may be the one that a class has for all its objects."""
        if isinstance(written, dict):
            return vars(self.child(written["class"]))[name]
        return self.child(written)


_READ: Dict[str, Callable[[Reader, Node, int], Any]] = {
    "int": Reader.number,
    "float": Reader.number,
    "complex": Reader.number,
    "bytes": Reader.bytes,
    "tuple": Reader.immutable,
    "frozenset": Reader.immutable,
    "slice": Reader.immutable,
    "range": Reader.immutable,
    "list": Reader.mutable,
    "set": Reader.mutable,
    "dict": Reader.mutable,
    "module": Reader.module,
    "named": Reader.named,
    "type": Reader.type,
    "member": Reader.member,
    "array": Reader.array,
    "objects": Reader.objects,
    "dtype": Reader.dtype,
    "abstract": Reader.abstract,
    "device": Reader.device,
    "structure": Reader.structure,
    "method": Reader.method,
    "nested": Reader.nested,
    "linen": Reader.linen,
    "object": Reader.object,
}
