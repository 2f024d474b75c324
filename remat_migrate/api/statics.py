"""Which arguments are, or must be, static, and what needs their values at trace time."""

from ..analysis.needs.need import Need
from ..analysis.statics.required_arguments import result_obstacle
from ..analysis.statics.self_offset import SelfOffset, self_offset
from ..analysis.statics.static_options import (
    Indices,
    Misplaced,
    StaticParameter,
    StaticSite,
    deliberate,
    known_targets,
    misplaced,
    misplaced_calls,
    read_indices,
    static_site,
)
from ..analysis.statics.statics import lost_indices
from ..analysis.statics.traced_needs import TracedNeed, traced_needs, traced_results
from ..analysis.statics.wrong_wrappers import Fault, wrong_wrapper
