"""Which units differ between two texts of a module."""

from __future__ import annotations

import textwrap

import pytest

from remat_migrate.errors import SourceError
from remat_migrate.verify.units.module_diff import (
    ModuleDiff,
    diff_modules,
    unit_at,
)


def text(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


def difference(before: str, after: str) -> ModuleDiff:
    return diff_modules(text(before), text(after))


def changed(before: str, after: str) -> list[str]:
    return [unit.qualname for unit in difference(before, after).changed]


MODULE = """
    import jax
    from functools import partial

    RATE = 0.1

    def block(x):
        "Doc."
        return x * RATE

    class Model:
        "Doc."
        width: int = 3

        def __call__(self, x):
            def inner(y):
                return y
            return inner(x) * self.width

        def _own(self):
            return 1

        class Part:
            def run(self, x):
                return x

    wrapped = jax.checkpoint(block)
"""


def test_formatting_comments_and_docstrings_do_not_count():
    formatted = """
    '''A module.'''
    import jax  # the library
    from functools import (
        partial,
    )

    RATE = (0.1)



    def block(
        x,
    ):
        # A comment.
        return (x *
                RATE)

    class Model:
        width: int = 0x3

        def __call__(self, x):
            '''Doc.'''
            def inner(y):
                "Doc."
                pass
                return y
            ...
            return inner(x) * self.width
        def _own(self): return 1
        class Part:
            def run(self, x): return x

    wrapped = jax.checkpoint(block,)
    """
    assert difference(MODULE, formatted) == ModuleDiff()


REPLACED = [
    ("return x * RATE", "return x + RATE", ["block"]),
    ("def block(x)", "def block(x, y=2)", ["block"]),
    ("    def block(x)", "    @partial(jax.checkpoint, policy=None)\n    def block(x)", ["block"]),
    ("return y\n", "return -y\n", ["Model.__call__"]),
    ("return x\n", "return -x\n", ["Model.Part.run"]),
    ("checkpoint(block)", "remat(block)", ["wrapped"]),
    # A value that units read.
    ("RATE = 0.1", "RATE = 0.2", ["block"]),
    ("RATE = 0.1", "RATE = 1 if jax else 2", ["block"]),
    ("width: int = 3", "width: int = 4", ["Model.__call__"]),
    # Nobody reads it: the instance is another.
    ("width: int = 3", "width: int = 3\n        depth: int = 4", ["Model.__call__"]),
    # What a class is called with concerns what is called from outside.
    ("class Model:", "class Model(dict):", ["Model.__call__"]),
    ("    class Model:", "    @partial\n    class Model:", ["Model.__call__"]),
    ("class Part:", "class Part(dict):", ["Model.Part.run"]),
    # Imports: what reads the name.
    ("import jax\n", "import jaxlib as jax\n", ["wrapped"]),
    ("import jax\n", "import jax\n    import jax.numpy\n", [""]),
    ("import jax\n", "import jax, jax\n", []),
    ("import partial", "import reduce as partial", [""]),
]


@pytest.mark.parametrize(("old", "new", "expected"), REPLACED)
def test_units_affected_by_a_change(old: str, new: str, expected: list[str]) -> None:
    assert old in MODULE
    assert changed(MODULE, MODULE.replace(old, new)) == expected
    assert changed(MODULE.replace(old, new), MODULE) == expected


def test_lines():
    after = MODULE.replace("RATE = 0.1", "\n\n    RATE = 0.2").replace("return y\n", "return -y\n")
    found = difference(MODULE, after).changed
    assert [(unit.qualname, unit.line) for unit in found] == [("block", 8), ("Model.__call__", 16)]


class TestImports:
    """Importing something else under the same name changes every unit that reads the name."""

    BEFORE = """
        from jax.ad_checkpoint import checkpoint, checkpoint_name

        ck = checkpoint
        ck2 = ck

        @checkpoint
        def decorated(x):
            return x

        def inside(x):
            def inner(y):
                return checkpoint(lambda: y)()
            return inner(x)

        @ck2
        def aliased(x):
            return x

        def named(x):
            return checkpoint_name(x, "x")

        def local(checkpoint):
            return [checkpoint for _ in range(3)]

        class A:
            block = ck(decorated)

            def __call__(self, x):
                return self.block(x)

            def other(self, x):
                return x

        class B(A):
            def run(self, x):
                return self.block(x)
    """

    def test_every_reader(self) -> None:
        after = self.BEFORE.replace("checkpoint, checkpoint_name", "checkpoint_name", 1)
        after = after.replace("import", "import", 1).replace(
            "\n", "\n        from jax import checkpoint\n", 1
        )
        readers = ["ck", "ck2", "decorated", "inside", "aliased", "A.block"]
        assert changed(self.BEFORE, after) == readers

    def test_class_attribute_that_is_not_a_method(self) -> None:
        before = self.BEFORE.replace("ck(decorated)", "ck(library.block)")
        after = before.replace("ck = checkpoint", "ck = checkpoint_name")
        assert changed(before, after) == ["ck", "ck2", "aliased", "A.__call__", "B.run"]

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ("from .a import f", "from ..a import f", ["use"]),
            ("from a import f", "from a import g as f", ["use"]),
            ("from a import f", "import f", ["use"]),
            ("import f", "if DEBUG:\n    import f", ["use"]),
            ("import f", "try:\n    import f\nexcept ImportError:\n    f = None", ["f", "use"][1:]),
            ("import f", "import f\nimport g", [""]),
            ("import f.a", "import f.b", [""]),
            ("import f, g", "import g\nimport f", []),
            ("import f", "def f(): pass", ["use"]),
        ],
    )
    def test_forms(self, old: str, new: str, expected: list[str]) -> None:
        use = "\ndef use(x):\n    return f.c(x)\n"
        assert [u.qualname for u in diff_modules(old + use, new + use).changed] == expected

    def test_import_of_a_submodule_affects_its_readers(self) -> None:
        units = "\ndef one(x): return a.b.f(x)\ndef two(x): return a.c.f(x)\n"
        found = diff_modules("import a.b\nimport a.c" + units, "import a.c" + units)
        assert [unit.qualname for unit in found.changed] == ["one"]

    def test_star_import_affects_everything(self) -> None:
        units = "\nimport m\ndef one(x): return len(m.f(x))\ndef two(x): return block(x)\n"
        found = diff_modules("from a import *" + units, "from b import *" + units)
        assert [unit.qualname for unit in found.changed] == ["one", "two"]

    def test_names_that_only_new_or_removed_code_reads(self) -> None:
        before = "def f(x): return x\n"
        after = "import m\nN = 3\n" + before + "def g(x): return m.f(x, N)\n"
        assert diff_modules(before, after) == ModuleDiff(added=("g",))
        assert diff_modules(after, before) == ModuleDiff(removed=("g",))


