"""Run each program of a JSON file under JAX and record whether it failed.

    python run_examples.py programs.json outcomes.json

A program is `{"name", "files": {path: text}, "main": path, "then": [code, ...]}`: the file `main`
is executed with the other files importable, and then each code in the same namespace. Its outcome
is "" or `TypeName: message`. Compatible with Python 3.8, because old releases of JAX need old
interpreters.
"""

import importlib
import json
import os
import sys
import tempfile
import warnings


def outcome(program):
    """Return how a program ends: "" or `TypeName: message`."""
    before = set(sys.modules)
    with tempfile.TemporaryDirectory() as folder:
        for path, text in program["files"].items():
            full = os.path.join(folder, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        names = {"__name__": os.path.splitext(program["main"])[0], "__builtins__": __builtins__}
        try:
            main = os.path.join(folder, program["main"])
            codes = [(program["files"][program["main"]], main)]
            codes += [(code, "<then>") for code in program["then"]]
            for code, filename in codes:
                exec(compile(code, filename, "exec"), names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            sys.path.remove(folder)
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if file.startswith(folder):
                    del sys.modules[name]
    return ""


def main(programs, outcomes):
    """Run all programs of the file `programs` and write the outcomes to `outcomes`."""
    import jax

    with open(programs, encoding="utf-8") as file:
        listed = json.load(file)
    found = {"jax": jax.__version__, "outcomes": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program in listed:
            found["outcomes"][program["name"]] = outcome(program)
            # A flag set by one program must not affect the next.
            if getattr(jax.config, "jax_remat3", False):
                jax.config.update("jax_remat3", False)
    with open(outcomes, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
