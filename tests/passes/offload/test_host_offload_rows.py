"""Host offloading from annotations: rows of group J of the outcomes."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from msa.hlo import verify
from msa.hlo.instruction import Instruction
from msa.passes import Pipeline, offload_to_host
from msa.passes.offload import HostOffloadError
from msa.passes.offload.vocabulary import is_host_compute

TO_HOST = 'custom_call_target="MoveToHost"'
TO_DEVICE = 'custom_call_target="MoveToDevice"'
SAME = {
    "MoveToHost": lambda _: lambda x: x,
    "MoveToDevice": lambda _: lambda x: x,
}


def run(text: str, **settings: bool) -> dict[str, Instruction]:
    """Offload, check what always holds, and give instructions by name."""
    module = msa.parse(text)
    before = module.to_text()
    result = offload_to_host(module, **settings)
    assert module.to_text() == before, "the input is not changed"
    verify(result.module)
    assert msa.parse(result.module.to_text()) == result.module
    found = {}
    for computation in result.module.computations:
        for x in computation.instructions:
            target = str(x.attributes.get("custom_call_target"))
            assert not target.startswith("MoveTo"), "no annotation is left"
            found[x.name] = x
    found["ROOT"] = result.module.entry.root
    return found


def spaces(x: Instruction) -> list[int]:
    return [s.memory_space for _, s in x.shape.leaves() if s.is_array]


def copies(found: dict[str, Instruction]) -> list[tuple[int, int]]:
    """Source and target spaces of all copies."""
    return [
        (x.operands[0].shape.memory_space, x.shape.memory_space)
        for name, x in found.items()
        if x.opcode == "copy" and name != "ROOT"
    ]


def stack(extra: str = "", target: str = "broadcast(zero), dimensions={}") -> str:
    return f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  i = s32[] parameter(1)
  zero = f32[] constant(0)
  k = s32[] constant(0)
  wide = f32[4,8]{{1,0}} {target}
  out = f32[1,8]{{1,0}} custom-call(x), {TO_HOST}
  update = f32[4,8]{{1,0}} dynamic-update-slice(wide, out, i, k)
  {extra}
"""


SLICE = (
    "slice = f32[1,8]{1,0} dynamic-slice(update, i, k), dynamic_slice_sizes={1,8}\n"
    f"  ROOT back = f32[1,8]{{1,0}} custom-call(slice), {TO_DEVICE}\n}}"
)


def test_update_and_slice_are_transfers_J1() -> None:
    found = run(stack(SLICE))
    buffer = found["update"].operands[0]
    assert buffer.attributes["custom_call_target"] == "AllocateBuffer"
    assert spaces(buffer) == spaces(found["update"]) == [5]
    assert found["ROOT"] is found["slice"]
    assert spaces(found["slice"]) == [0]
    assert copies(found) == []
    assert "wide" not in found


def test_buffer_through_a_tuple_J2() -> None:
    text = stack(SLICE).replace(
        "  update = f32[4,8]{1,0} dynamic-update-slice(wide,",
        """  t = (f32[4,8]{1,0}, s32[]) tuple(wide, i)
  part = f32[4,8]{1,0} get-tuple-element(t), index=0
  update = f32[4,8]{1,0} dynamic-update-slice(part,""",
    )
    found = run(text)
    assert spaces(found["t"]) == [5, 0]
    assert spaces(found["part"]) == [5]
    assert found["ROOT"] is found["slice"]
    assert spaces(found["slice"]) == [0]
    assert copies(found) == []


def test_other_readers_keep_the_broadcast_J2() -> None:
    late = SLICE.replace("ROOT back", "back").removesuffix("}")
    text = stack(
        f"""{late}
  other = f32[4,8]{{1,0}} negate(wide)
  ROOT both = (f32[1,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(back, other)
}}"""
    )
    found = run(text)
    assert found["other"].operands[0].opcode == "broadcast"
    assert spaces(found["wide"]) == [0]
    assert spaces(found["update"]) == [5]
    assert copies(found) == []


def test_without_a_slice_J3() -> None:
    found = run(stack(f"ROOT b = f32[4,8]{{1,0}} custom-call(update), {TO_DEVICE}\n}}"))
    assert copies(found) == [(5, 0)]
    assert found["ROOT"].opcode == "copy"
    assert found["ROOT"].operands[0] is found["update"]