class TestAssignments:
    """Names that are bound to something callable."""

    def test_wrapped_function_is_a_unit(self) -> None:
        use = "\ndef use(x): return f(x)\n"
        before = "import jax\ndef g(x): return x\nf = {}\n" + use
        for old, new in [
            ("jax.checkpoint(g, concrete=True)", "jax.checkpoint(g)"),
            ("partial(jax.checkpoint, concrete=True)(g)", "jax.checkpoint(g)"),
            ("lambda x: g(x)", "lambda x: g(x, 1)"),
            ("jax.jit(jax.checkpoint(g, concrete=True))", "jax.jit(jax.checkpoint(g))"),
        ]:
            found = diff_modules(before.format(old), before.format(new))
            assert [unit.qualname for unit in found.changed] == ["f"], old

    def test_other_values_affect_their_readers(self) -> None:
        use = "\ndef use(x): return f(x)\ndef not_use(x): return x\n"
        for old, new in [
            ("partial(jax.checkpoint, concrete=True)", "jax.checkpoint"),
            ("jax.checkpoint(library.g, concrete=True)", "jax.checkpoint(library.g)"),
            ("dict(concrete=True)", "dict()"),
            ("jax.checkpoint", "jax.remat"),
        ]:
            found = diff_modules(f"f = {old}{use}", f"f = {new}{use}")
            assert [unit.qualname for unit in found.changed] == ["f", "use"], old

    def test_tuple_assignment(self) -> None:
        before = "def g(x): return x\nf, h = ck(g), ck(g)\na = b = ck(g)\n(c, *d) = make(g)\n"
        assert _names(before, before.replace("f, h = ck(g)", "f, h = ck(g, 1)")) == ["f"]
        assert _names(before, before.replace("b = ck(g)", "b = ck(g, 1)")) == ["a", "b"]
        assert _names(before, before.replace("make(g)", "make(g, 1)")) == ["c", "d"]

    def test_values_changed_in_place(self) -> None:
        before = "S = {}\nS['a'] = 1\nS.b = 1\nS += T\ndef f(): return S\ndef g(): return 1\n"
        for old, new in [("= 1\nS.b", "= 2\nS.b"), ("S.b = 1", "S.b = 2"), ("+= T", "+= U")]:
            assert _names(before, before.replace(old, new)) == ["f"]

    def test_method_assigned_from_outside_the_class(self) -> None:
        before = "class A:\n  def f(self): pass\nA.f = ck(A.f, concrete=True)\n"
        assert _names(before, before.replace(", concrete=True", "")) == ["A.f"]
        before = "class A:\n  def f(self): return self.n\nA.n = 1\n"
        assert _names(before, before.replace("= 1", "= 2")) == ["A.f"]

    def test_function_replaces_an_assignment(self) -> None:
        before = "f = ck(_f)\ndef _f(x): return x\ndef use(x): return f(x)\n"
        after = before.replace("f = ck(_f)", "def f(x): return ck(_f)(x)")
        assert "f" in _names(before, after)


