"""Checkpoint policies, and the names of values that they list."""

from ..analysis.policies.checkpoint_names import (
    Listed,
    foreign_packages,
    intended_name,
    is_typo,
    listed_names,
    names_of,
    why_unsaved,
)
from ..analysis.policies.known_policies import (
    ANSWER_IS_CHECKED_SINCE,
    NAMESPACE,
    POLICIES,
    POLICY_OPTION,
    TAKES_POLICY,
    Policy,
    Version,
    available,
    policy_of,
)
from ..analysis.policies.values import (
    Origin,
    PolicyName,
    PolicyPlace,
    always_returns,
    function_of,
    given_to,
    is_added,
    named,
    policy_calls,
    policy_names_read,
    policy_places,
    saves_everything,
    sole_origin,
    strings_of,
    uses_next_implementation,
)
