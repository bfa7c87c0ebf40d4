"""Copy insertion: what needs a copy, what does not, and that programs stay right."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from analysis.random_modules import random_module
from analysis.storage_oracle import storage_problems
from assignment.async_loop import ASYNC_LOOP
from msa.analysis import insert_copies, missing_copies, prepare
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions
from msa.analysis.copy_insertion import flatten_call_graph
from msa.analysis.copy_insertion.hazards import reads_elsewhere
from msa.errors import ScheduleError
from msa.hlo import verify


def copies(module) -> list:
    return [
        x for c in module.computations for x in c.instructions if x.opcode == "copy"
    ]


def agree(one, two):
    """Equal results, arrays or tuples of arrays."""
    if isinstance(one, (tuple, list)):
        for a, b in zip(one, two, strict=True):
            agree(a, b)
    else:
        np.testing.assert_array_equal(one, two)


def scheduled(body: str, head: str = "HloModule m, is_scheduled=true"):
    return msa.parse(f"{head}\n{body}")


def checked(module):
    """The module with copies, proved: nothing is missing, storage holds, same text."""
    ready = insert_copies(module)
    assert missing_copies(ready) == []
    verify(ready)
    assert not ready.schedule.check(ready)
    assert msa.parse(ready.to_text()) == ready
    for sharing in ("standard", "tight"):
        options = BufferAssignmentOptions(sharing=sharing)
        assignment = BufferAssignment.run(ready, options)
        assignment.verify()
        assert storage_problems(assignment) == []
    return ready


def settled(module):
    """As `checked`, for what the oracle of storage does not run: asynchronous calls."""
    ready = insert_copies(module)
    assert missing_copies(ready) == []
    verify(ready)
    assert not ready.schedule.check(ready)
    BufferAssignment.run(ready).verify()
    return ready


LOOP = """
body {{
  p = {shape} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  y = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  {body}
}}
cond {{
  q = {shape} parameter(0)
  j = s32[] get-tuple-element(q), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(j, limit), direction=LT
}}
ENTRY main {{
  i0 = s32[] parameter(0)
  a = f32[8] parameter(1)
  b = f32[8] parameter(2)
  {entry}
}}"""
STATE = "(s32[], f32[8], f32[8])"


def loop(body: str, entry: str, head="HloModule m, is_scheduled=true"):
    return scheduled(LOOP.format(shape=STATE, body=body, entry=entry), head)


RUN = f"""t = {STATE} tuple(i0, u, v)
  w = {STATE} while(t), condition=cond, body=body"""


def test_result_may_not_be_an_argument_or_twins():
    module = scheduled("""
    ENTRY main {
      a = f32[8] parameter(0)
      n = f32[8] negate(a)
      c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
      ROOT t = (f32[8], f32[8], f32[8], f32[8]) tuple(a, n, n, c)
    }""")
    assert [(m.instruction, m.index) for m in missing_copies(module)] == [
        ("t", (0,)),
        ("t", (2,)),
        ("t", (3,)),
    ]
    assert "argument" in str(missing_copies(module)[0])
    assert len(copies(checked(module))) == 3


def test_donated_pass_through_needs_nothing():
    module = scheduled(
        "ENTRY main { ROOT a = f32[8] parameter(0) }",
        "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }",
    )
    assert missing_copies(module) == []


def test_in_place_update_of_a_value_that_is_read_later():
    text = """
    ENTRY main {{
      a = f32[8] parameter(0)
      i = s32[] parameter(1)
      x = f32[8] negate(a)
      u = f32[2] slice(x), slice={{[0:2]}}
      d = f32[8] dynamic-update-slice(x, u, i)
      ROOT out = f32[8] {last}
    }}"""
    assert missing_copies(scheduled(text.format(last="negate(d)"))) == []
    ready = checked(scheduled(text.format(last="add(d, x)")))
    (copy,) = copies(ready)
    assert copy.operands[0].name == "x"
    assert [u.opcode for u in copy.users] == ["dynamic-update-slice"]


def test_swapped_loop_state():
    module = loop(
        f"ROOT r = {STATE} tuple(n, y, x)",
        f"""u = f32[8] negate(a)
        v = f32[8] exponential(b)
        {RUN}
        ROOT r1 = f32[8] get-tuple-element(w), index=1""",
    )
    ready = checked(module)
    inside = [x for x in copies(ready) if x.computation.name == "body"]
    assert len(inside) in (2, 3)


def test_rotation_of_three_elements():
    shape = "(s32[], f32[8], f32[8], f32[8])"
    module = scheduled(f"""
    body {{
      p = {shape} parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[8] get-tuple-element(p), index=1
      y = f32[8] get-tuple-element(p), index=2
      z = f32[8] get-tuple-element(p), index=3
      one = s32[] constant(1)
      n = s32[] add(i, one)
      ROOT r = {shape} tuple(n, y, z, x)
    }}
    cond {{
      q = {shape} parameter(0)
      j = s32[] get-tuple-element(q), index=0
      limit = s32[] constant(3)
      ROOT less = pred[] compare(j, limit), direction=LT
    }}
    ENTRY main {{
      i0 = s32[] parameter(0)
      a = f32[8] parameter(1)
      t = {shape} tuple(i0, a, a, a)
      ROOT w = {shape} while(t), condition=cond, body=body
    }}""")
    ready = checked(module)
    inputs = [np.int32(0), np.arange(8, dtype=np.float32)]
    agree(msa.execute(module, inputs), msa.execute(ready, inputs))


def test_loop_invariant_state_is_shared():
    # `y` passes through unchanged: one value, no copy although it is an argument.
    module = loop(
        f"""nx = f32[8] add(x, y)
        ROOT r = {STATE} tuple(n, nx, y)""",
        f"""u = f32[8] negate(a)
        v = f32[8] add(b, b)
        {RUN}
        r1 = f32[8] get-tuple-element(w), index=1
        ROOT out = f32[8] add(r1, v)""",
    )
    ready = checked(module)
    assert [x.shape.element_type.name for x in copies(ready)] == ["s32"]


def test_initial_value_that_is_read_after_the_loop():
    module = loop(
        f"""nx = f32[8] negate(x)
        ROOT r = {STATE} tuple(n, nx, y)""",
        f"""u = f32[8] negate(a)
        v = f32[8] exponential(b)
        {RUN}
        r1 = f32[8] get-tuple-element(w), index=1
        ROOT out = f32[8] add(r1, u)""",
    )
    (copy,) = [x for x in copies(checked(module)) if x.shape.element_type.name == "f32"]
    assert copy.computation.is_entry


def test_value_of_an_earlier_trip_that_is_read_late():
    # The new value is made before the last read of the old one: a copy on each trip.
    module = loop(
        f"""nx = f32[8] reverse(x), dimensions={{0}}
        ny = f32[8] add(y, x)
        ROOT r = {STATE} tuple(n, nx, ny)""",
        f"""u = f32[8] negate(a)
        v = f32[8] exponential(b)
        {RUN}
        ROOT out = f32[8] get-tuple-element(w), index=2""",
    )
    inside = [x for x in copies(checked(module)) if x.computation.name == "body"]
    assert [x.operands[0].name for x in inside] == ["nx"]


def test_branches_exclude_each_other():
    # Either branch updates the same operand in place: no copies.
    module = scheduled("""
    t { a = f32[8] parameter(0)
        zero = s32[] constant(0)
        one = f32[1] constant({1})
        ROOT d = f32[8] dynamic-update-slice(a, one, zero) }
    f { b = f32[8] parameter(0)
        zero.1 = s32[] constant(0)
        two = f32[1] constant({2})
        ROOT e = f32[8] dynamic-update-slice(b, two, zero.1) }
    ENTRY main {
      p = pred[] parameter(0)
      x = f32[8] parameter(1)
      y = f32[8] negate(x)
      ROOT c = f32[8] conditional(p, y, y), true_computation=t, false_computation=f
    }""")
    assert missing_copies(module) == []
    checked(module)


def test_branch_operand_that_is_read_later():
    module = scheduled("""
    t { a = f32[8] parameter(0)
        zero = s32[] constant(0)
        one = f32[1] constant({1})
        ROOT d = f32[8] dynamic-update-slice(a, one, zero) }
    f { ROOT b = f32[8] parameter(0) }
    ENTRY main {
      p = pred[] parameter(0)
      x = f32[8] parameter(1)
      y = f32[8] negate(x)
      c = f32[8] conditional(p, y, y), true_computation=t, false_computation=f
      ROOT out = f32[8] add(c, y)
    }""")
    found = copies(checked(module))
    assert {x.computation.name for x in found} <= {"t", "f"}
    assert found


def test_two_arguments_given_to_each_others_outputs():
    module = scheduled(
        """ENTRY main {
          a = f32[8] parameter(0)
          b = f32[8] parameter(1)
          ROOT t = (f32[8], f32[8]) tuple(a, b)
        }""",
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias), "
        "{1}: (0, {}, may-alias) }",
    )
    ready = checked(module)
    # Two results and one detour: neither argument may be overwritten too early.
    assert len(copies(ready)) == 3


def test_donated_argument_that_is_read_after_the_output_is_made():
    head = (
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }"
    )
    body = """ENTRY main {
      a = f32[8] parameter(0)
      x = f32[8] reverse(a), dimensions={0}
      y = f32[8] add(a, a)
      ROOT t = (f32[8], f32[8]) tuple(x, y)
    }"""
    (copy,) = copies(checked(scheduled(body, head)))
    assert copy.operands[0].name == "x"


FUSED = """
fused {{
  p = f32[4] parameter(0)
  i = s32[] parameter(1)
  s = f32[3] {read}
  ROOT d = f32[4] dynamic-update-slice(p, {update}, i)
}}
ENTRY main {{
  x = f32[4] parameter(0)
  one = f32[4] constant({{1, 1, 1, 1}})
  i = s32[] constant(1)
  base = f32[4] add(x, one)
  ROOT f = f32[4] fusion(base, i), kind=kLoop, calls=fused
}}"""


def test_c8_update_that_reads_another_offset():
    """x = [0, 1, 2, 3]: the result is [1, 1, 2, 3], never a mixture."""
    module = scheduled(FUSED.format(read="slice(p), slice={[0:3]}", update="s"))
    fusion = module.entry.root
    assert reads_elsewhere(fusion, 0, (), ())
    assert "also reads other parts" in missing_copies(module)[0].reason
    ready = checked(module)
    inputs = [np.arange(4, dtype=np.float32)]
    for each in (module, ready):
        result = msa.execute(each, inputs)
        np.testing.assert_array_equal(result, [1, 1, 2, 3])
    assignment = BufferAssignment.run(ready)
    fusion = ready.entry.root
    read = fusion.operands[-1]
    assert read.name == "base"
    assert not assignment.unique_slice(fusion).overlaps(assignment.unique_slice(read))


def test_c8_unfused():
    module = scheduled("""
    ENTRY main {
      x = f32[4] parameter(0)
      one = f32[4] constant({1, 1, 1, 1})
      i = s32[] constant(1)
      base = f32[4] add(x, one)
      s = f32[3] slice(base), slice={[0:3]}
      ROOT d = f32[4] dynamic-update-slice(base, s, i)
    }""")
    result = msa.execute(module, [np.arange(4, dtype=np.float32)])
    np.testing.assert_array_equal(result, [1, 1, 2, 3])
    # The slice has bytes of its own, so the update may work in place.
    ready = checked(module)
    assert copies(ready) == []
    assignment = BufferAssignment.run(ready)
    _, _, _, base, part, out = ready.entry.instructions
    place = assignment.unique_slice
    assert place(base) == place(out)
    assert not place(part).overlaps(place(base))


@pytest.mark.parametrize(
    ("read", "update", "elsewhere"),
    [
        ("dynamic-slice(p, i), dynamic_slice_sizes={3}", "s", False),
        (
            "dynamic-slice(p, i), dynamic_slice_sizes={3}\n n = f32[3] exponential(s)",
            "n",
            False,
        ),
        (
            "dynamic-slice(p, i), dynamic_slice_sizes={3}\n n = f32[3] reverse(s), dimensions={0}",
            "n",
            True,
        ),
        ("slice(p), slice={[0:3]}", "s", True),
        ("constant({1, 2, 3})", "s", False),
    ],
)
def test_reads_of_a_fused_update(read, update, elsewhere):
    module = scheduled(FUSED.format(read=read, update=update))
    assert reads_elsewhere(module.entry.root, 0, (), ()) is elsewhere
    assert bool(missing_copies(module)) is elsewhere
    checked(module)


def test_same_operand_as_target_and_update():
    module = scheduled("""
    ENTRY main {
      x = f32[8] parameter(0)
      i = s32[] constant(2)
      y = f32[8] negate(x)
      ROOT d = f32[8] dynamic-update-slice(y, y, i)
    }""")
    assert len(copies(checked(module))) == 1


UPDATE = """
inner {
  q = f32[8] parameter(0)
  z = s32[] constant(0)
  u = f32[2] slice(q), slice={[0:2]}
  n = f32[8] negate(q)
  d = f32[8] dynamic-update-slice(n, u, z)
  ROOT o = f32[8] RESULT
}
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) call-start(p), to_apply=inner
  a = f32[8] abs(p)
  c = f32[8] call-done(s)
  ROOT f = f32[8] add(c, a)
}"""


@pytest.mark.parametrize(("result", "count"), [("negate(d)", 0), ("add(d, n)", 1)])
def test_update_in_place_inside_an_asynchronous_call(result, count):
    """Steps of one operation run in order, so one may write over another's storage."""
    module = scheduled(UPDATE.replace("RESULT", result))
    ready = settled(module)
    assert len(copies(ready)) == count
    values = [np.arange(8, dtype=np.float32)]
    agree(msa.execute(module, values), msa.execute(ready, values))


