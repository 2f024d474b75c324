"""Import a unit's module and find the object that its name refers to."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple

from . import shim
from .comparison import results
from .environment import stand_ins
from .frameworks import flax_modules

# The options of checkpoint functions.
_OPTIONS = frozenset(
    ["concrete", "policy", "prevent_cse", "static_argnums", "variables", "rngs", "methods"]
)


class Unit(NamedTuple):
    """The object that a name refers to.

    Attributes:
        function: what is called; of a method, the function that takes the instance first.
        owner: the class whose instance it takes, None for what takes none.
        module: the module it was found in.
    """

    function: Any
    owner: Optional[type]
    module: Any

    @property
    def file(self) -> str:
        """The path of the module's file."""
        return str(getattr(self.module, "__file__", ""))


class NotFound(Exception):
    """The name does not exist, or the object cannot be called."""


def load_module(name: Optional[str], path: str) -> Any:
    """Return the module with a dotted name; without one, load it from its file."""
    if name is not None:
        return importlib.import_module(name)
    key = "remat_migrate_file_" + "".join(c if c.isalnum() else "_" for c in path)
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, path)
        if spec is None or spec.loader is None:
            raise NotFound("%s cannot be imported" % path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[key]
            raise
    return sys.modules[key]


def load_unit(name: Optional[str], path: str, qualname: str) -> Unit:
    """Return the object with this name in a module; for an empty name, the module's values.

    Raises:
        NotFound: there is none, or it cannot be called.
        Exception: whatever importing the module raises.
    """
    module = load_module(name, path)
    if not qualname:
        return Unit(lambda: public_values(vars(module)), None, module)
    found, owner = _lookup(module, qualname)
    if isinstance(found, stand_ins.Missing):
        raise NotFound(stand_ins.explain(found))
    if shim.makes_checkpoints(found):
        raise NotFound("it creates checkpoints: the functions that it wraps are compared")
    if isinstance(found, staticmethod):
        return Unit(results.run_whole(found.__func__), None, module)
    if owner is not None:
        if _is_test(owner, found):
            raise NotFound("it is a test: run it with --command")
        if qualname.endswith(".__init__"):
            return Unit(_constructor(owner, found), None, module)
        if qualname.endswith(".setup") and flax_modules.is_module_class(owner):
            return _class(owner, qualname, module)  # which uses what it sets
    if isinstance(found, classmethod):
        return Unit(found.__get__(None, owner), None, module)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, type):
        return _class(found, qualname, module)
    return Unit(_callable(_fixture_function(found) or found, owner, qualname), owner, module)


def _lookup(module: Any, qualname: str) -> Tuple[Any, Optional[type]]:
    """Return what a name refers to, and the class that it is looked up in."""
    owner: Optional[type] = None
    found = module
    for part in qualname.split("."):
        owner = found if isinstance(found, type) else None
        if isinstance(found, stand_ins.Missing):
            break
        try:
            found = inspect.getattr_static(found, part) if owner else getattr(found, part)
        except AttributeError:
            raise NotFound(
                "%s has no %s after it is imported" % (module.__name__, qualname)
            ) from None
    return found, owner


def _callable(found: Any, owner: Optional[type], qualname: str) -> Any:
    """Return what to call of a function or a value."""
    if callable(found):
        return results.run_whole(found)
    if isinstance(found, dict) and found and _OPTIONS.issuperset(found):
        raise NotFound("it holds checkpoint options: the functions that they apply to are compared")
    if owner is None:
        # The result of a call at import: compare the value.
        return lambda: found
    raise NotFound("%s is not callable: it is a %s" % (qualname, type(found).__name__))


def _class(found: type, qualname: str, module: Any) -> Unit:
    """Return the method by which instances of a class are called, else its constructor."""
    for name in ("__call__", "forward"):
        if inspect.isfunction(inspect.getattr_static(found, name, None)):
            return Unit(results.run_whole(getattr(found, name)), found, module)
    if inspect.isfunction(found.__init__):  # type: ignore[misc]
        return Unit(_constructor(found, found.__init__), None, module)  # type: ignore[misc]
    raise NotFound("%s is a class without methods" % qualname)


def _is_test(owner: type, found: Any) -> bool:
    """Return whether this is a `unittest` test, which its class sets up and runs."""
    unittest = sys.modules.get("unittest")
    if unittest is None or not issubclass(owner, unittest.TestCase):
        return False
    # The tests that absl makes of one have its signature, with the parameters that they give it.
    return callable(found) and getattr(found, "__name__", "").startswith("test")


def _fixture_function(value: Any) -> Any:
    """Return the function of a pytest fixture, which cannot be called; None for anything else."""
    kind = type(value)
    if kind.__module__ == "_pytest.fixtures" and kind.__name__ == "FixtureFunctionDefinition":
        return value._fixture_function
    if hasattr(value, "_pytestfixturefunction"):  # before pytest 8.4 it is a function that fails
        return getattr(getattr(value, "__pytest_wrapped__", None), "obj", None)
    return None


def _constructor(owner: type, init: Any) -> Any:
    """Return a function that makes an object, with the signature of `__init__` without `self`."""

    @functools.wraps(init)
    def construct(*args: Any, **kwargs: Any) -> Any:
        return owner(*args, **kwargs)

    signature = inspect.signature(init)
    without = list(signature.parameters.values())[1:]
    construct.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=without
    )
    return construct


def public_values(names: Dict[str, Any]) -> Any:
    """Return the numbers and arrays among the names of a module that are public."""
    numpy = sys.modules.get("numpy")
    jax = sys.modules.get("jax")
    kinds: list[Any] = [bool, int, float, complex]
    if numpy is not None:
        kinds += [numpy.ndarray, numpy.generic]
    if jax is not None:
        kinds.append(jax.Array)
    return {
        name: value
        for name, value in sorted(names.items())
        if not name.startswith("_") and isinstance(value, tuple(kinds))
    }
