"""Where functions of the checkpoint family are applied, with which options, and where what
they make is called."""

from ..analysis.sites.calls import Call, uses_of
from ..analysis.sites.find_sites import options_in, sites_in, sites_of, sites_with
from ..analysis.sites.framework_modules import ModuleKind, module_kind
from ..analysis.sites.options import (
    ConcreteUse,
    PositionalOptions,
    concrete_use,
    concrete_uses,
    positional_options,
    shared_with_partial,
)
from ..analysis.sites.site import Option
from ..analysis.statics.wrong_wrappers import wrapped_instance
from ..libraries.apis import APIS, Api
