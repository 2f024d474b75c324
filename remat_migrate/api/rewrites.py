"""Whole fixes: of `concrete`, of static arguments, of placements."""

from ..rewrite.arguments.calls import positional_changes
from ..rewrite.compile_time import hoist
from ..rewrite.concrete import Migration, drop, migrate
from ..rewrite.factories import supply_subject
from ..rewrite.making_static import make_static
from ..rewrite.placement import move_to_stages, remove_site, set_option, wrap_body
from ..rewrite.refusal import check_editable
