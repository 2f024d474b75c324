"""The JSON schema of the settings table, in the form of SchemaStore.

`python -m remat_migrate.settings.schema` prints it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from .keys import MEASURE, SETTINGS, TABLE, VERIFY, Setting

ID = "https://www.schemastore.org/partial-remat-migrate.json"


def schema() -> dict[str, object]:
    """Return the schema of `[tool.remat-migrate]`."""
    top = _object(SETTINGS)
    properties = top["properties"]
    assert isinstance(properties, dict)
    for name, nested in (("verify", VERIFY), ("measure", MEASURE)):
        properties[name] |= _object(nested)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ID,
        "$comment": f"{TABLE} table in pyproject.toml",
        **top,
    }


def _object(settings: Mapping[str, Setting]) -> dict[str, object]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {"description": setting.about, **setting.schema}
            for name, setting in settings.items()
        },
    }


def render() -> str:
    """Return the schema as text."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(render(), end="")
