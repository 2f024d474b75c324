"""The JSON schema of the settings: in SchemaStore's form, and of one mind with the program."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from support import cli, write_files

from remat_migrate.settings.keys import SCHEMA as FILE

SCHEMA = json.loads(FILE.read_text())

VALID = """
select = ["RMT1"]
ignore = ["RMT104"]
exclude = ["vendored/"]
fail-on = "note"
jax-version = "0.10.2"
max-file-size = 3
search-path = ["stubs"]
[per-file-ignores]
"tests/**" = ["RMT101"]
[wrappers]
"mypkg.maybe_remat" = "jax.checkpoint"
"mypkg.module_remat" = "flax.linen.remat"
[scans]
"mypkg.scan" = "jax.lax.scan"
[verify]
command = "pytest -q"
cases = "cases.py"
tolerance = {float32 = 1e-6, bfloat16 = 4e-3}
memory = "8GiB"
timeout = 60
[measure]
target = ["train:loss", "train:other"]
args = ["train:arguments"]
grad = "none"
argnums = [0]
devices = 8
"""
# One key each, wrong in type, name or value.
INVALID = [
    'fail-on = "warn"',
    "jax-version = 0.10",
    "max-file-size = -1",
    "max-file-size = true",
    'extend = "base.toml"',
    'per-file-ignores = {"a.py" = "RMT1"}',
    'wrappers = {"a.b" = {}}',
    "verify = {timeout = 0}",
    "verify = {tolerance = {float32 = 1}}",
    'measure = {grad = "all"}',
    "measure = {argnums = [true]}",
    "measure = {argumnums = 1}",
]


def subschemas(schema: object) -> Iterator[dict[str, object]]:
    """Every schema within a schema, itself first."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key == "properties":
                for one in value.values():
                    yield from subschemas(one)
            elif isinstance(value, dict):
                yield from subschemas(value)
            elif key == "anyOf":
                for one in value:
                    yield from subschemas(one)


def test_the_form_is_that_of_schemastore() -> None:
    """What its CONTRIBUTING.md and the strict mode of its validator ask of partial schemas."""
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert SCHEMA["$id"] == f"https://www.schemastore.org/{FILE.name}"
    assert SCHEMA["$comment"] == "tool.remat-migrate table in pyproject.toml"
    assert SCHEMA["type"] == "object"
    assert FILE.read_text().isascii()  # no smart quotes, no byte order mark
    for one in subschemas(SCHEMA):
        assert "type" in one or "anyOf" in one
        assert not isinstance(one.get("type"), list)  # strictTypes
        assert len(one.get("anyOf", [0, 0])) > 1  # type: ignore[arg-type]
        if one.get("type") == "object":
            assert "additionalProperties" in one
            assert set(one.get("required", ())) <= set(one.get("properties", ()))  # type: ignore[call-overload]
        for setting in one.get("properties", {}).values():  # type: ignore[attr-defined]
            if one is SCHEMA or "description" in one:
                assert setting["description"].endswith(".")


def test_valid_settings_are_valid_for_both(tmp_path: Path) -> None:
    Draft7Validator(SCHEMA).validate(tomllib.loads(VALID))
    write_files(tmp_path, {"m.py": "x = 1\n", "all.toml": VALID})
    ran = cli(tmp_path, "--config", "all.toml")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("body", INVALID)
def test_invalid_settings_are_invalid_for_both(tmp_path: Path, body: str) -> None:
    assert not Draft7Validator(SCHEMA).is_valid(tomllib.loads(body))
    write_files(tmp_path, {"m.py": "x = 1\n", "pyproject.toml": f"[tool.remat-migrate]\n{body}\n"})
    ran = cli(tmp_path, ".")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {tmp_path}/pyproject.toml: ")
