"""Checkpoint policies, and the names of values that they list."""

from ..analysis.policies.checkpoint_names import (
    Listed,
    foreign_packages,
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
from ..analysis.policies.references import (
    PolicyName,
    is_added,
    policy_names_read,
    uses_next_implementation,
)
from ..analysis.policies.typos import intended_name, is_typo
from ..analysis.policies.values import (
    Origin,
    PolicyPlace,
    always_returns,
    function_of,
    given_to,
    named,
    policy_calls,
    policy_places,
    saves_everything,
    sole_origin,
    strings_of,
)