def test_update_and_tuple_share_an_annotation_J4() -> None:
    text = stack(
        f"""slice = f32[1,8]{{1,0}} dynamic-slice(update, i, k), dynamic_slice_sizes={{1,8}}
  back = f32[1,8]{{1,0}} custom-call(slice), {TO_DEVICE}
  t = (f32[1,8]{{1,0}}) tuple(out)
  part = f32[1,8]{{1,0}} get-tuple-element(t), index=0
  back2 = f32[1,8]{{1,0}} custom-call(part), {TO_DEVICE}
  ROOT sum = f32[1,8]{{1,0}} add(back, back2)
}}"""
    )
    found = run(text)
    assert sorted(copies(found)) == [(0, 5), (5, 0)]
    assert found["update"].operands[1] is found["x"]
    assert found["t"].operands[0].operands[0] is found["x"]


def test_target_on_the_device_is_refused_J5() -> None:
    text = stack(SLICE, "parameter(2)")
    with pytest.raises(HostOffloadError, match="argument on the device"):
        run(text)


def chain(*lines: str, shape: str = "f32[8]{0}", head: str = "") -> str:
    body = "\n  ".join(lines)
    return f"{head}ENTRY e {{\n  x = {shape} parameter(0)\n  {body}\n}}"


OUT = f"out = f32[8]{{0}} custom-call(x), {TO_HOST}"


def test_out_and_back_J6() -> None:
    found = run(chain(OUT, f"ROOT back = f32[8]{{0}} custom-call(out), {TO_DEVICE}"))
    assert copies(found) == [(0, 5), (5, 0)]


def test_through_nested_tuples_and_barriers_J7() -> None:
    found = run(
        chain(
            OUT,
            "t = (f32[8]{0}, f32[8]{0}) tuple(x, out)",
            "n = ((f32[8]{0}, f32[8]{0}), f32[8]{0}) tuple(t, x)",
            "b = ((f32[8]{0}, f32[8]{0}), f32[8]{0}) opt-barrier(n)",
            "u = (f32[8]{0}, f32[8]{0}) get-tuple-element(b), index=0",
            "v = f32[8]{0} get-tuple-element(u), index=1",
            f"ROOT back = f32[8]{{0}} custom-call(v), {TO_DEVICE}",
        )
    )
    assert spaces(found["t"]) == [0, 5]
    assert spaces(found["n"]) == spaces(found["b"]) == [0, 5, 0]
    assert spaces(found["u"]) == [0, 5]
    assert spaces(found["v"]) == [5]


@pytest.mark.parametrize("number", [0, 1])
def test_through_a_call_J7(number: int) -> None:
    inner = """
f {
  p0 = f32[8]{0} parameter(0)
  p1 = f32[8]{0} parameter(1)
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(p0, p1)
}
"""
    given = "out, x" if number == 0 else "x, out"
    found = run(
        inner
        + chain(
            OUT,
            f"c = (f32[8]{{0}}, f32[8]{{0}}) call({given}), to_apply=f",
            f"v = f32[8]{{0}} get-tuple-element(c), index={number}",
            f"ROOT back = f32[8]{{0}} custom-call(v), {TO_DEVICE}",
        )
    )
    assert spaces(found[f"p{number}"]) == [5]
    assert spaces(found[f"p{1 - number}"]) == [0]
    assert spaces(found["c"]) == ([5, 0] if number == 0 else [0, 5])


LOOP = """
body {
  s = (s32[], f32[8]{0}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = f32[8]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (s32[], f32[8]{0}) tuple(m, v)
}
cond {
  c = (s32[], f32[8]{0}) parameter(0)
  cn = s32[] get-tuple-element(c), index=0
  three = s32[] constant(3)
  ROOT lt = pred[] compare(cn, three), direction=LT
}
"""


def test_through_a_loop_J7() -> None:
    found = run(
        LOOP
        + chain(
            OUT,
            "zero = s32[] constant(0)",
            "t = (s32[], f32[8]{0}) tuple(zero, out)",
            "w = (s32[], f32[8]{0}) while(t), condition=cond, body=body",
            "g = f32[8]{0} get-tuple-element(w), index=1",
            f"ROOT back = f32[8]{{0}} custom-call(g), {TO_DEVICE}",
        )
    )
    for name in ("t", "w", "s", "c", "r"):
        assert spaces(found[name]) == [0, 5], name
    assert spaces(found["v"]) == spaces(found["g"]) == [5]


