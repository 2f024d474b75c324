"""Values of the program whose `__getattr__` raises something else than AttributeError."""

from __future__ import annotations

import pytest
from worker_package import load_worker

digests = load_worker("program.digests")
lookup = load_worker("lookup")
make = load_worker("inputs.make")
pickling = load_worker("transfer.pickling")
results = load_worker("comparison.results")
stand_in = load_worker("inputs.stand_in")


class Mapping(dict):
    __getattr__ = dict.__getitem__


class Called:
    def __init__(self, **kwargs):
        self.kwargs = kwargs

    def __getattr__(self, name):
        if name == "kwargs":
            raise AttributeError(name)
        try:
            return self.kwargs[name]
        except KeyError:
            raise RuntimeError(f"no option {name}") from None

    def __call__(self, x):
        return x * self.scale


class Failing:
    @property
    def shape(self):
        raise ValueError("not yet known")


@pytest.mark.parametrize("make_one", [Mapping, Called])
def test_what_is_lacking_is_absent(make_one):
    value = make_one(scale=2.0)
    assert lookup.has(value, "scale")
    assert lookup.attribute(value, "scale") == 2.0
    assert not lookup.has(value, "shape")
    assert lookup.attribute(value, "shape", 7) == 7
    assert lookup.unwrapped(value) is value


def test_properties_that_fail_are_reported():
    with pytest.raises(ValueError, match="not yet known"):
        lookup.has(Failing(), "shape")
