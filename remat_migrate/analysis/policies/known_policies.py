"""The policies of `jax.checkpoint_policies` as data, one entry per name.

Taken from the sources of jax 0.3.0 to 0.12.0; `tests/analysis/test_policies.py` compares the table
with the installed JAX.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ...libraries.apis import APIS

Version = tuple[int, ...]

# "policy": passed as it is. "factory": a call of it returns the policy. "class": its instances are
# policies.
PolicyKind = Literal["policy", "factory", "class"]

# What a factory does with the values named in a parameter.
NamesRole = Literal["saved", "offloaded", "excluded"]


@dataclass(frozen=True, slots=True)
class NamesParameter:
    """A parameter of a factory that lists names of `checkpoint_name`.

    Attributes:
        name: the parameter.
        role: what the policy does with values of these names.
        star: whether the names are separate arguments (`*names`) instead of a sequence.
    """

    name: str
    role: NamesRole
    star: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """One name of `jax.checkpoint_policies`.

    Attributes:
        name: the name.
        kind: how it is passed to a checkpoint.
        parameters: a factory's positional parameters, without `*names`.
        keyword_only: a factory's keyword-only parameters.
        names: the parameters that list names, including `*names`.
        policies: the parameters that are policies themselves.
        since: the first jax release that has it.
        removed_in: the first release without it, or None.
        constant: what it answers for every value, or None if that depends on the value.
        constant_since: the first release in which it does.
        same_as: the preferred name of the same policy.
    """

    name: str
    kind: PolicyKind
    parameters: tuple[str, ...] = ()
    keyword_only: tuple[str, ...] = ()
    names: tuple[NamesParameter, ...] = ()
    policies: tuple[str, ...] = ()
    since: Version = (0, 3, 0)
    removed_in: Version | None = None
    constant: bool | None = None
    constant_since: Version = (0, 3, 0)
    same_as: str | None = None

    @property
    def is_made(self) -> bool:
        """Whether a call of it makes the policy."""
        return self.kind != "policy"

    def is_in(self, version: Version) -> bool:
        """Return whether a jax release has it."""
        return self.since <= version and (self.removed_in is None or version < self.removed_in)

    def answer(self, version: Version) -> bool | None:
        """Return what it answers for all values in a release; None if it depends on the value."""
        return self.constant if version >= self.constant_since else None


_ONLY_NAMES = (NamesParameter("names_which_can_be_saved", "saved", star=True),)
_ALL_BUT_NAMES = (NamesParameter("names_not_to_save", "excluded", star=True),)
_OFFLOADED_NAMES = (
    NamesParameter("names_which_can_be_saved", "saved"),
    NamesParameter("names_which_can_be_offloaded", "offloaded"),
)
_OFFLOADING = (
    "names_which_can_be_saved",
    "names_which_can_be_offloaded",
    "offload_src",
    "offload_dst",
)

_ENTRIES = (
    Policy("everything_saveable", "policy", constant=True),
    Policy("nothing_saveable", "policy", constant=False),
    Policy("dots_saveable", "policy", since=(0, 4, 5)),
    Policy("checkpoint_dots", "policy", same_as="dots_saveable"),
    Policy("dots_with_no_batch_dims_saveable", "policy", since=(0, 4, 5)),
    Policy(
        "checkpoint_dots_with_no_batch_dims",
        "policy",
        same_as="dots_with_no_batch_dims_saveable",
    ),
    Policy(
        "offload_dot_with_no_batch_dims",
        "factory",
        parameters=("offload_src", "offload_dst"),
        since=(0, 4, 25),
    ),
    Policy(
        "save_anything_except_these_names",
        "factory",
        names=_ALL_BUT_NAMES,
        since=(0, 4, 2),
        constant=True,
        constant_since=(0, 10, 2),
    ),
    Policy("save_any_names_but_these", "factory", names=_ALL_BUT_NAMES),
    Policy("save_only_these_names", "factory", names=_ONLY_NAMES),
    Policy(
        "save_from_both_policies",
        "factory",
        parameters=("policy_1", "policy_2"),
        policies=("policy_1", "policy_2"),
        since=(0, 3, 17),
    ),
    Policy(
        "save_and_offload_only_these_names",
        "factory",
        keyword_only=_OFFLOADING,
        names=_OFFLOADED_NAMES,
        since=(0, 4, 25),
    ),
    Policy(
        "SaveOnlyTheseNames",
        "class",
        parameters=("saveable_names",),
        names=(NamesParameter("saveable_names", "saved"),),
        since=(0, 11, 0),
        removed_in=(0, 12, 0),
        same_as="save_only_these_names",
    ),
    Policy(
        "SaveAnyNamesButThese",
        "class",
        parameters=("names",),
        names=(NamesParameter("names", "excluded"),),
        since=(0, 11, 0),
        removed_in=(0, 12, 0),
        same_as="save_any_names_but_these",
    ),
    Policy(
        "SaveAndOffloadOnlyTheseNames",
        "class",
        parameters=_OFFLOADING,
        names=_OFFLOADED_NAMES,
        since=(0, 11, 0),
        removed_in=(0, 12, 0),
        same_as="save_and_offload_only_these_names",
    ),
)

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _ENTRIES}

# The object that has the policies as attributes, by its qualified names.
NAMESPACE = "jax.checkpoint_policies"
NAMESPACES: tuple[str, ...] = (
    NAMESPACE,
    "jax.ad_checkpoint.checkpoint_policies",
    "jax._src.ad_checkpoint.checkpoint_policies",
)
# The module that defines the policies.
_DEFINED_IN = "jax._src.ad_checkpoint."

# The option of each Api that takes a policy.
POLICY_OPTION = "policy"
TAKES_POLICY = frozenset(APIS)

# The first release that rejects a policy whose answer is neither yes nor no.
ANSWER_IS_CHECKED_SINCE: Version = (0, 4, 16)


def asked_for(qualified: str) -> str | None:
    """Return the attribute of `jax.checkpoint_policies` that a qualified name reads, whether it
    exists or not.

    In the module that defines the policies, only the policies count.
    """
    for namespace in NAMESPACES:
        rest = qualified.removeprefix(namespace + ".")
        if rest != qualified:
            return rest if "." not in rest else None
    rest = qualified.removeprefix(_DEFINED_IN)
    return rest if rest != qualified and rest in POLICIES else None


def policy_of(qualified: str) -> Policy | None:
    """Return the policy that a qualified name denotes, in any release."""
    name = asked_for(qualified)
    return POLICIES.get(name) if name is not None else None


def available(version: Version) -> Iterator[Policy]:
    """Return the policies of a jax release."""
    return (policy for policy in POLICIES.values() if policy.is_in(version))
