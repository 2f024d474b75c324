"""Whole fixes: of `concrete`, of static arguments, of placements."""

from ..rewrite.calls import positional_changes
from ..rewrite.compile_time import hoist
from ..rewrite.concrete import Migration, drop, make_static, migrate
from ..rewrite.options import supply_subject
from ..rewrite.placement import move_to_stages, remove_site, set_option, wrap_body
from ..rewrite.refusal import check_editable