def test_through_a_conditional_J7() -> None:
    branches = """
yes { y = f32[8]{0} parameter(0)
  ROOT yb = f32[8]{0} bitcast(y) }
no { z = f32[8]{0} parameter(0)
  ROOT zb = f32[8]{0} bitcast(z) }
"""
    found = run(
        branches
        + chain(
            OUT,
            "p = pred[] parameter(1)",
            "c = f32[8]{0} conditional(p, out, out), true_computation=yes, "
            "false_computation=no",
            f"ROOT back = f32[8]{{0}} custom-call(c), {TO_DEVICE}",
        )
    )
    for name in ("y", "yb", "z", "zb", "c"):
        assert spaces(found[name]) == [5], name


def test_one_copy_out_for_all_J8() -> None:
    found = run(
        chain(
            OUT,
            f"b1 = f32[8]{{0}} custom-call(out), {TO_DEVICE}",
            f"b2 = f32[8]{{0}} custom-call(out), {TO_DEVICE}",
            "ROOT s = f32[8]{0} add(b1, b2)",
        )
    )
    assert copies(found).count((0, 5)) == 1


def test_annotation_before_a_bitcast_J9() -> None:
    text = stack(SLICE).replace(
        "x = f32[1,8]{1,0} parameter(0)", "x = f32[8]{0} parameter(0)"
    )
    text = text.replace(
        "out = f32[1,8]{1,0} custom-call(x)", "flat = f32[8]{0} custom-call(x)"
    ).replace("  update =", "  out = f32[1,8]{1,0} bitcast(flat)\n  update =")
    found = run(text)
    assert copies(found) == []
    assert spaces(found["update"]) == [5]


def test_annotation_of_the_target_J10() -> None:
    text = f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  y = f32[4,8]{{1,0}} parameter(1)
  i = s32[] parameter(2)
  k = s32[] constant(0)
  n = f32[4,8]{{1,0}} negate(y)
  out = f32[4,8]{{1,0}} custom-call(n), {TO_HOST}
  update = f32[4,8]{{1,0}} dynamic-update-slice(out, x, i, k)
  {SLICE}"""
    with pytest.raises(HostOffloadError):
        run(text)


def test_slice_returns_after_more_moving_J11() -> None:
    late = SLICE.replace("custom-call(slice)", "custom-call(flat)").replace(
        "  ROOT", "  flat = f32[1,8]{1,0} bitcast(slice)\n  ROOT"
    )
    found = run(stack(late))
    assert spaces(found["slice"]) == [0]
    assert copies(found) == []


HOST_IN = "HloModule m, entry_computation_layout={(f32[8]{0:S(5)})->f32[8]{0}}\n"
HOST_BOTH = "HloModule m, entry_computation_layout={(f32[8]{0:S(5)})->f32[8]{0:S(5)}}\n"
HOST_OUT = "HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0:S(5)}}\n"
BACK = f"ROOT back = f32[8]{{0}} custom-call(x), {TO_DEVICE}"


def test_argument_on_the_host_J12() -> None:
    found = run(chain(BACK, head=HOST_IN))
    assert spaces(found["x"]) == [5]
    assert copies(found) == [(5, 0)]


def test_argument_annotated_again_J13() -> None:
    found = run(
        chain(
            OUT, f"ROOT back = f32[8]{{0}} custom-call(out), {TO_DEVICE}", head=HOST_IN
        )
    )
    assert copies(found) == [(5, 0)]


def test_result_on_the_host_J14() -> None:
    found = run(
        chain(f"ROOT out = f32[8]{{0}} custom-call(x), {TO_HOST}", head=HOST_OUT)
    )
    assert copies(found) == [(0, 5)]
    assert spaces(found["ROOT"]) == [5]


def test_result_on_the_device_J15() -> None:
    with pytest.raises(HostOffloadError, match="location mismatch"):
        run(chain(f"ROOT out = f32[8]{{0}} custom-call(x), {TO_HOST}"))
    with pytest.raises(HostOffloadError, match="location mismatch"):
        run(chain("ROOT n = f32[8]{0} negate(x)", head=HOST_OUT))


def test_back_and_out_again_J16() -> None:
    found = run(
        chain(
            f"b = f32[8]{{0}} custom-call(x), {TO_DEVICE}",
            f"ROOT out = f32[8]{{0}} custom-call(b), {TO_HOST}",
            head=HOST_OUT,
        )
    )
    assert copies(found) == [(0, 5)]


def test_host_argument_returned_J17() -> None:
    found = run(
        "HloModule m, entry_computation_layout={(f32[8]{0:S(5)})->f32[8]{0:S(5)}}"
        "\nENTRY e { ROOT x = f32[8]{0} parameter(0) }"
    )
    assert spaces(found["ROOT"]) == [5]
    assert copies(found) == []


def test_lone_return_J18() -> None:
    found = run(chain(BACK.replace("ROOT ", ""), "ROOT n = f32[8]{0} negate(back)"))
    assert copies(found) == []
    assert found["n"].operands[0] is found["x"]


def test_repeated_annotations_J19() -> None:
    found = run(
        chain(
            OUT,
            f"out2 = f32[8]{{0}} custom-call(out), {TO_HOST}",
            f"b = f32[8]{{0}} custom-call(out2), {TO_DEVICE}",
            f"ROOT back = f32[8]{{0}} custom-call(b), {TO_DEVICE}",
        )
    )
    assert sorted(copies(found)) == [(0, 5), (5, 0)]


def test_sent_from_the_host_J20() -> None:
    found = run(
        chain(
            OUT,
            "k = token[] after-all()",
            "s = (f32[8]{0}, u32[], token[]) send(out, k), channel_id=1",
            "ROOT d = token[] send-done(s), channel_id=1",
        )
    )
    assert copies(found) == [(0, 5)]
    assert found["s"].operands[0].opcode == "copy"
    assert spaces(found["s"]) == [5, 0]
    assert not is_host_compute(found["s"])


def test_buffer_with_readers_on_both_sides_J27() -> None:
    late = SLICE.replace("ROOT back", "back").removesuffix("}")
    text = stack(
        f"""{late}
  other = f32[4,8]{{1,0}} negate(wide)
  ROOT both = (f32[1,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(back, other)
}}""",
        'custom-call(), custom_call_target="AllocateBuffer"',
    )
    found = run(text)
    here, there = found["other"].operands[0], found["update"].operands[0]
    assert here is not there
    assert spaces(here) == [0]
    assert spaces(there) == [5]
    for buffer in (here, there):
        assert buffer.attributes["custom_call_target"] == "AllocateBuffer"
    assert not is_host_compute(found["other"])


def test_annotated_tuple_J28() -> None:
    pair = "(f32[8]{0}, f32[8]{0})"
    found = run(
        chain(
            f"t = {pair} tuple(x, x)",
            f"out = {pair} custom-call(t), {TO_HOST}",
            f"back = {pair} custom-call(out), {TO_DEVICE}",
            "a = f32[8]{0} get-tuple-element(back), index=0",
            "b = f32[8]{0} get-tuple-element(back), index=1",
            "ROOT sum = f32[8]{0} add(a, b)",
        )
    )
    out = next(x for x in found.values() if spaces(x) == [5, 5])
    (back,) = out.users
    assert spaces(back) == [0, 0]
    assert spaces(found["a"]) == spaces(found["b"]) == [0]


def test_streaming_in_a_loop_J21() -> None:
    """A loop stacks activations on the host, another reads them."""
    text = f"""
