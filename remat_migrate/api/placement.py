"""What is differentiated, what runs in loops, and where checkpoints stand in it."""

from ..analysis.placement.operations import is_head
from ..analysis.placement.placement import (
    Certainty,
    DifferentiatedPart,
    LoopUse,
    Occurrence,
    Placement,
    calls_within,
    checkpoint_within,
    differentiated_loops,
    has_heavy_body,
    in_checkpoint,
    may_be_head,
    only_checkpoint,
    operations_after,
    parts_in,
    placement_of,
    python_loop,
    wraps_policy,
)
from ..analysis.sites.calls import constants, numbers
