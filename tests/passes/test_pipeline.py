from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import msa
from msa.analysis import AnalysisManager
from msa.errors import InternalError, OptionsError
from msa.passes import Pass, Pipeline, pass_names
from msa.passes.dead_code import EliminateDeadCode
from msa.passes.pipeline import parse_pipeline

TEXT = """
HloModule m, is_scheduled=true
add { a = f32[] parameter(0)
  ROOT s = f32[] add(a, a) }
unused { ROOT u = f32[] parameter(0) }
ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  dead1 = f32[4]{0} negate(x)
  dead2 = f32[4]{0} exponential(dead1)
  p = f32[4]{0} multiply(x, y)
  q = f32[4]{0} multiply(y, x)
  z = f32[4]{0} subtract(p, q)
  ROOT r = f32[4]{0} add(z, p)
}"""


def test_text_and_passes_are_the_same() -> None:
    assert parse_pipeline("") == ()
    (one, two) = parse_pipeline(
        " cse{layout-sensitive=false} , schedule{algorithm=dfs}"
    )
    assert isinstance(one, Pass)
    assert repr(two) == "ScheduleModule(algorithm='dfs')"
    assert one.layout_sensitive is False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dec", "dce"),
        ("dce,", "ends with a comma"),
        ("dce{x=1}", "no option"),
        ("dce}{", "cannot read"),
        ("schedule{algorithm=fast}", "algorithm is one of"),
        ("cse{layout_sensitiv=1}", "layout_sensitive"),
    ],
)
def test_bad_pipelines_are_typed_errors(text: str, message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        Pipeline(text)


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("dce, nosuch", 6, ""),
        ("dce{x=1}", 1, "a form such as"),
        ("cse,dce{", 5, "a form such as"),
        ("dce,", 4, "a form such as"),
        ("dce,,cse", 5, "a form such as"),
        ("dce,rematerialize{memory_limit=much}", 5, "16MiB"),
        ("rematerialize{block_size_limit=some}", 1, "a whole number"),
        ("rematerialize{block_size_limit=0}", 1, "a form such as"),
        ("rematerialize{required=5}", 1, "true or false"),
        ("cse{layout_sensitive=7}", 1, "true or false"),
        ("cse,host-offload{automatic_host_compute=maybe}", 5, "true or false"),
        ("schedule{algorithm=list,algorithm=dfs}", 1, "a form such as"),
        ("rematerialize{memory-limit=1,memory_limit=2}", 1, "a form such as"),
        ("schedule{algorithm=3}", 1, "a word"),
        ("cse{,}", 1, "a form such as"),
        ("dce,cse{layout_sensitive=true,}", 5, "a form such as"),
        ("cse{=true}", 1, "a form such as"),
        ("DCE", 1, "did you mean 'dce'"),
    ],
)
def test_bad_pipelines_say_where_and_what_to_try(
    text: str, column: int, hint: str
) -> None:
    with pytest.raises(OptionsError) as caught:
        Pipeline(text)
    assert caught.value.where == f"column {column}"
    assert hint in caught.value.hint
    assert caught.value.hint


@pytest.mark.parametrize(
    "given", [None, 3, ["dce"], [None], object(), [EliminateDeadCode]]
)
def test_what_is_no_pipeline(given: object) -> None:
    with pytest.raises(OptionsError, match="text or passes"):
        Pipeline(given)  # type: ignore[arg-type]


def test_every_pass_has_a_name_that_makes_it() -> None:
    for name in pass_names():
        (one,) = parse_pipeline(name)
        assert one.name == name


def test_dead_code_goes_with_its_schedule() -> None:
    module = msa.parse(TEXT)
    pipeline = Pipeline("dce")
    after = pipeline.run(module)
    assert [x.name for x in after.entry.instructions] == ["x", "y", "p", "q", "z", "r"]
    assert [c.name for c in after.computations] == ["e"]
    assert after.is_scheduled
    assert module.instruction_count == 11
    record = pipeline.records[0]
    assert (record.changed, record.instructions_after) == (True, 6)
    assert not Pipeline("dce").run(after).entry.instructions[2].is_dead


def test_common_subexpressions_merge_also_commuted() -> None:
    after = Pipeline("cse,dce").run(msa.parse(TEXT))
    assert [x.name for x in after.entry.instructions] == ["x", "y", "p", "z", "r"]
    inputs = [np.arange(4.0), np.arange(4.0) + 1]
    want = msa.execute(msa.parse(TEXT), inputs)
    assert msa.execute(after, inputs).tolist() == want.tolist()


