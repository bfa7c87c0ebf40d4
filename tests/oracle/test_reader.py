"""What our reader and printer make of a text, judged by XLA's own reader.

XLA reads the text and reads what we print of it; both must have one canonical form.
The judge runs in a process of its own, since it aborts on some texts.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

import msa
from hlo.accepted_modules import ACCEPTED
from hlo.parser.test_forms import FORMS
from hlo.reader_rows import BODIES, module_text

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jaxlib") is None, reason="jaxlib is not installed"
    ),
]

JUDGE = """
import json, sys
from jaxlib import _hlo
for line in sys.stdin:
    try:
        module = _hlo.hlo_module_from_text(json.loads(line))
        answer = ["ok", module.to_string(_hlo.HloPrintOptions.canonical())]
    except Exception as error:
        answer = ["error", str(error)]
    print(json.dumps(answer), flush=True)
"""

NOT_READ_BACK = ("T(*,128)", "#(u32)")
"""Layouts that XLA prints and then refuses, now and then."""


def judge(texts: list[str]) -> list[tuple[str, str]]:
    """XLA's canonical form of each text, or its error, or that it died of it."""
    answers: list[tuple[str, str]] = []
    while len(answers) < len(texts):
        done = subprocess.run(
            [sys.executable, "-c", JUDGE],
            input="\n".join(map(json.dumps, texts[len(answers) :])),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        answers += [tuple(json.loads(line)) for line in done.stdout.splitlines()]
        if done.returncode:
            answers.append(("died", ""))
    return answers


@pytest.mark.parametrize("group", ["forms", "accepted", *BODIES])
def test_canonical_forms_agree(group: str) -> None:
    if group == "forms":
        texts = list(FORMS)
    elif group == "accepted":
        texts = list(ACCEPTED.values())
    else:
        texts = [module_text(body) for body in BODIES[group]]
    texts = [text for text in texts if not any(s in text for s in NOT_READ_BACK)]
    ours = [msa.parse(text, verify=False).to_text() for text in texts]
    wrong = [
        (text, before, after)
        for text, before, after in zip(texts, judge(texts), judge(ours), strict=True)
        if before[0] == "ok" and before != after
    ]
    assert not wrong, wrong[0]
    if group == "forms":
        assert all(answer == "ok" for answer, _ in judge(texts))
