"""The table of Apis against the libraries that are installed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from remat_migrate.libraries.apis import _SPELLINGS, APIS, DIFFERENTIATE, SAME_CALL, ApiTable

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def installed(name: str) -> Any:
    """What a dotted name denotes here; skips the test where its library is not installed."""
    top, *parts = name.split(".")
    found: Any = pytest.importorskip(top)
    for index, part in enumerate(parts):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join([top, *parts[: index + 1]]))
            except ImportError:
                return None
        found = getattr(found, part, None)
    return found


def jax_version() -> tuple[int, ...]:
    return tuple(importlib.import_module("jax").__version_info__)


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", APIS)
def test_the_name_is_there_until_it_is_gone(name: str) -> None:
    gone = APIS[name].removed_in is not None and jax_version() >= APIS[name].removed_in
    assert (installed(name) is None) == gone


@pytest.mark.parametrize("name", [name for name, api in APIS.items() if api.removed_in is None])
def test_the_signature(name: str) -> None:
    api, function = APIS[name], installed(name)
    found = parameters(function)
    by_position = tuple(n for n, p in found.items() if p.kind in POSITIONAL)
    assert by_position[0] == api.subject
    if "variable_args" not in found and not api.factory:
        assert by_position == api.positional
    if api.static_option is not None and not any(p.kind is p.VAR_KEYWORD for p in found.values()):
        assert api.static_option in found
    optional = found[api.subject].default is not inspect.Parameter.empty
    assert optional == api.factory
    if not api.concrete:
        assert "concrete" not in found


@pytest.mark.parametrize(("spelling", "name"), _SPELLINGS.items())
def test_another_spelling_is_the_same_function(spelling: str, name: str) -> None:
    # Most are private or were moved: what is left of them must be the same.
    function = installed(spelling)
    if function is not None and installed(name) is not None:
        public, spelled = installed(name), function
        assert getattr(public, "__wrapped__", public) is getattr(spelled, "__wrapped__", spelled)


@pytest.mark.parametrize("name", [name for name, api in APIS.items() if api.removed_in is None])
def test_without_a_subject(name: str) -> None:
    """Only a factory takes options alone."""
    if APIS[name].factory:
        installed(name)(prevent_cse=False)
    else:
        with pytest.raises(TypeError, match=f"required positional.*'{APIS[name].subject}'"):
            installed(name)(policy=None)


@pytest.mark.parametrize("name", ["jax.checkpoint", "jax.remat"])
def test_concrete(name: str) -> None:
    function, fails = installed(name), APIS[name].concrete_false_fails
    assert fails is not None
    with pytest.raises((TypeError, NotImplementedError)):
        function(abs, concrete=True)
    if jax_version() >= fails:
        with pytest.raises((TypeError, NotImplementedError)):
            function(abs, concrete=False)


def branching(x: Any, is_training: bool) -> Any:
    return 2 * x if is_training else x


@pytest.mark.parametrize("name", ["jax.checkpoint", "haiku.remat"])
def test_static_argnums_of_functions_count_from_the_first_argument(name: str) -> None:
    assert APIS[name].counting == "function"
    wrapped = installed("jax.checkpoint" if name == "jax.checkpoint" else name)
    if name == "haiku.remat":
        haiku, jax = importlib.import_module("haiku"), importlib.import_module("jax")
        transformed = haiku.transform(lambda x: wrapped(branching, static_argnums=(1,))(x, True))
        assert transformed.apply({}, jax.random.key(0), 1.0) == 2.0
    else:
        assert wrapped(branching, static_argnums=(1,))(1.0, True) == 2.0


FLAX_COUNTING = [
    ("flax.linen.remat", "method", 2),
    ("flax.linen.checkpoint", "method", 2),
    ("flax.linen.partitioning.remat", "method-without-self", 1),
]


@pytest.mark.parametrize(("name", "counting", "index"), FLAX_COUNTING)
def test_static_argnums_of_flax_classes(name: str, counting: str, index: int) -> None:
    """`self` is 0 for `nn.remat`, and is not counted by `partitioning.remat`."""
    assert APIS[name].counting == counting
    jax, nn = importlib.import_module("jax"), importlib.import_module("flax.linen")

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        @nn.compact
        def __call__(self, x: Any, is_training: bool) -> Any:
            return branching(x, is_training)

    def run(at: int) -> Any:
        block = installed(name)(Block, static_argnums=(at,))()
        return block.apply({}, 1.0, True)

    assert run(index) == 2.0
    with pytest.raises((jax.errors.TracerBoolConversionError, ValueError)):
        run(3 - index)


LINEN = [name for name, api in APIS.items() if api.modules == "linen"]


@pytest.mark.parametrize("name", LINEN)
def test_instances_of_flax_linen(name: str) -> None:
    """A class is wrapped, and neither an instance nor a method of one."""
    api, jax, nn = APIS[name], importlib.import_module("jax"), importlib.import_module("flax.linen")
    errors = importlib.import_module("flax.errors")
    lengths = {"lengths": (2,)} if "scan" in name else {}
    key, x = jax.random.PRNGKey(0), jax.numpy.ones(3)

    def applied(wrapped: Callable[[Any], Any]) -> Any:
        class Net(nn.Module):  # type: ignore[misc, name-defined]
            @nn.compact
            def __call__(self, x: Any) -> Any:
                return wrapped(nn.Dense)(x)

        return Net().init_with_output(key, x)[0]

    assert not api.takes_instances
    assert applied(lambda cls: installed(name)(cls, **lengths)(3)).shape == (3,)
    with pytest.raises(errors.TransformTargetError):
        applied(lambda cls: installed(name)(cls(3), **lengths))
    with pytest.raises(AttributeError):
        applied(lambda cls: installed(name)(cls(3).__call__, **lengths))


def test_instances_of_flax_nnx() -> None:
    api, nnx = APIS["flax.nnx.remat"], pytest.importorskip("flax.nnx")
    x = importlib.import_module("jax").numpy.ones(3)
    layer = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    assert api.takes_instances
    assert nnx.remat(layer)(x).shape == (3,)


def test_instances_of_haiku_and_equinox() -> None:
    haiku, equinox = pytest.importorskip("haiku"), pytest.importorskip("equinox")
    jax = importlib.import_module("jax")
    key, x = jax.random.PRNGKey(0), jax.numpy.ones(3)
    assert APIS["haiku.remat"].takes_instances
    model = haiku.transform(lambda x: haiku.remat(haiku.Linear(3))(x))
    assert model.apply(model.init(key, x), key, x).shape == (3,)
    assert APIS["equinox.filter_checkpoint"].takes_instances
    layer = equinox.nn.Linear(3, 3, key=key)
    assert equinox.filter_checkpoint(layer)(x).shape == (3,)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_functions_that_are_called_the_same() -> None:
    """Each is known to some release that is installed, or has moved away from where it was."""
    assert DIFFERENTIATE <= SAME_CALL
    jax_names = [name for name in SAME_CALL if name.startswith(("jax.", "flax."))]
    missing = {name for name in jax_names if installed(name) is None}
    assert missing <= {"jax.linear_util.wrap_init", "jax.experimental.shard_map.shard_map"}


def test_wrappers_follow_the_api_that_they_are_like() -> None:
    table = ApiTable({"pkg.maybe_remat": "flax.linen.remat", "pkg.old": "jax.ad_checkpoint.remat"})
    api = table.find("pkg.maybe_remat")
    assert api is not None
    assert (api.counting, api.wraps_classes, api.name) == ("method", True, "pkg.maybe_remat")
    old = table.find("pkg.old")
    assert old is not None
    assert old.removed_in is None
    assert {"maybe_remat", "old"} <= table.last_names
    assert table.find("pkg.other") is None
    assert ApiTable().find("pkg.maybe_remat") is None


def test_a_wrapper_like_nothing_known_is_an_error() -> None:
    with pytest.raises(KeyError):
        ApiTable({"pkg.maybe_remat": "torch.utils.checkpoint.checkpoint"})


def test_every_spelling_is_one_of_an_api() -> None:
    assert all(name in APIS for name in _SPELLINGS.values())
