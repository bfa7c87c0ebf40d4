"""Deep, long and broken texts: a module or a typed error, soon."""

import os
import random
import re
import time
from pathlib import Path

import pytest

import msa
from hlo.reader_rows import BODIES, HEADERS, module_text
from msa.errors import MsaError

DEEP = {
    "tuples": "ENTRY e { p = " + "(" * 100_000 + "f32[]" + ")" * 100_000 + " parameter(0) }",
    "operands": "ENTRY e { p = f32[] parameter(0) q = " + "negate(" * 100_000 + "p" + ")" * 100_000 + " }",
    "literals": "ENTRY e { p = f32[] constant(" + "{" * 100_000 + "1" + "}" * 100_000 + ") }",
    "computations": "ENTRY e { p = f32[] parameter(0) q = "
    + "f32[] call(p), to_apply={ p = f32[] parameter(0) q = " * 20_000
    + "negate(p)"
    + "}" * 20_000
    + " }",
    "braces": "ENTRY e { p = f32[] parameter(0), backend_config=" + "{" * 100_000 + "}" * 100_000 + " }",
    "stars": "ENTRY e { p = f32[] parameter(0) } /*" + "*" * 500_000,
    "slashes": "ENTRY e { p = f32[] parameter(0) }" + "/" * 500_000,
    "backslashes": 'ENTRY e { p = f32[] custom-call(), custom_call_target="' + "\\" * 200_001 + '" }',
    "word": "ENTRY e { p = f32[] " + "x" * 2_000_000 + " }",
    "digits": "ENTRY e { p = f32[" + "9" * 100_000 + "] parameter(0) }",
    "number": "ENTRY e { p = s32[] constant(" + "9" * 100_000 + ") }",
    "exponent": "ENTRY e { p = f32[] constant(1e" + "9" * 100_000 + ") }",
    "binary": "\x89PNG\r\n\x1a\n\x00" * 1000,
    "wide": "ENTRY e { p = (" + "f32[4]," * 20_000 + "f32[4]) parameter(0) }",
    "parameters": "ENTRY e {" + "".join(f" p{i} = f32[] parameter({9999 - i})\n" for i in range(10_000)) + "}",
    "fan": "ENTRY e {\n p = f32[] parameter(0)\n"
    + "".join(f" q{i} = f32[] negate(p), control-predecessors={{p}}\n" for i in range(5_000))
    + "}",
    "unknown": "ENTRY e {" + "".join(f" v{i} = f32[] parameter({i})\n" for i in range(10_000)) + " q = f32[] negate(v12x) }",
}  # fmt: skip


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_and_long_texts(text):
    start = time.process_time()
    try:
        module = msa.parse(text)
    except MsaError as error:
        message = str(error)
    else:
        message = ""
        assert msa.parse(module.to_text()) == module
    assert len(message) < 2_000
    assert time.process_time() - start < 20


def test_depth_within_the_limit_is_read():
    text = "ENTRY e { p = " + "(" * 8_000 + "f32[]" + ")" * 8_000 + " parameter(0) }"
    module = msa.parse(text)
    assert msa.parse(module.to_text()) == module
    nested = "negate(" * 8_000 + "p" + ")" * 8_000
    module = msa.parse(f"ENTRY e {{ p = f32[] parameter(0) q = {nested} }}")
    assert module.instruction_count == 8_001


TOKENS = re.compile(r"\s+|[A-Za-z_][\w.\-]*|-?\d+|.", re.DOTALL)
EXTRA = [
    *'{}(),=%0"?*:\0é\\',
    *("-1", "f32", "s32", "pred[]", "[]", "{}", "nan", "inf", "true", "/*", "*/", "#0"),
    *("<=8", "ROOT", "ENTRY", "9223372036854775808", "//", "S(1)", "T(8)", "...", "->"),
]


def mutate(tokens: list[str], source: random.Random, pool: list[str]) -> str:
    tokens = list(tokens)
    for _ in range(source.choice([1, 1, 2, 5])):
        if not tokens:
            break
        place, other = source.randrange(len(tokens)), source.randrange(len(tokens))
        match source.randrange(7):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, tokens[other])
            case 2:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens[place] = source.choice(EXTRA)
            case 4:
                tokens[place] += source.choice(EXTRA)
            case 5:
                tokens[place] = source.choice(pool)
            case _:
                del tokens[place : place + source.randrange(200)]
    return "".join(tokens)


def assault(texts: list[str], count: int, seed: int) -> dict[str, int]:
    """Read mutated texts; returns how many were read and how many refused."""
    source = random.Random(seed)
    split = [TOKENS.findall(text) for text in texts]
    pool = [
        token
        for tokens in source.sample(split, min(40, len(split)))
        for token in tokens
    ]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(count):
        text = mutate(source.choice(split), source, pool)
        start = time.process_time()
        try:
            module = msa.parse(text)
            outcomes["read"] += 1
            assert msa.parse(module.to_text()) == module
            module.to_text(canonical=True)
        except MsaError as error:
            outcomes["refused"] += 1
            str(error)
        # Five seconds for 100 kB, with room for a busy machine.
        assert time.process_time() - start < 1 + len(text) * 5e-5
    return outcomes


def grammar_texts() -> list[str]:
    texts = [module_text(body) for bodies in BODIES.values() for body in bodies]
    ending = "ROOT r = (f32[4,8], f32[8]) tuple(p, q)"
    return texts + [module_text(ending, f", {header}") for header in HEADERS]


def test_mutated_grammar():
    outcomes = assault(grammar_texts(), 800, seed=1)
    assert min(outcomes.values()) > 30


SHARED = os.environ.get("MSA_SHARED", "")


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set")
@pytest.mark.parametrize("seed", range(10))
def test_mutated_corpus(seed):
    paths = sorted((Path(SHARED) / "corpus").glob("*.hlo"))
    texts = [p.read_text() for p in paths if p.stat().st_size < 30_000]
    outcomes = assault(texts, 10_000, seed)
    assert min(outcomes.values()) > 100