def test_loop_inside_an_asynchronous_call():
    module = msa.parse(ASYNC_LOOP)
    ready = settled(module)
    # The caller keeps the argument that the loop writes over; the other is only read.
    assert [x.operands[0].name for x in copies(ready) if x.shape.byte_size() > 4] == [
        "q"
    ]
    values = [np.arange(4096, dtype=np.float32), np.ones(4096, np.float32)]
    agree(msa.execute(module, values), msa.execute(ready, values))


def test_scheduled_is_demanded():
    module = msa.parse("ENTRY main { ROOT a = f32[8] parameter(0) }")
    with pytest.raises(ScheduleError):
        insert_copies(module)
    assert prepare(module).is_scheduled


def test_flattening_clones_each_further_call():
    module = msa.parse("""
    leaf { x = f32[8] parameter(0)  ROOT n = f32[8] negate(x) }
    mid { y = f32[8] parameter(0)
          a = f32[8] call(y), to_apply=leaf
          ROOT b = f32[8] call(a), to_apply=leaf }
    ENTRY main { p = f32[8] parameter(0)
      c = f32[8] call(p), to_apply=mid
      ROOT d = f32[8] call(c), to_apply=mid }""")
    flat = module.clone()
    assert flatten_call_graph(flat) == 4
    verify(flat)
    callees = [
        c
        for x in flat.computations
        for i in x.instructions
        for c in i.called_computations
    ]
    assert len(callees) == len(set(callees)) == 6
    places = {c: i for i, c in enumerate(flat.computations)}
    for c in flat.computations:
        for x in c.instructions:
            assert all(places[callee] < places[c] for callee in x.called_computations)
    inputs = [np.arange(8, dtype=np.float32)]
    agree(msa.execute(module, inputs), msa.execute(flat, inputs))
    assert msa.parse(flat.to_text()) == flat


