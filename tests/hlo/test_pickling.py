"""Modules and plans across processes: `pickle` and `copy`."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path

import pytest

import msa
from msa.errors import HloError
from msa.hlo import verify
from msa.testing import random_module

SHARED = os.environ.get("MSA_SHARED")


def again(value):
    return pickle.loads(pickle.dumps(value))


def require_equal(other: msa.Module, module: msa.Module) -> None:
    assert other == module
    assert other.to_text() == module.to_text()
    assert other.id_limit == module.id_limit
    for a, b in zip(other.computations, module.computations, strict=True):
        assert [x.id for x in a.instructions] == [x.id for x in b.instructions]
        for x, y in zip(a.instructions, b.instructions, strict=True):
            assert [u.name for u in x.users] == [u.name for u in y.users]
            assert x.line == y.line
    verify(other)


@pytest.mark.parametrize("seed", range(5))
def test_random_modules(seed: int) -> None:
    module = random_module(seed, 60)
    require_equal(again(module), module)
    require_equal(copy.deepcopy(module), module)


def test_a_very_deep_chain() -> None:
    steps = 100_000
    body = "".join(f"x{i} = f32[]{{}} negate(x{i - 1})\n" for i in range(1, steps))
    text = f"HloModule m, is_scheduled=true\nENTRY e {{ x0 = f32[] parameter(0)\n{body}"
    module = msa.parse(
        text.replace("[]{}", "[]") + f"ROOT r = f32[] abs(x{steps - 1}) }}"
    )
    other, last = again((module, module.entry.root))
    assert last is other.entry.root
    assert other == module


def test_parts_stay_parts_of_their_module() -> None:
    module = random_module(3, 60)
    body = module.computations[0]
    x = body.instructions[0]
    found, other, inner = again((x, module, body))
    assert inner is other.computations[0]
    assert found is inner.instructions[0]
    alone = again(x)
    assert (alone.name, alone.computation.module) == (x.name, module)
    assert copy.copy(x) is x
    module.entry.create("late", "negate", x.shape, (module.entry.root,))
    late = module.entry.instructions[-1]
    assert again(again(late)).name == "late"
    assert copy.copy(late) is late


def test_what_was_removed_is_still_named() -> None:
    module = msa.parse(
        "ENTRY e { p = f32[4] parameter(0) n = f32[4] negate(p) ROOT a = f32[4] abs(p) }"
    )
    gone = module.entry.instructions[1]
    module.entry.remove([gone])
    found, other = again((gone, module))
    assert (found.name, str(found.shape), found.operands) == ("n", "f32[4]{0}", ())
    assert found not in other.entry.instructions
    loose = msa.hlo.Instruction("l", "negate", gone.shape, (module.entry.root,))
    with pytest.raises(HloError, match="not part of a module"):
        pickle.dumps(loose)


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_plans(strategy: str) -> None:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4096)
    options = msa.Options(strategy=strategy)
    for seed in range(4):
        plan = msa.assign(random_module(seed, 60), target, options)
        other = again(plan)
        other.verify()
        assert other.to_json() == plan.to_json()
        assert other.summary() == plan.summary()
        assert other.ascii() == plan.ascii()
        assert not other.diff(plan)
        name = plan.original.entry.root.name
        assert other.explain(name) == plan.explain(name)
    other.prove()


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set: no corpus")
def test_real_modules() -> None:
    for path in sorted((Path(SHARED or ".") / "corpus").glob("*.hlo*")):
        module = msa.load(path)
        assert again(module) == module, path.name
