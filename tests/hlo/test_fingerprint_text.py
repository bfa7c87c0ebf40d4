"""Any change of a program's text shows in its fingerprint, except names and notes.

Texts with every kind of attribute are changed in one token and read again.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.errors import MsaError
from msa.hlo import canonical_text, fingerprint
from msa.hlo.module import Module

DATA = Path(__file__).parents[1] / "data"
TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[%]?[A-Za-z_][\w.\-]*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\S'
)
# What says nothing about the program: where it came from, and in which order it runs.
NOTES = re.compile(
    r"metadata=\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|origin=\{.*|is_scheduled=\w+"
    r"|(?ms:^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n.*?\n\n)"
)
WORDS = (
    ("true", "false"),
    ("LT", "GT"),
    ("EQ", "NE"),
    ("GE", "LE"),
    ("kLoop", "kInput"),
    ("FLOAT", "TOTALORDER"),
    ("SIGNED", "UNSIGNED"),
    ("f32", "f16"),
    ("s32", "u32"),
    ("f64", "bf16"),
    ("pred", "s8"),
    ("rng_uniform", "rng_normal"),
    ("may-alias", "must-alias"),
    ("default", "highest"),
    ("replicated", "manual"),
    ("NO_TRANSPOSE", "TRANSPOSE"),
    ("rng_default", "rng_philox"),
    ("FFT", "IFFT"),
)
SWAPPED = {a: b for pair in WORDS for a, b in (pair, pair[::-1])}


@cache
def forms() -> tuple[str, ...]:
    """Programs of the reader's tests that print and read back."""
    found = []
    for name in ("reader_forms.txt", "reader_modules.txt"):
        for text in (DATA / name).read_text().split("=====\n"):
            try:
                printed = msa.parse(text, verify=False).to_text()
                msa.parse(printed, verify=False)
            except MsaError:
                continue
            found.append(printed)
    return tuple(found)


@cache
def tokens(text: str) -> tuple[tuple[int, str], ...]:
    """Places and tokens that may be changed."""
    notes = [m.span() for m in NOTES.finditer(text)]
    return tuple(
        (m.start(), m.group())
        for m in TOKEN.finditer(text)
        if not any(a <= m.start() < b for a, b in notes)
        and (m.group() in SWAPPED or m.group()[0].isdigit() or m.group()[0] == '"')
    )


@cache
def read(text: str) -> tuple[Module, str]:
    module = msa.parse(text, verify=False)
    return module, fingerprint(module)


def changed(token: str, rng: random.Random) -> str:
    """Another word, number or string."""
    if token in SWAPPED:
        return SWAPPED[token]
    places = [i for i, c in enumerate(token) if c.isdigit() or token[0] == '"']
    places = [i for i in places if token[i] not in '"\\']
    if not places:
        return token
    place = rng.choice(places)
    old = token[place]
    new = str((int(old) + 1 + rng.randrange(8)) % 10) if old.isdigit() else "Q"
    return token[:place] + new + token[place + 1 :]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_a_changed_token_shows_K3(number: int, rng: random.Random) -> None:
    text = forms()[number % len(forms())]
    places = tokens(text)
    if not places:
        return
    place, token = rng.choice(places)
    other = text[:place] + changed(token, rng) + text[place + len(token) :]
    module, before = read(text)
    try:
        new = msa.parse(other, verify=False)
    except MsaError:
        return
    if new != module:
        assert fingerprint(new) != before, f"{token} -> {other[place : place + 20]!r}"


def test_texts_have_attributes_of_many_kinds() -> None:
    """The property above is not empty."""
    assert len(forms()) > 100
    seen = {
        name
        for text in forms()
        for c in read(text)[0].computations
        for x in c.instructions
        for name in x.attributes
    }
    wanted = [
        "window",
        "dim_labels",
        "feature_group_count",
        "sharding",
        "literal",
        "replica_groups",
        "source_target_pairs",
        "channel_id",
        "frontend_attributes",
        "dimensions",
        "slice",
        "index",
        "custom_call_target",
        "output_to_operand_aliasing",
        "padding",
        "operand_precision",
        "lhs_contracting_dims",
        "fft_type",
        "statistics",
        "offset_dims",
        "distribution",
        "algorithm",
    ]
    missing = {w for w in wanted if not any(w in name for name in seen)}
    assert not missing, missing