body {{
  s = (s32[], f32[1,8]{{1,0}}, f32[3,8]{{1,0}}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = f32[1,8]{{1,0}} get-tuple-element(s), index=1
  acc = f32[3,8]{{1,0}} get-tuple-element(s), index=2
  one = s32[] constant(1)
  k = s32[] constant(0)
  m = s32[] add(n, one)
  next = f32[1,8]{{1,0}} add(v, v)
  out = f32[1,8]{{1,0}} custom-call(next), {TO_HOST}
  put = f32[3,8]{{1,0}} dynamic-update-slice(acc, out, n, k)
  ROOT r = (s32[], f32[1,8]{{1,0}}, f32[3,8]{{1,0}}) tuple(m, next, put)
}}
cond {{
  c = (s32[], f32[1,8]{{1,0}}, f32[3,8]{{1,0}}) parameter(0)
  cn = s32[] get-tuple-element(c), index=0
  three = s32[] constant(3)
  ROOT lt = pred[] compare(cn, three), direction=LT
}}
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  fill = f32[] constant(0)
  wide = f32[3,8]{{1,0}} broadcast(fill), dimensions={{}}
  t = (s32[], f32[1,8]{{1,0}}, f32[3,8]{{1,0}}) tuple(zero, x, wide)
  w = (s32[], f32[1,8]{{1,0}}, f32[3,8]{{1,0}}) while(t), condition=cond, body=body
  g = f32[3,8]{{1,0}} get-tuple-element(w), index=2
  read = f32[1,8]{{1,0}} slice(g), slice={{[1:2], [0:8]}}
  ROOT back = f32[1,8]{{1,0}} custom-call(read), {TO_DEVICE}
}}"""
    found = run(text)
    for name in ("t", "w", "s", "c", "r"):
        assert spaces(found[name]) == [0, 0, 5], name
    assert spaces(found["put"]) == spaces(found["g"]) == [5]
    assert found["ROOT"].opcode == "dynamic-slice"
    assert copies(found) == []
    module = msa.parse(text)
    x = np.arange(8, dtype=np.float32).reshape(1, 8)
    custom = SAME | {"AllocateBuffer": lambda _: lambda: np.zeros((3, 8), np.float32)}
    before = msa.execute(module, [x], custom_calls=custom)
    after = msa.execute(offload_to_host(module).module, [x], custom_calls=custom)
    assert (before == after).all()
    assert (before == 4 * x).all()


def test_update_that_is_loop_state_J22() -> None:
    text = f"""
