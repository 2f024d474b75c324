"""A setting in YAML: without it, the file loads with the same content."""

from __future__ import annotations

import textwrap

import pytest
from formats.plan import check, refused, without

CASES = {
    "workflow": (
        """
        name: train
        on: [push]

        env:
          OLD_WAY: "0"
        jobs:
          a:
            env:
              A: 1
              OLD_WAY: 0 # why
            steps:
              - name: set
                run: export OLD_WAY=0
              - name: set
                run: echo "OLD_WAY=0" >> $GITHUB_ENV
              - run: |
                  export OLD_WAY=0
                  python t.py --lr 3 --old_way=false
              - run: OLD_WAY=0 pytest
                env:
                  OLD_WAY: 0
              - run: |
                  cat > f <<EOF
                  ${{ github.sha }}
                  EOF
                  OLD_WAY=0 ls ${{ a && b }}
              - run: >-
                  python t.py
                  --a
                  --old_way=0
                  --b
              - env: {OLD_WAY: 0}
                run: "OLD_WAY=0 ls \\"a b\\" --old_way=0 x\\nexport OLD_WAY=0\\nls"
              - env: {A: 1, OLD_WAY: 0}
        """,
        """
        name: train
        on: [push]

        jobs:
          a:
            env:
              A: 1
            steps:
              - run: |
                  python t.py --lr 3
              - run: pytest
              - run: |
                  cat > f <<EOF
                  ${{ github.sha }}
                  EOF
                  ls ${{ a && b }}
              - run: >-
                  python t.py
                  --a
                  --b
              - run: "ls \\"a b\\" x\\nls"
              - env: {A: 1}
        """,
    ),
    "compose": (
        """
        services:
          a:
            environment:
              - OLD_WAY=0
              - A=1
          b:
            environment:
              - OLD_WAY
            image: x
          c:
            environment: {OLD_WAY: 0}
            command: ["python", "t.py", "--old_way=0"]
          d:
            command: [python, --old_way, "0", --lr, 3]
            args:
              - --old_way=False
            entrypoint: python t.py --old_way=0
          e:
            command: ["bash", "-c", "OLD_WAY=0 ls"]
            args:
            - -e
            - OLD_WAY=0
            - x
        """,
        """
        services:
          a:
            environment:
              - A=1
          b:
            image: x
          c:
            command: ["python", "t.py"]
          d:
            command: [python, --lr, 3]
            entrypoint: python t.py
          e:
            command: ["bash", "-c", "ls"]
            args:
            - x
        """,
    ),
    "kubernetes": (
        """
        spec:
          containers:
          - name: x
            args:
            - train.py
            - "--old_way=False"
            - --old_way
            - "false"
            env:
            - name: OLD_WAY
              value: "0"
            - name: A
              value: "1"
          - env:
            - value: "0"
              name: OLD_WAY
            image: y
        ---
        env:
          - name: OLD_WAY
            valueFrom: {configMapKeyRef: {name: m, key: k}}
        a: 1
        """,
        """
        spec:
          containers:
          - name: x
            args:
            - train.py
            env:
            - name: A
              value: "1"
          - image: y
        ---
        a: 1
        """,
    ),
    "emptied": (
        """
        base: &base
          env: &vars
            OLD_WAY: 0
        job:
          <<: *base
          variables: *vars
          script:
            - export OLD_WAY=0
          before_script: export OLD_WAY=0
          matrix:
            - OLD_WAY: 0
              a: 1
            - OLD_WAY: 0
            - env: OLD_WAY=0 A=1
        """,
        """
        base: &base
          env: &vars {}
        job:
          <<: *base
          variables: *vars
          script:
            - ":"
          before_script: ":"
          matrix:
            - a: 1
            - {}
            - env: A=1
        """,
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_files(before, after):
    check("x.yml", before, after)


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_result_is_yaml(before, after):
    yaml = pytest.importorskip("yaml")
    assert list(yaml.safe_load_all(without("x.yaml", textwrap.dedent(before))))


@pytest.mark.parametrize(
    "text",
    ["# OLD_WAY: 0\na: 1\n", "name: OLD_WAY=0 for old\n", "description: 'pass --old_way=0'\n"],
)
def test_prose_stays(text):
    assert without("x.yml", text) == text
    assert not refused("x.yml", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("env:\n  OLD_WAY: 0\nrun: echo $OLD_WAY\n", "line 3 reads it"),
        ("env:\n  OLD_WAY: 0\nif: env.OLD_WAY == '0'\n", "line 3 reads it"),
        ("model:\n  old_way: false\n", "is unclear"),
        ("run: |\n  python - <<E\n  environ['OLD_WAY'] = '0'\n  E\n", "here-document"),
        ("env:\n  {{- if x }}\n  OLD_WAY: 0\n  {{- end }}\n", "cannot parse"),
        ("OLD_WAY: 0\na: b: c\n", "cannot parse"),
        ("OLD_WAY: 0\na: [b\n", "cannot parse"),
        ("OLD_WAY: 0\na: 1\n  b: 2\n", "cannot parse"),
        ('OLD_WAY: 0\na: "b\n', "cannot parse"),
        ("OLD_WAY: 0\n? [a]\n: b\n", "complex keys"),
        ("OLD_WAY: 0\na:\n  " + "- " * 300 + "b\n", "nested too deeply"),
        ("OLD_WAY: 0\n" + "".join(" " * i + "a:\n" for i in range(300)), "nested too deeply"),
        ("OLD_WAY: 0\n" + "a:\n" * 33_000, "too many lines"),
    ],
)
def test_refusals_give_the_reason(text, reason):
    assert without("x.yml", text) == text
    assert any(reason in why for _, why in refused("x.yml", text))


def test_offsets_count_characters():
    text = "# ü—é\nn: 'é'\nenv:\n  A: \"—\"\n  OLD_WAY: 'ü'\nrun: OLD_WAY=é ls ü --old_way=0 —\n"
    after = "# ü—é\nn: 'é'\nenv:\n  A: \"—\"\nrun: ls ü —\n"
    assert without("x.yml", text) == after


def test_prose_in_lists_stays():
    text = "keywords:\n- OLD_WAY\n- what it is for\n"
    assert without("x.yml", text) == text
    assert not refused("x.yml", text)
