"""Changes of layout leave what is offloaded: row J33 of the outcomes."""

from __future__ import annotations

import numpy as np

import msa
from msa.hlo import verify
from msa.hlo.instruction import Instruction
from msa.passes import Pipeline

TO_HOST = 'custom_call_target="MoveToHost"'
TO_DEVICE = 'custom_call_target="MoveToDevice"'
CUSTOM = {
    "MoveToHost": lambda _: lambda x: x,
    "MoveToDevice": lambda _: lambda x: x,
    "AllocateBuffer": lambda x: lambda: np.zeros(x.shape.dimensions, np.float32),
}


def run(text: str, *inputs: np.ndarray) -> tuple[msa.Module, msa.Module]:
    """Legalize twice (the second changes nothing), offload; compare by execution."""
    module = msa.parse(text)
    pipeline = Pipeline("host-offload-legalize,host-offload-legalize")
    legal = pipeline.run(module)
    assert not pipeline.records[1].changed
    verify(legal)
    placed = Pipeline("host-offload").run(legal)
    verify(placed)
    if inputs:
        expected = msa.execute(module, list(inputs), custom_calls=CUSTOM)
        for result in (legal, placed):
            found = msa.execute(result, list(inputs), custom_calls=CUSTOM)
            np.testing.assert_array_equal(found, expected)
    return legal, placed


def orders_on_host(module: msa.Module) -> set[tuple[int, ...]]:
    """Layouts of all arrays of rank above 0 on the host."""
    return {
        leaf.layout.minor_to_major
        for computation in module.computations
        for x in computation.instructions
        for _, leaf in x.shape.leaves()
        if leaf.is_array and leaf.memory_space == 5 and leaf.layout and leaf.rank
    }


def transposing(module: msa.Module) -> list[Instruction]:
    """Copies between layouts that read or write the host."""
    return [
        x
        for computation in module.computations
        for x in computation.instructions
        if x.opcode == "copy"
        and x.shape.layout.minor_to_major != x.operands[0].shape.layout.minor_to_major
        and 5 in (x.shape.memory_space, x.operands[0].shape.memory_space)
    ]


X = np.arange(32, dtype=np.float32).reshape(8, 4)


def chain(*lines: str, head: str = "") -> str:
    body = "\n  ".join(lines)
    return (
        f"{head}ENTRY e {{\n  x = f32[8,4]{{1,0}} parameter(0)\n"
        f"  out = f32[8,4]{{1,0}} custom-call(x), {TO_HOST}\n  {body}\n}}"
    )


def test_a_copy_moves_behind_the_return_J33() -> None:
    text = chain(
        "c = f32[8,4]{0,1} copy(out)",
        f"back = f32[8,4]{{0,1}} custom-call(c), {TO_DEVICE}",
        "ROOT n = f32[8,4]{0,1} negate(back)",
    )
    legal, placed = run(text, X)
    root = legal.entry.root
    copy = root.operands[0]
    assert copy.opcode == "copy"
    assert str(copy.shape) == "f32[8,4]{0,1}"
    assert copy.operands[0].attributes["custom_call_target"] == "MoveToDevice"
    assert str(copy.operands[0].shape) == "f32[8,4]{1,0}"
    assert orders_on_host(placed) == {(1, 0)}
    assert transposing(placed) == []


def test_across_bitcasts_J33() -> None:
    # A bitcast that prepends a dimension, then one that renames dimensions.
    text = chain(
        "c = f32[8,4]{0,1} copy(out)",
        "b = f32[1,8,4]{1,2,0} bitcast(c)",
        "d = f32[8,4]{0,1} bitcast(b)",
        "t = f32[4,8]{1,0} bitcast(d)",
        f"ROOT back = f32[4,8]{{1,0}} custom-call(t), {TO_DEVICE}",
    )
    legal, placed = run(text, X)
    # Without the copy: [8,4]{1,0}; renamed it is [4,8] with dimension 0 minor.
    b, t = (
        next(x for x in legal.entry.instructions if x.name == name) for name in "bt"
    )
    assert str(b.shape) == "f32[1,8,4]{2,1,0}"
    assert str(t.shape) == "f32[4,8]{0,1}"
    assert str(legal.entry.root.shape) == "f32[4,8]{1,0}"
    assert legal.entry.root.opcode == "copy"
    assert transposing(placed) == []


def test_two_copies_J33() -> None:
    text = chain(
        "c = f32[8,4]{0,1} copy(out)",
        "t = (f32[8,4]{0,1}) tuple(c)",
        "g = f32[8,4]{0,1} get-tuple-element(t), index=0",
        "d = f32[8,4]{1,0} copy(g)",
        f"ROOT back = f32[8,4]{{1,0}} custom-call(d), {TO_DEVICE}",
    )
    legal, placed = run(text, X)
    assert orders_on_host(placed) == {(1, 0)}
    assert transposing(placed) == []
    root = legal.entry.root
    assert [root.opcode, root.operands[0].opcode] == ["copy", "copy"]


