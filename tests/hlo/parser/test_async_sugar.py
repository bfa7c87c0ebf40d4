"""Starts, updates and dones stand for wrapped computations."""

import msa
from msa.hlo.equality import first_difference

SLICE = """ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[4], u32[]) slice-start(p), slice={[0:4]}, async_execution_thread="t", metadata={op_name="n"}, frontend_attributes={a="b"}, sharding={replicated}
  u = ((f32[8]), f32[4], u32[]) slice-update(s)
  ROOT d = f32[4] slice-done(u)
}"""


def wrapped(module, name="s"):
    start = next(x for x in module.entry.instructions if x.name == name)
    return start, start.called_computations[0]


def test_start_wraps_a_computation():
    module = msa.parse(SLICE)
    start, body = wrapped(module)
    assert start.opcode == "async-start"
    assert body.execution_thread == start.attributes["async_execution_thread"] == "t"
    assert [x.name for x in body.instructions] == ["async_param", "async_op"]
    root = body.root
    assert (root.opcode, root.attributes["slice"]) == ("slice", ((0, 4, 1),))
    assert "sharding" not in root.attributes
    assert root.metadata_text == start.metadata_text == 'op_name="n"'
    assert root.attributes["frontend_attributes"] == (("a", "b"),)
    update, done = module.entry.instructions[2:]
    assert update.called_computations == done.called_computations == (body,)


def test_sugar_comes_back():
    module = msa.parse(SLICE)
    text = module.to_text()
    assert "slice-start(%p)" in text
    assert "slice-update(%s)" in text
    assert "async_wrapped" not in text
    assert msa.parse(text) == module


def test_what_sugar_cannot_say_is_written_out():
    text = """HloModule m
w {
  a = f32[8] parameter(0)
  b = f32[8] negate(a)
  ROOT c = f32[8] custom-call(b), custom_call_target="f"
}, execution_thread="t"
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) async-start(p), async_execution_thread="t", calls=w
  ROOT d = f32[8] async-done(s)
}"""
    module = msa.parse(text)
    printed = module.to_text()
    assert 'async-start(%p), async_execution_thread="t", calls=%w' in printed
    assert '}, execution_thread="t"' in printed
    assert msa.parse(printed) == module


def test_a_named_single_operation_keeps_its_name():
    text = """HloModule m
mine { a = f32[8] parameter(0) ROOT c = f32[8] negate(a) }
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) async-start(p), calls=mine
  ROOT d = f32[8] negate-done(s)
}"""
    module = msa.parse(text)
    assert "%mine" in module.to_text()
    assert "negate-start" in module.to_text(canonical=True)
    assert msa.parse(module.to_text()) == module


def test_late_binding():
    module = msa.parse(
        "ENTRY e { q = f32[8] parameter(0) s = ((), (), u32[]) add-start() "
        "t = ((f32[8]), (), u32[]) add-update(s, q) "
        "u = ((f32[8], f32[8]), f32[8], u32[]) add-update(t, q) ROOT d = f32[8] add-done(u) }"
    )
    _, body = wrapped(module)
    assert [str(p.shape) for p in body.parameters] == ["f32[8]{0}", "f32[8]{0}"]
    assert str(body.root.shape) == "f32[8]{0}"
    assert msa.parse(module.to_text()) == module


def test_over_binding_adds_parameters():
    module = msa.parse(
        "ENTRY e { q = f32[8] parameter(0) "
        's = ((), (), u32[]) custom-call-start(), custom_call_target="f" '
        "t = ((f32[8]), (), u32[]) custom-call-update(s, q) "
        "u = ((f32[8], f32[8]), (), u32[]) custom-call-update(t, q) "
        "ROOT d = f32[8] custom-call-done(u) }"
    )
    _, body = wrapped(module)
    assert len(body.parameters) == len(body.root.operands) == 2
    assert str(body.root.shape) == "f32[8]{0}"
    assert body.instructions[-1] is body.root


def test_a_computation_may_take_a_made_up_name():
    module = msa.parse(
        "HloModule m a { p = f32[8] parameter(0) "
        "s = ((f32[8]), f32[8], u32[]) negate-start(p) ROOT d = f32[8] negate-done(s) } "
        "async_wrapped { ROOT p = f32[8] parameter(0) } "
        "ENTRY e { p = f32[8] parameter(0) q = f32[8] call(p), to_apply=a "
        "ROOT r = f32[8] call(q), to_apply=async_wrapped }"
    )
    callee = module.entry.root.called_computations[0]
    assert callee.root.opcode == "parameter"
    assert len({c.name for c in module.computations}) == 4


def test_numbering_of_wrapped_computations_does_not_matter():
    text = (
        SLICE.replace("ROOT d", "d")
        .replace(
            "\n}",
            "\n  s2 = ((f32[8]), f32[8], u32[]) negate-start(p)\n"
            "  ROOT d2 = f32[8] negate-done(s2)\n}",
        )
        .replace("s2", "s.2")
    )
    module, other = msa.parse(text), msa.parse(text)
    for number, computation in enumerate(other.computations):
        if computation.name.startswith("async_wrapped"):
            computation.name = f"async_wrapped.{number + 5}"
    assert first_difference(module, other) is None
