"""Which arguments are, or must be, static, and what needs their values at trace time."""

from ..analysis.needs.needs import Need
from ..analysis.statics.required_arguments import lost_indices, result_obstacle
from ..analysis.statics.static_options import (
    Indices,
    Misplaced,
    SelfOffset,
    StaticParameter,
    StaticSite,
    TracedNeed,
    deliberate,
    known_targets,
    misplaced,
    misplaced_calls,
    read_indices,
    self_offset,
    static_site,
    traced_needs,
    traced_results,
)
from ..analysis.statics.wrong_wrappers import Fault, wrong_wrapper
