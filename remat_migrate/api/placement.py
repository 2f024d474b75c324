"""What is differentiated, what runs in loops, and where checkpoints stand in it."""

from ..analysis.placement.loop_bodies import differentiated_loops, has_heavy_body, in_checkpoint
from ..analysis.placement.nested_checkpoints import calls_within, checkpoint_within, only_checkpoint
from ..analysis.placement.occurrences import Occurrence
from ..analysis.placement.operations import is_head
from ..analysis.placement.placement import Placement, placement_of
from ..analysis.placement.stages import python_loop
from ..analysis.placement.transforms import LoopUse
from ..analysis.placement.whole_and_last import (
    Certainty,
    DifferentiatedPart,
    may_be_head,
    operations_after,
    parts_in,
    wraps_policy,
)
from ..analysis.sites.passed_arguments import constants, numbers
