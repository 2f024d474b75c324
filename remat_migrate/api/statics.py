"""Which arguments are, or must be, static, and what needs their values at trace time."""

from ..analysis.needs.need import Need
from ..analysis.statics.misplaced_arguments import Misplaced, misplaced, misplaced_calls
from ..analysis.statics.positions import lost_indices
from ..analysis.statics.required_arguments import result_obstacle
from ..analysis.statics.self_offset import SelfOffset, self_offset
from ..analysis.statics.static_options import (
    Indices,
    StaticParameter,
    StaticSite,
    deliberate,
    known_target,
    read_indices,
    sees_all_calls,
    static_site,
)
from ..analysis.statics.traced_needs import TracedNeed, traced_needs, traced_results
from ..analysis.statics.wrong_wrappers import Fault, WrongWrapper, wrong_wrapper
