"""The built-in rules of remat-migrate: one file per rule, an ordinary plug-in of the engine."""

from __future__ import annotations

from remat_migrate.rule import Rule

from .ad_checkpoint_alias import AdCheckpointAlias
from .barrier_without_cotangents import BarrierWithoutCotangents
from .checkpoint_primitive import CheckpointPrimitive
from .concrete_option import ConcreteOption
from .cse_outside_loop import CseOutsideLoop
from .decorator_factory import DecoratorFactory
from .instance_wrapped import InstanceWrapped
from .last_stage import LastStage
from .name_in_forward_rule import NameInForwardRule
from .nested_twice import NestedTwice
from .new_checkpoint_flag import NewCheckpointFlag
from .not_differentiated import NotDifferentiated
from .parallel_branches import ParallelBranches
from .policy_call import PolicyCall
from .policy_keyword import PolicyKeyword
from .policy_of_other_primitives import PolicyOfOtherPrimitives
from .positional_option import PositionalOption
from .prevent_cse_in_scan import PreventCseInScan
from .prevent_cse_of_arguments import PreventCseOfArguments
from .saves_everything import SavesEverything
from .scan_body_bare import ScanBodyBare
from .self_offset import SelfOffset
from .static_argnames_ignored import StaticArgnamesIgnored
from .static_argnums_type import StaticArgnumsType
from .static_array import StaticArray
from .static_by_keyword import StaticByKeyword
from .static_omitted import StaticOmitted
from .traced_compile_time_value import TracedCompileTimeValue
from .traced_control_flow import TracedControlFlow
from .unknown_name import UnknownName
from .unknown_policy import UnknownPolicy
from .unreadable_file import UnreadableFile
from .unused_name import UnusedName
from .unused_suppression import UnusedSuppression
from .whole_function import WholeFunction
from .wrong_wrapper import WrongWrapper

RULES: list[type[Rule]] = [
    AdCheckpointAlias,
    ConcreteOption,
    CseOutsideLoop,
    LastStage,
    NestedTwice,
    NewCheckpointFlag,
    NotDifferentiated,
    ParallelBranches,
    PositionalOption,
    PreventCseInScan,
    ScanBodyBare,
    StaticArgnamesIgnored,
    StaticArgnumsType,
    StaticArray,
    StaticByKeyword,
    StaticOmitted,
    TracedCompileTimeValue,
    TracedControlFlow,
    PolicyCall,
    PolicyKeyword,
    SavesEverything,
    UnknownName,
    UnknownPolicy,
    InstanceWrapped,
    SelfOffset,
    WrongWrapper,
    DecoratorFactory,
    UnreadableFile,
    UnusedName,
    UnusedSuppression,
    WholeFunction,
    PolicyOfOtherPrimitives,
    PreventCseOfArguments,
    CheckpointPrimitive,
    BarrierWithoutCotangents,
    NameInForwardRule,
]
