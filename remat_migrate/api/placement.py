"""What is differentiated, what runs in loops, and where checkpoints stand in it."""

from ..analysis.placement.operations import is_head
from ..analysis.placement.placement import (
    Occurrence,
    Placement,
    differentiated_loops,
    has_heavy_body,
    in_checkpoint,
    placement_of,
)
from ..analysis.placement.stages import (
    Certainty,
    DifferentiatedPart,
    calls_within,
    checkpoint_within,
    may_be_head,
    only_checkpoint,
    operations_after,
    parts_in,
    python_loop,
    wraps_policy,
)
from ..analysis.placement.transforms import LoopUse
from ..analysis.sites.calls import constants, numbers
