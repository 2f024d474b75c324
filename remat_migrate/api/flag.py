"""Where the flag `jax_new_checkpoint` is set, in Python and in other files."""

from ..analysis.flag.names import OWN_OPTION, defines_own_option, may_use_flag
from ..analysis.flag.uses import FlagUse, Form, find_flag_uses, is_needed, read_reason
from ..formats import find_uses