f {{
  p = f32[1,8]{{1,0}} parameter(0)
  i = s32[] parameter(1)
  k = s32[] constant(0)
  fill = f32[] constant(0)
  wide = f32[4,8]{{1,0}} broadcast(fill), dimensions={{}}
  out = f32[1,8]{{1,0}} custom-call(p), {TO_HOST}
  update = f32[4,8]{{1,0}} dynamic-update-slice(wide, out, i, k)
  slice = f32[1,8]{{1,0}} dynamic-slice(update, i, k), dynamic_slice_sizes={{1,8}}
  ROOT back = f32[1,8]{{1,0}} custom-call(slice), {TO_DEVICE}
}}
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  j = s32[] parameter(1)
  ROOT c = f32[1,8]{{1,0}} call(x, j), to_apply=f
}}"""
    found = run(text)
    piece = found["update"].operands[1]
    assert piece.opcode == "copy"
    assert piece.operands[0] is found["p"]


TANH = chain(
    OUT,
    "h = f32[8]{0} tanh(out)",
    f"ROOT back = f32[8]{{0}} custom-call(h), {TO_DEVICE}",
)


def test_computing_between_annotations_J25() -> None:
    found = run(TANH)
    assert is_host_compute(found["h"])
    assert spaces(found["h"].operands[0]) == [5]


def test_computing_is_refused_J26() -> None:
    with pytest.raises(HostOffloadError, match="computes with a value on the host"):
        run(TANH, automatic_host_compute=False)


def test_chained_updates_J29() -> None:
    text = stack(
        f"""y = f32[1,8]{{1,0}} parameter(2)
  out2 = f32[1,8]{{1,0}} custom-call(y), {TO_HOST}
  again = f32[4,8]{{1,0}} dynamic-update-slice(update, out2, k, k)
  b = f32[4,8]{{1,0}} custom-call(again), {TO_DEVICE}
  ROOT n = f32[4,8]{{1,0}} negate(b)
}}"""
    )
    found = run(text)
    buffers = {n for n, x in found.items() if x.opcode == "custom-call"}
    assert len(buffers - {"ROOT"}) == 1
    assert spaces(found["update"]) == spaces(found["again"]) == [5]
    assert spaces(found["n"]) == [0]


def test_allocated_buffer_J30() -> None:
    target = 'custom-call(), custom_call_target="AllocateBuffer"'
    found = run(stack(SLICE, target))
    assert spaces(found["wide"]) == spaces(found["update"]) == [5]


def test_target_is_a_broadcast_J30() -> None:
    text = f"""
ENTRY e {{
  x = f32[1,8]{{1,0}} parameter(0)
  i = s32[] parameter(1)
  zero = f32[] constant(0)
  k = s32[] constant(0)
  wide = f32[4,8]{{1,0}} broadcast(zero), dimensions={{}}
  out = f32[4,8]{{1,0}} custom-call(wide), {TO_HOST}
  update = f32[4,8]{{1,0}} dynamic-update-slice(out, x, i, k)
  {SLICE}"""
    found = run(text)
    assert found["update"].operands[0].opcode == "custom-call"
    assert spaces(found["update"]) == [5]


def test_as_a_pass_with_a_schedule() -> None:
    module = msa.schedule(msa.parse(stack(SLICE)))
    pipeline = Pipeline("host-offload,host-offload")
    result = pipeline.run(module)
    assert [r.changed for r in pipeline.records] == [True, False]
    schedule = result.schedule
    assert schedule is not None
    assert not schedule.check(result)
