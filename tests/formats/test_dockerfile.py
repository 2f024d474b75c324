"""A setting in Dockerfiles."""

from __future__ import annotations

import pytest
from formats.plan import check, refused, without

INSTRUCTIONS = [
    ("ENV OLD_WAY=0\n", ""),
    ("ENV OLD_WAY 0\n", ""),
    ("ENV A=1 OLD_WAY=0 B=2\n", "ENV A=1 B=2\n"),
    ("ENV A=1 \\\n    OLD_WAY=0 \\\n    B=2\n", "ENV A=1 \\\n    B=2\n"),
    ("ENV A=1 \\\n    OLD_WAY=0\nRUN ls\n", "ENV A=1\nRUN ls\n"),
    ("ENV A=1 \\\n    # c\n    OLD_WAY=0\n", "ENV A=1\n    # c\n"),
    ("ENV A=1 \\\n    # c\n    OLD_WAY=0 \\\n    B=2\n", "ENV A=1 \\\n    # c\n    B=2\n"),
    ("ENV A=1 \\\n    OLD_WAY=0 \\\n    # c\n    B=2\n", "ENV A=1 \\\n    # c\n    B=2\n"),
    ("ENV OLD_WAY=0 \\\n    # c\n    B=2\n", "ENV \\\n    # c\n    B=2\n"),
    ("ENV \\\n    # c\n    OLD_WAY=0\nRUN ls\n", "    # c\nRUN ls\n"),
    ('ENV FLAGS="--old_way=0 --x"\n', 'ENV FLAGS="--x"\n'),
    ("ARG OLD_WAY=0\nARG OLD_WAY\n", ""),
    ("RUN export OLD_WAY=0 && \\\n    ls\n", "RUN ls\n"),
    ("RUN a && \\\n    export OLD_WAY=0 && \\\n    b\n", "RUN a && \\\n    b\n"),
    ("RUN a; \\\n    export OLD_WAY=0; \\\n    b\n", "RUN a; \\\n    b\n"),
    ("RUN export OLD_WAY=0\nRUN ls\n", "RUN ls\n"),
    ("RUN --mount=type=cache,target=/x OLD_WAY=0 ls\n", "RUN --mount=type=cache,target=/x ls\n"),
    ('RUN echo "OLD_WAY=0" >> /etc/environment\nRUN ls\n', "RUN ls\n"),
    ("RUN <<EOF\nexport OLD_WAY=0\nls\nEOF\n", "RUN <<EOF\nls\nEOF\n"),
    ('CMD ["python", "t.py", "--old_way=0"]\n', 'CMD ["python", "t.py"]\n'),
    ('CMD ["python", "--old_way", "0", "x"]\n', 'CMD ["python", "x"]\n'),
    ('ENTRYPOINT ["bash", "-c", "OLD_WAY=0 ls"]\n', 'ENTRYPOINT ["bash", "-c", "ls"]\n'),
    ("CMD python t.py --old_way=0\n", "CMD python t.py\n"),
    ("HEALTHCHECK --interval=5m CMD OLD_WAY=0 ls\n", "HEALTHCHECK --interval=5m CMD ls\n"),
    ("ONBUILD ENV OLD_WAY=0\nRUN ls\n", "RUN ls\n"),
]


@pytest.mark.parametrize(("before", "after"), INSTRUCTIONS, ids=lambda text: text[:40])
def test_instructions(before, after):
    check("Dockerfile", f"FROM x\n{before}", f"FROM x\n{after}")


def test_other_names_and_comments_stay():
    text = "FROM x\n# ENV OLD_WAY=0\nENV MY_OLD_WAY=0\nLABEL a='--old_way=0'\n"
    assert without("gpu.Dockerfile", text) == text
    assert without("Dockerfile.gpu", text) == text
    assert not refused("Dockerfile.gpu", text)


def test_backquote_for_an_escape():
    before = "# escape=`\nENV A=1 `\n    OLD_WAY=0\n"
    assert without("Dockerfile", before) == "# escape=`\nENV A=1\n"


def test_variables_that_are_used_stay():
    text = "ARG OLD_WAY=0\nRUN echo $OLD_WAY\n"
    assert without("Dockerfile", text) == text
    assert [found for found, _ in refused("Dockerfile", text)] == ["OLD_WAY=0", "$OLD_WAY"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RUN <<EOF\n#!/usr/bin/env python\nOLD_WAY=0\nEOF\n", "another program"),
        ("ENV OLD_WAY=0;B=1\n", "more than a list of variables"),
        ("RUN OLD_WAY=0 ls &&\nRUN ls\n", "unsupported syntax"),
        ("COPY <<EOF /x\nOLD_WAY=0\nEOF\n", "here-document"),
    ],
)
def test_refusals_give_the_reason(text, reason):
    assert without("Dockerfile", text) == text
    assert any(reason in why for _, why in refused("Dockerfile", text))