def _names(before: str, after: str) -> list[str]:
    return [unit.qualname for unit in diff_modules(before, after).changed]


class TestConditions:
    """Definitions under `if`, `try`, `with` and loops are units."""

    BEFORE = """
        if NEW:
            def f(x):
                return x
        else:
            def f(x):
                return -x
        try:
            import a
        except ImportError:
            class A:
                def run(self):
                    return 1
        with open("x") as file:
            def g(): return file
        match VERSION:
            case 1:
                def h(): return 1
            case _:
                def h(): return 2
        for i in (1, 2):
            def k(): return i
    """

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ("return -x", "return +x", ["f"]),
            ("if NEW", "if not NEW", ["f"]),
            ("ImportError", "Exception", ["A.run"]),
            ("return 1\n", "return 3\n", ["A.run", "h"]),
            ('"x"', '"y"', ["g"]),
            ("return 2", "return 3", ["h"]),
            ("case _", "case 2", ["h"]),
            ("(1, 2)", "(1, 3)", ["k"]),
        ],
    )
    def test_change(self, old: str, new: str, expected: list[str]) -> None:
        assert old in self.BEFORE
        assert changed(self.BEFORE, self.BEFORE.replace(old, new)) == expected

    def test_defined_several_times(self) -> None:
        before = "def f(): return 1\ndef f(): return 2\n"
        assert _names(before, before.replace("1", "3")) == ["f"]
        assert _names(before, before.replace("def f(): return 1\n", "")) == ["f"]
        before = (
            "class A:\n @property\n def p(self): pass\n @p.setter\n def p(self, v): self.v = v\n"
        )
        assert _names(before, before.replace("= v", "= -v")) == ["A.p"]


class TestModule:
    """Code that belongs to no unit."""

    def test_code_at_import(self) -> None:
        before = "import jax\njax.config.update('x', 1)\ndef f(): return jax\n"
        (found,) = diff_modules(before, before.replace("1", "2")).changed
        assert (found.qualname, found.line) == ("", 2)
        assert _names(before, before.replace("jax.config.update('x', 1)\n", "")) == [""]
        assert _names(before, before.replace(".update('x', 1)", ".x = 1")) == [""]


