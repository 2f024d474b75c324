"""Checkpoints where they belong: off, on a call, on a loop's body or segments, on stages.

All of this is unsafe in the sense of `Safety`: values and gradients stay, memory and time change.
"""

from .expressions import wrap_expression
from .groups import wrap_group
from .loop_bodies import wrap_body
from .segments import in_segments
from .stages import move_to_stages
from .unwrapping import remove_site, set_option
from .wrapping import wrap_call

__all__ = [
    "in_segments",
    "move_to_stages",
    "remove_site",
    "set_option",
    "wrap_body",
    "wrap_call",
    "wrap_expression",
    "wrap_group",
]