def test_into_a_host_call_J33() -> None:
    head = """
f { p = f32[8,4]{0,1} parameter(0)
  ROOT n = f32[8,4]{0,1} negate(p), frontend_attributes={_xla_compute_type="host"} }
"""
    text = chain(
        "t = (f32[8,4]{1,0}) tuple(out)",
        "g = f32[8,4]{1,0} get-tuple-element(t), index=0",
        "c = f32[8,4]{0,1} copy(g)",
        "s = ((f32[8,4]{0,1}), f32[8,4]{0,1}, u32[]) async-start(c), calls=f",
        "ROOT d = f32[8,4]{0,1} async-done(s)",
        head=head,
    )
    module = msa.parse(text)
    assert Pipeline("host-offload-legalize").run(module) == module


def test_returned_from_the_host_J33() -> None:
    # The value stays on the host: its layout changes before it is sent.
    layout = "{(f32[8,4]{1,0})->f32[8,4]{0,1:S(5)}}"
    text = chain(
        "ROOT c = f32[8,4]{0,1} copy(out)",
        head=f"HloModule m, entry_computation_layout={layout}\n",
    )
    legal, placed = run(text, X)
    root = legal.entry.root
    assert root.attributes["custom_call_target"] == "MoveToHost"
    assert root.operands[0].opcode == "copy"
    assert orders_on_host(placed) == {(0, 1)}


def test_streamed_argument_J33() -> None:
    layout = "{(f32[8,4]{1,0:S(5)}, s32[])->f32[1,4]{0,1}}"
    text = f"""
HloModule m, entry_computation_layout={layout}
ENTRY e {{
  x = f32[8,4]{{1,0}} parameter(0)
  i = s32[] parameter(1)
  k = s32[] constant(0)
  c = f32[8,4]{{0,1}} copy(x)
  s = f32[1,4]{{0,1}} dynamic-slice(c, i, k), dynamic_slice_sizes={{1,4}}
  ROOT back = f32[1,4]{{0,1}} custom-call(s), {TO_DEVICE}
}}"""
    _, placed = run(text, X, np.int32(3))
    assert transposing(placed) == []
    assert orders_on_host(placed) == {(1, 0)}


def test_updates_take_the_layout_of_their_buffer_J33() -> None:
    # The buffer is filled in one layout, and read in a loop in the other.
    text = f"""
ENTRY e {{
  x = f32[1,4]{{0,1}} parameter(0)
  i = s32[] parameter(1)
  k = s32[] constant(0)
  zero = f32[] constant(0)
  wide = f32[8,4]{{1,0}} broadcast(zero), dimensions={{}}
  c = f32[8,4]{{0,1}} copy(wide)
  out = f32[1,4]{{0,1}} custom-call(x), {TO_HOST}
  u = f32[8,4]{{0,1}} dynamic-update-slice(c, out, i, k)
  s = f32[1,4]{{0,1}} dynamic-slice(u, i, k), dynamic_slice_sizes={{1,4}}
  ROOT back = f32[1,4]{{0,1}} custom-call(s), {TO_DEVICE}
}}"""
    legal, placed = run(text, X[:1], np.int32(2))
    update = next(
        x for x in legal.entry.instructions if x.opcode == "dynamic-update-slice"
    )
    assert str(update.shape) == "f32[8,4]{1,0}"
    piece = update.operands[1]
    assert piece.attributes["custom_call_target"] == "MoveToHost"
    assert piece.operands[0].opcode == "copy"
    assert orders_on_host(placed) == {(1, 0)}


LOOP = f"""
body {{
  s = (s32[], f32[8,4]{{0,1}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[8,4]{{0,1}} get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  kept = f32[8,4]{{0,1}} custom-call(w), {TO_DEVICE}
  ROOT t = (s32[], f32[8,4]{{0,1}}) tuple(j, kept)
}}
cond {{
  q = (s32[], f32[8,4]{{0,1}}) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(k, n), direction=LT
}}
"""


def test_through_a_loop_J33() -> None:
    text = chain(
        "z = s32[] constant(0)",
        "c = f32[8,4]{0,1} copy(out)",
        "init = (s32[], f32[8,4]{0,1}) tuple(z, c)",
        "l = (s32[], f32[8,4]{0,1}) while(init), condition=cond, body=body",
        "g = f32[8,4]{0,1} get-tuple-element(l), index=1",
        f"ROOT back = f32[8,4]{{0,1}} custom-call(g), {TO_DEVICE}",
        head=LOOP,
    )
    legal, placed = run(text, X)
    loop = next(x for x in legal.entry.instructions if x.opcode == "while")
    for x in (
        loop,
        loop.while_body.parameters[0],
        loop.while_body.root,
        loop.while_condition.parameters[0],
    ):
        assert str(x.shape) == "(s32[], f32[8,4]{1,0})"
    root = loop.while_body.root
    assert root.operands[1].opcode == "get-tuple-element"
    assert transposing(placed) == []
    assert legal.entry.root.opcode == "copy"
