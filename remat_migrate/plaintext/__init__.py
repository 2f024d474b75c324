"""A setting in shell scripts, Dockerfiles, YAML, TOML, Makefiles and `.env` files."""

from .files import plan_text
from .setting import Setting, TextPlan, TextSyntaxError, TextUse
from .shell import plan_argv, plan_shell

__all__ = [
    "Setting",
    "TextPlan",
    "TextSyntaxError",
    "TextUse",
    "plan_argv",
    "plan_shell",
    "plan_text",
]