def inputs_of(module, seed):
    random = np.random.default_rng(seed)
    return [
        random.standard_normal(p.shape.dimensions).astype(np.float32)
        for p in module.entry.parameters
    ]


@pytest.mark.parametrize(
    ("algorithm", "seed"),
    [*(("best", seed) for seed in range(24)), *(("bfs", seed) for seed in range(8))],
)
def test_random_modules_run_in_their_storage(algorithm, seed):
    module = random_module(seed, 6 + seed % 20)
    ready = prepare(module, algorithm)
    assert missing_copies(ready) == []
    before = msa.execute(module, inputs_of(module, seed))
    after = msa.execute(ready, inputs_of(module, seed))
    agree(before, after)
    for sharing in ("standard", "tight"):
        options = BufferAssignmentOptions(sharing=sharing, effort=0)
        assignment = BufferAssignment.run(ready, options)
        assignment.verify()
        assert storage_problems(assignment) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_random_modules(seed):
    test_random_modules_run_in_their_storage("bfs" if seed % 3 == 0 else "best", seed)


@pytest.mark.parametrize("seed", range(6))
def test_the_oracle_notices_values_moved_onto_live_ones(seed):
    """A check that never fires is broken: move each value onto one that is live."""
    ready = prepare(random_module(seed, 12))
    assignment = BufferAssignment.run(ready)
    live = assignment.live
    values = {v.id: v for v in assignment.alias.dataflow.values}
    noticed = tried = 0
    for block in assignment.allocations:
        for one, (at, _) in list(block.assigned.items()):
            for two, (place, extent) in list(block.assigned.items()):
                a, b = live.range_of(values[one]), live.range_of(values[two])
                if a is None or b is None or at == place or extent > block.size - at:
                    continue
                if not a.start < b.start < a.end or not values[one].uses:
                    continue
                tried += 1
                if tried > 12:
                    continue
                block.assigned[two] = (at, extent)
                noticed += bool(storage_problems(assignment))
                block.assigned[two] = (place, extent)
    # A value may be moved onto one that no executed path reads any more.
    assert noticed >= min(tried, 12) / 2