@pytest.mark.parametrize("sensitive", [True, False])
def test_layouts_and_spaces_count_when_asked(sensitive: bool) -> None:
    module = msa.parse("""
ENTRY e { x = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(x)
  b = f32[4]{0:S(1)} negate(x)
  ROOT r = f32[4]{0} add(a, b) }""")
    text = f"cse{{layout_sensitive={str(sensitive).lower()}}}"
    assert Pipeline(text).run(module).instruction_count == (4 if sensitive else 3)


@pytest.mark.parametrize(
    "body",
    [
        "a = f32[4] copy(x)\n b = f32[4] copy(x)",
        (
            "i = f32[] constant(0)\n j = f32[] constant(1)\n"
            "a = f32[4] rng(i, j), distribution=rng_uniform\n"
            "b = f32[4] rng(i, j), distribution=rng_uniform"
        ),
        (
            'a = f32[4] custom-call(x), custom_call_target="f"\n'
            'b = f32[4] custom-call(x), custom_call_target="f"'
        ),
        "a = f32[4] iota(), iota_dimension=0\n b = f32[4] negate(x)",
    ],
    ids=["copies", "random", "custom calls", "different"],
)
def test_what_must_stay_apart_does(body: str) -> None:
    module = msa.parse(
        f"ENTRY e {{ x = f32[4] parameter(0)\n {body}\n ROOT r = f32[4] add(a, b) }}"
    )
    assert Pipeline("cse").run(module).instruction_count == module.instruction_count


def test_equal_constants_merge_but_unknown_ones_do_not() -> None:
    module = msa.parse("""
ENTRY e { a = f32[2] constant({1, 2})
  b = f32[2] constant({1, 2})
  c = f32[2] constant({1, 3})
  d = f32[2] add(a, b)
  ROOT r = f32[2] add(d, c) }""")
    assert Pipeline("cse{constants_only}").run(module).instruction_count == 4
    module = msa.parse("""
ENTRY e { a = f32[20] constant({...})
  b = f32[20] constant({...})
  ROOT r = f32[20] add(a, b) }""")
    assert Pipeline("cse").run(module).instruction_count == 3


@dataclass(frozen=True, slots=True)
class Break:
    """A pass that leaves a schedule behind that misses an instruction."""

    name: ClassVar[str] = "break"

    def apply(self, module: msa.Module, analyses: AnalysisManager) -> bool:
        assert module.schedule is not None
        sequence = module.schedule.sequence(module.entry)
        module.schedule.set_sequence(module.entry, sequence[1:])
        return True


def test_a_pass_that_breaks_the_module_is_named() -> None:
    with pytest.raises(InternalError, match=r"'break'.*not scheduled"):
        Pipeline([Break()]).run(msa.parse(TEXT))


@dataclass(frozen=True, slots=True)
class BreakSilently(Break):
    """The same, and it says that nothing changed."""

    def apply(self, module: msa.Module, analyses: AnalysisManager) -> bool:
        Break.apply(self, module, analyses)
        return False


def test_a_pass_that_breaks_the_module_and_says_nothing_is_named() -> None:
    with pytest.raises(InternalError, match=r"'break'.*not scheduled"):
        Pipeline([BreakSilently()]).run(msa.parse(TEXT))


SHARED = os.environ.get("MSA_SHARED")
PIPELINES = (
    "dce,cse,dce",
    "schedule{algorithm=list},copy-insertion,cse,dce",
    "host-offload-legalize,host-offload,host-transfers-async",
    "schedule{algorithm=dfs},rematerialize{memory_limit=64MiB},dce",
    "memory-space-propagation",
)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set: no corpus")
@pytest.mark.parametrize("text", PIPELINES)
def test_real_modules_stay_right(text: str) -> None:
    for path in sorted((Path(SHARED or ".") / "corpus").glob("*.hlo*")):
        module = msa.load(path)
        after = Pipeline(text).run(module)
        assert msa.parse(after.to_text()) == after, path.name
        if text in ("dce,cse,dce", "memory-space-propagation"):
            assert Pipeline(text).run(after) == after, path.name


def test_analyses_are_forgotten_after_a_change() -> None:
    seen = []

    @dataclass(frozen=True, slots=True)
    class Look:
        name: ClassVar[str] = "look"

        def apply(self, module: msa.Module, analyses: AnalysisManager) -> bool:
            seen.append(len(analyses.schedule))
            return False

    pipeline = Pipeline([Look(), *parse_pipeline("dce"), Look()])
    pipeline.run(msa.parse(TEXT))
    assert seen == [8, 6]
