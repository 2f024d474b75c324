"""What is differentiated, what runs in loops, and where checkpoints stand in it."""

from ..analysis.placement.operations import is_head
from ..analysis.placement.placement import (
    Certainty,
    DifferentiatedPart,
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
from ..analysis.placement.transforms import LoopUse
from ..analysis.sites.calls import constants, numbers
