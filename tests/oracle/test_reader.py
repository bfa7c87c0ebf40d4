"""What our reader and printer make of a text, judged by XLA's own reader.

XLA reads the text and reads what we print of it; both must have one canonical form.
The judge runs in a process of its own, since it aborts on some texts.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from random import Random

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


def judge(texts: list[str], program: str = JUDGE) -> list[tuple[str, str]]:
    """XLA's canonical form of each text, or its error, or that it died of it."""
    answers: list[tuple[str, str]] = []
    while len(answers) < len(texts):
        done = subprocess.run(
            [sys.executable, "-c", program],
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


def _sharing_names(seed: int) -> str:
    """Computations with names from one small pool, each calling those before it."""
    random = Random(seed)
    pool = ["x", "x.1", "x.2", "x.5", "y", "y.3", "x.a", "x.1.2", "z_1", "z.10"]
    text = "HloModule m\n"
    for number in range(random.randint(2, 5)):
        first, *names = random.sample(pool, random.randint(2, 5))
        text += f"f{number} {{ {first} = f32[4] parameter(0)\n"
        for name in names:
            callee = f"call({first}), to_apply=f{random.randrange(number or 1)}"
            text += f"{name} = f32[4] {callee if number else f'negate({first})'}\n"
        text += "}\n"
    return text


NAMES = JUDGE.replace(
    "module.to_string(_hlo.HloPrintOptions.canonical())",
    "json.dumps([[i.name for i in c.instructions()] for c in module.computations()])",
)


def test_shared_names_get_the_same_numbers() -> None:
    texts = [_sharing_names(seed) for seed in range(200)]
    for text, (answer, names) in zip(texts, judge(texts, NAMES), strict=True):
        assert answer == "ok", names
        module = msa.parse(text)
        ours = [[x.name for x in c.instructions] for c in module.computations]
        assert sorted(ours) == sorted(json.loads(names)), text