class TestClasses:
    """Class bodies."""

    def test_attribute_affects_the_methods_that_read_it(self) -> None:
        before = """
            class A:
                block = nn.remat(Block, concrete=True)
                rate = 0.1

                def one(self, x):
                    return self.block(x)

                @staticmethod
                def two(x, rate=rate):
                    return A.block(x)

                def three(self):
                    return 3

            def four():
                return A.block
        """
        after = before.replace(", concrete=True", "")
        assert changed(before, after) == ["A.one", "A.two", "four"]
        assert changed(before, before.replace("0.1", "0.2")) == ["A.two"]

    def test_assigned_method(self) -> None:
        before = """
            class A:
                def _run(self, x):
                    return x

                run = jax.checkpoint(_run, concrete=True)
                f = jax.checkpoint(lambda self, x: x, concrete=True)

                def other(self, x):
                    return self.run(x)
        """
        assert changed(before, before.replace("_run, concrete=True", "_run")) == ["A.run"]
        assert changed(before, before.replace(" x, concrete=True", " x")) == ["A.f"]

    def test_local_names(self) -> None:
        units = """
            def a(n): return n
            def b():
                n = 1
                return n
            def c(): return [n for n in ()] + [(lambda n: n), (n := 1)]
            def d():
                import n
                try: pass
                except E as n: pass
                return n
            def e():
                n = 1
                def inner(): return n
                return inner
            def f(x):
                match x:
                    case {"a": 1, **n}: return n
            def reads():
                global n
                n = 1
            def reads_too(x=[n for x in ()]):
                return lambda: n
        """
        assert _names("n = 1\n" + text(units), "n = 2\n" + text(units)) == ["reads", "reads_too"]

    def test_class_without_methods_is_a_unit(self) -> None:
        before = "class A(nn.remat(B, concrete=True)):\n  width: int\n"
        (found,) = diff_modules(before, before.replace(", concrete=True", "")).changed
        assert (found.qualname, found.line) == ("A", 1)
        assert _names(before, before.replace("int", "float")) == ["A"]


class TestNames:
    """Units that only one text has."""

    def test_added_and_removed(self) -> None:
        before = "def f(): return 1\nclass A:\n  def m(self): return 2\n"
        after = "def g(x): return 3\nclass A:\n  def n(self, x): return 4\nclass C:\n  x: int\n"
        found = diff_modules(before, after)
        assert found == ModuleDiff((), ("g", "A.n", "C"), ("f", "A.m"))


def test_text_that_is_not_python():
    for before, after in [("def", ""), ("", "def"), ("\0", "")]:
        with pytest.raises(SourceError):
            diff_modules(before, after)


def test_unit_at():
    source = text("""
        # A comment.
        import jax

        @jax.jit
        def f(x):
            # Inside.
            return x

        class A:
            width: int = 3
            run = jax.checkpoint(f)

            def m(self):
                def inner():
                    return 1
                return inner

            class B:
                def n(self): return 2

        f, g = jax.jit(f), jax.jit(f)
        N = 3
        jax.config.update("x", 1)
        if __name__ == "__main__":
            print(N)
    """)
    expected = {
        "# A": "",
        "import jax": "",
        "@jax.jit": "f",
        "def f": "f",
        "# Inside": "f",
        "class A": "A",
        "width": "A",
        "run = ": "A.run",
        "return 1": "A.m",
        "class B": "A.B",
        "return 2": "A.B.n",
        "N = 3": "",
        "jax.config": "",
        "print(": "",
    }
    assert {key: unit_at(source, source.index(key)) for key in expected} == expected
    assert unit_at(source, source.index("f, g =")) in ("f", "g")
    assert unit_at("# é\ndef f(): 'é'; return 1", 20) == "f"
    assert unit_at(source, len(source)) == unit_at("def", 0) == ""
