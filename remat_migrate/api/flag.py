"""Where the flag `jax_new_checkpoint` is set, in Python and in other files."""

from ..analysis.flag import (
    FlagUse,
    Form,
    find_flag_uses,
    find_text_uses,
    is_import_needed,
    reasons_to_keep,
)