PAIRS = {
    "literal of a custom call": (
        'ENTRY e { ROOT c = f32[] custom-call(), custom_call_target="f", literal=f32[] 0.1 }',
        "0.1",
        "0.2",
    ),
    "dimension numbers": (
        (
            "ENTRY e { x = f32[2,2] parameter(0) y = f32[2,2] parameter(1) ROOT d = f32[2,2] "
            "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
        ),
        "lhs_contracting_dims={1}",
        "lhs_contracting_dims={0}",
    ),
    "layout": (
        "ENTRY e { x = f32[2,2]{1,0} parameter(0) ROOT y = f32[2,2]{1,0} negate(x) }",
        "ROOT y = f32[2,2]{1,0}",
        "ROOT y = f32[2,2]{0,1}",
    ),
    "tiling": (
        "ENTRY e { x = f32[8,8] parameter(0) ROOT y = f32[8,8]{1,0:T(4,8)} negate(x) }",
        "T(4,8)",
        "T(8,4)",
    ),
    "statistics": (
        "ENTRY e { ROOT x = f32[] parameter(0), statistics={visualizing_index=1,a=1000000} }",
        "1000000",
        "1000001",
    ),
    "alias kind": (
        (
            "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
            "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }"
        ),
        "may-alias",
        "must-alias",
    ),
    "donor": (
        (
            "HloModule m, buffer_donor={ (0, {}) }\n"
            "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }"
        ),
        "buffer_donor={ (0, {}) }",
        "replica_count=1",
    ),
    "an operand of dead code": (
        (
            "ENTRY e { x = f32[2] parameter(0) a = f32[2] negate(x) b = f32[2] abs(x) "
            "dead = f32[2] subtract(a, b) ROOT y = f32[2] negate(x) }"
        ),
        "subtract(a, b)",
        "subtract(b, a)",
    ),
    "a computation that nothing calls": (
        (
            "alone { x = f32[2] parameter(0) ROOT n = f32[2] negate(x) }\n"
            "ENTRY e { ROOT y = f32[2] parameter(0) }"
        ),
        "negate",
        "abs",
    ),
    "a thread": (
        (
            "other { x = f32[2] parameter(0) ROOT n = f32[2] negate(x) }, "
            'execution_thread="a"\nENTRY e { ROOT y = f32[2] parameter(0) }'
        ),
        '"a"',
        '"b"',
    ),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_each_kind_shows_K3(kind: str) -> None:
    text, old, new = PAIRS[kind]
    assert text.count(old) == 1
    first = msa.parse(text, verify=False)
    second = msa.parse(text.replace(old, new), verify=False)
    assert fingerprint(first) != fingerprint(second)


def ring(edges: list[tuple[int, int]], order: list[int]) -> Module:
    """Equal values that nothing needs, added pairwise, written in some order."""
    count = 1 + max(max(edge) for edge in edges)
    lines = [f"n{i} = f32[8] negate(p)" for i in range(count)]
    lines += [f"d{order[k]} = f32[8] add(n{a}, n{b})" for k, (a, b) in enumerate(edges)]
    rest = lines[count:]
    random.Random(order[0]).shuffle(rest)
    body = "\n".join([*lines[:count], *rest])
    return msa.parse(
        f"ENTRY e {{ p = f32[8] parameter(0)\n{body}\nROOT r = f32[8] abs(p) }}"
    )


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(12)), st.permutations(range(12)))
def test_dead_code_in_any_order_is_the_same_K3(
    names: list[int], order: list[int]
) -> None:
    six = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]
    threes = [(6, 7), (7, 8), (8, 6), (9, 10), (10, 11), (11, 9)]
    edges = six + threes
    moved = [(names[a], names[b]) for a, b in edges]
    plain = ring(edges, list(range(12)))
    other = ring(moved, order)
    assert canonical_text(other) == canonical_text(plain)
    fewer = ring(edges[:-1], list(range(11)))
    assert fingerprint(fewer) != fingerprint(plain)


def test_dead_values_are_counted_K3() -> None:
    once = "ENTRY e { p = f32[8] parameter(0) a = f32[8] abs(p) ROOT r = f32[8] negate(p) }"
    twice = once.replace("ROOT", "b = f32[8] abs(p) ROOT")
    assert fingerprint(msa.parse(once)) != fingerprint(msa.parse(twice))
