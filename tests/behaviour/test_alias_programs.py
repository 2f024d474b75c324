"""Calls through transformed aliases: values and gradients before and after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from alias_programs import programs

RTOL = 2e-5
# Every transformation and every way to store an alias; all of these programs run unchanged.
FEW = (
    "mode_jit_first_attribute_omitted",
    "mode_jit_name_decorator_omitted",
    "mode_shared_factory_omitted",
    "flag_jit_both_method_keyword",
    "gap_vmap_arrays_dict_omitted",
    "mode_vmap_positional_local_omitted",
    "mode_vmap_constant_module_omitted",
    "mode_jit_vmap_assigned_omitted",
    "mode_vmap_vmap_module_omitted",
    "mode_pmap_axes_module_omitted",
    "mode_pmap_static_direct_omitted",
    "gap_shard_map_arrays_module_omitted",
    "gap_grad_negative_module_omitted",
    "mode_grad_both_attribute_two",
    "gap_hessian_module_keyword",
    "gap_filter_vmap_module_two",
    "mode_filter_jit_decorator_omitted",
    "gap_custom_gradient_module_two",
    "gap_make_jaxpr_module_omitted",
)


def problems(
    names: Sequence[str], folder: Path, remat_migrate, run_programs, assert_equal_arrays
) -> dict[str, str]:
    """Return the problems of the migrated programs, except those that do not run before."""
    every = programs()
    targets = [f"{name}:main" for name in names]
    for name in names:
        (folder / f"{name}.py").write_text(every[name])
    expected = run_programs(folder, *targets, plain=True)
    fixing = remat_migrate(
        folder, "--fix", "--no-cache", "--select", "RMT1", "--output-format", "json", "."
    )
    left = {Path(found["path"]).stem for found in json.loads(fixing.stdout)["findings"]}
    actual = run_programs(folder, *targets)
    found: dict[str, str] = {}
    for name, target in zip(names, targets, strict=True):
        before, after = expected[target], actual[target]
        if isinstance(before, str):
            if name in FEW:
                found[name] = before
        elif name in left:
            if "_jit_" not in name:  # which may trace or count the arguments
                found[name] = "left by hand"
        elif isinstance(after, str):
            found[name] = after
        else:
            try:
                assert_equal_arrays(before, after, RTOL)
            except AssertionError as error:
                found[name] = str(error)
    return found


def test_subset(tmp_path, remat_migrate, run_programs, assert_equal_arrays) -> None:
    found = problems(FEW, tmp_path, remat_migrate, run_programs, assert_equal_arrays)
    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(8))
def test_all(start: int, tmp_path, remat_migrate, run_programs, assert_equal_arrays) -> None:
    names = sorted(programs())[start::40]
    found = problems(names, tmp_path, remat_migrate, run_programs, assert_equal_arrays)
    assert found == {}
