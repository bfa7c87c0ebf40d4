"""Mutations that text cannot express, and what the verifier says and accepts."""

import os
import pickle
from pathlib import Path
from types import MappingProxyType

import pytest

import msa
from hlo.accepted_modules import ACCEPTED
from hlo.verifier_modules import MODULES
from msa.errors import HloVerifyError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.layout import Layout, SplitConfig
from msa.hlo.module import Alias, ComputationLayout, Module
from msa.hlo.primitive import F32, TOKEN
from msa.hlo.schedule import Schedule
from msa.hlo.shape import Shape
from msa.hlo.verifier import find_violations, verify

R8 = Shape.array(F32, (8,))


@pytest.fixture
def control():
    return msa.parse(MODULES["control"])


@pytest.fixture
def header():
    return msa.parse(MODULES["header"])


def named(module, computation, name):
    for instruction in module.computation(computation).instructions:
        if instruction.name == name:
            return instruction
    raise AssertionError(name)


def only(module, *fragments):
    """Exactly one violation, with all the fragments."""
    violations = find_violations(module)
    assert len(violations) == 1, violations
    for fragment in fragments:
        assert fragment in violations[0]


def some(module, *fragments):
    """At least one violation with all the fragments."""
    violations = find_violations(module)
    assert any(all(f in v for f in fragments) for v in violations), violations


# -- edges -------------------------------------------------------------------


def test_operand_without_user(control):
    y = named(control, "left", "ly")
    del named(control, "left", "lx")._users[y]
    some(control, "ly in left", "missing among the users of lx")


def test_user_without_operand(control):
    x, y = named(control, "left", "lx"), named(control, "left", "ly")
    y._users[x] = None
    some(control, "ly in left", "lists user lx")


def test_user_in_another_computation(control):
    x = named(control, "left", "lx")
    named(control, "right", "ry").set_operands((x,))
    some(control, "ry in right", "operand lx is not in computation right")


def test_cycle_of_two(control):
    y = named(control, "body", "by")
    other = Instruction("back", "negate", y.shape, (y,))
    y.computation.add(other)
    y.set_operands((other,))
    some(control, "is on a cycle", "back")


def test_cycle_of_one(control):
    y = named(control, "left", "ly")
    y.set_operands((y,))
    some(control, "ly in left", "is on a cycle: ly -> ly")


def test_cycle_of_control_edges(header):
    y, z = named(header, "main", "y"), named(header, "main", "z")
    z.add_control_successor(y)
    some(header, "is on a cycle")


def test_long_cycle_needs_no_recursion():
    module = Module("long")
    computation = module.add(Computation("main"))
    first = last = computation.add(
        Instruction("p", "parameter", R8, (), MappingProxyType({"parameter_number": 0}))
    )
    first = last = computation.add(Instruction("n", "negate", R8, (last,)))
    for i in range(50_000):
        last = computation.add(Instruction(f"n{i}", "negate", R8, (last,)))
    first.set_operands((last,))
    some(module, "is on a cycle")


def test_insertion_order_need_not_be_topological(control):
    instructions = control.computation("body").instructions
    instructions.reverse()
    assert find_violations(control) == []


def test_control_predecessor_elsewhere(control):
    named(control, "left", "ly").add_control_successor(named(control, "right", "ry"))
    some(control, "control predecessor ly is elsewhere")
    some(control, "control successor ry is elsewhere")


def test_control_edge_on_one_side(header):
    z = named(header, "main", "z")
    named(header, "main", "i")._control_successors = None
    some(header, "z in main", "no control successor of i")
    z.control_predecessors = ()
    assert find_violations(header) == []


def test_control_successor_on_one_side(header):
    z = named(header, "main", "z")
    z.control_predecessors = ()
    some(header, "i in main", "no control predecessor of z")


# -- computations ------------------------------------------------------------


def test_name_twice(control):
    named(control, "body", "m").name = "one"
    only(control, "one in body", "has the name of another at line")


def test_computation_name_twice(control):
    control.computation("right").name = "left"
    only(control, "2 computations are named left")


def test_instruction_listed_twice(control):
    left = control.computation("left")
    left.instructions.append(left.root)
    some(control, "computation left: holds an instruction twice")


def test_instruction_of_another_computation(control):
    y = named(control, "left", "ly")
    y.computation = control.computation("right")
    some(control, "computation left: holds ly, which belongs elsewhere")


def test_root_elsewhere(control):
    control.computation("left").root = named(control, "right", "ry")
    some(control, "computation left: root ry is not in the computation")


def test_empty_computation(control):
    control.add(Computation("void"))
    only(control, "computation void: has no instructions")


def test_entry_elsewhere(control):
    control.entry = Computation("elsewhere")
    some(control, "module: has no entry computation")


def test_parameter_list_out_of_date(control):
    control.computation("fused")._parameters.pop()
    some(control, "computation fused: its list of parameters is out of date")


def test_parameter_numbers(control):
    named(control, "fused", "b").attributes = MappingProxyType({"parameter_number": 5})
    some(control, "computation fused: parameter numbers are not 0, 1, …: [0, 5]")


def test_parameter_without_number(control):
    named(control, "fused", "b").attributes = MappingProxyType({})
    some(control, "b in fused", "parameter_number is missing")


# -- calls -------------------------------------------------------------------


def test_callee_not_in_module(control):
    control.computations.remove(control.computation("callee"))
    only(control, "call in main", "calls callee, not in the module")


def test_call_of_itself(control):
    callee = control.computation("callee")
    a = callee.parameters[0]
    callee.add(
        Instruction(
            "again", "call", callee.root.shape, (a,), called_computations=(callee,)
        )
    )
    only(control, "computation callee: calls itself")


def test_mutual_recursion():
    module = Module("mutual")
    number = MappingProxyType({"parameter_number": 0})
    f, g = module.add(Computation("f")), module.add(Computation("g"))
    for mine, other in ((f, g), (g, f)):
        p = mine.add(Instruction("p", "parameter", R8, (), number))
        mine.add(
            Instruction("c", "call", R8, (p,), called_computations=(other,)), root=True
        )
    some(module, "calls itself")


def test_empty_callee(control):
    control.computation("callee").instructions.clear()
    control.computation("callee").root = None
    some(control, "computation callee: has no instructions")
    some(control, "call in main", "takes 0 operands, got 1")


def test_missing_callee(control):
    named(control, "main", "loop").called_computations = ()
    only(control, "loop in main", "while calls 2 computations, not 0")


def test_callee_where_none_belongs(control):
    named(control, "left", "ly").called_computations = (control.computation("fused"),)
    only(control, "ly in left", "negate calls 0 computations, not 1")


@pytest.mark.parametrize("name", ["x", "init", "y"])
def test_callee_of_a_leaf_or_tuple(control, name):
    named(control, "main", name).called_computations = (control.computation("left"),)
    only(control, f"{name} in main", "calls 0 computations, not 1")


def test_wrapped_computation_of_two_starts():
    module = msa.parse(MODULES["async"])
    main = module.entry
    start = named(module, "main", "as")
    main.add(
        Instruction(
            "as2",
            "async-start",
            start.shape,
            start.operands,
            start.attributes,
            start.called_computations,
        ),
    )
    only(module, "as2 in main", "is called by more than one async op", "as")


def test_done_wraps_another_computation():
    module = msa.parse(MODULES["async"])
    named(module, "main", "ad").called_computations = (module.computation("add"),)
    only(module, "ad in main", "wraps another computation than au")


# -- attributes --------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "computation", "name", "attribute"),
    [
        ("movement", "main", "t", "dimensions"),
        ("movement", "main", "pad", "padding"),
        ("movement", "main", "cut", "slice"),
        ("movement", "main", "dyn", "dynamic_slice_sizes"),
        ("movement", "main", "idx", "iota_dimension"),
        ("products", "main", "c", "dim_labels"),
        ("products", "main", "f", "fft_type"),
        ("reductions", "main", "red", "dimensions"),
        ("reductions", "main", "gat", "slice_sizes"),
        ("reductions", "main", "top", "k"),
        ("control", "body", "n", "index"),
        ("control", "body", "one", "literal"),
        ("elementwise", "main", "less", "direction"),
        ("control", "main", "fus", "kind"),
        ("collective", "main", "cp", "source_target_pairs"),
    ],
)
def test_missing_attribute(module, computation, name, attribute):
    module = msa.parse(MODULES[module])
    instruction = named(module, computation, name)
    kept = {k: v for k, v in instruction.attributes.items() if k != attribute}
    instruction.attributes = MappingProxyType(kept)
    only(module, f"{name} in {computation}", f"attribute {attribute} is missing")


def test_constant_of_another_shape(control):
    one = named(control, "body", "one")
    one.shape = Shape.array("s32", (1,))
    some(control, "one in body", "constant gives s32[], not s32[1]")


# -- layouts -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "fragment"),
    [
        (Shape(F32, (8,), (), Layout((0, 1))), "2 entries for rank 1"),
        (Shape(F32, (8,), (), Layout((1,))), "not a permutation"),
        (Shape(F32, (8,), (), Layout((0,), tiles=((-4,),))), "tile size"),
        (Shape(F32, (8,), (), Layout((0,), tail_padding_alignment=0)), "alignment"),
        (Shape(F32, (8,), (), Layout((0,), element_size_in_bits=-1)), "element size"),
        (Shape(F32, (8,), (), Layout((0,), memory_space=-1)), "memory space"),
        (
            Shape(F32, (8,), (), Layout((0,), split_configs=(SplitConfig(1, (4,)),))),
            "splits dimension 1",
        ),
        (Shape(F32, (-8,), (), Layout((0,))), "negative dimension"),
        (Shape(F32, (2**40, 2**40), (), Layout((1, 0))), "2**63"),
        (Shape(TOKEN, (), (), Layout(())), "no layout"),
        (Shape(F32, (8, 8), (True,), Layout((1, 0))), "flags for 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_layout(shape, fragment):
    module = Module("layout")
    computation = module.add(Computation("main"))
    number = MappingProxyType({"parameter_number": 0})
    computation.add(
        Instruction("p", "parameter", Shape.tuple_of(R8, shape), (), number)
    )
    only(module, "p in main", fragment)


# -- schedule ----------------------------------------------------------------


def scheduled(header, change):
    main = header.entry
    sequence = list(header.schedule.sequence(main))
    change(sequence)
    header.schedule.set_sequence(main, sequence)
    return header


def test_schedule_without_an_instruction(header):
    some(scheduled(header, lambda s: s.pop(4)), "schedule: main: y is not scheduled")


def test_schedule_with_an_instruction_twice(header):
    some(scheduled(header, lambda s: s.append(s[0])), "scheduled twice")


def test_schedule_in_wrong_order(header):
    some(scheduled(header, lambda s: s.reverse()), "is scheduled before")


def test_schedule_against_a_control_edge(header):
    def swap(sequence):
        i = next(k for k, x in enumerate(sequence) if x.name == "i")
        z = next(k for k, x in enumerate(sequence) if x.name == "z")
        sequence.insert(z + 1, sequence.pop(i))

    some(scheduled(header, swap), "z is scheduled before i")


def test_schedule_of_a_foreign_instruction(header):
    stranger = Instruction("stranger", "after-all", Shape.token())
    some(scheduled(header, lambda s: s.append(stranger)), "schedules foreign stranger")


def test_schedule_without_a_computation(control):
    control.schedule = Schedule({control.entry: control.entry.instructions})
    some(control, "schedule: body: not scheduled")


def test_schedule_of_a_foreign_computation(header):
    header.schedule.set_sequence(Computation("elsewhere"), ())
    some(header, "schedules elsewhere, not in the module")


def test_fusion_bodies_need_no_schedule(control):
    sequences = {
        c: tuple(c.instructions) for c in control.computations if c.name != "fused"
    }
    control.schedule = Schedule(sequences)
    assert find_violations(control) == []


# -- configuration -----------------------------------------------------------


def test_header_values(header):
    header.replica_count = 0
    header.num_partitions = -1
    header.aliases = (*header.aliases, Alias((0,), 7, ()))
    header.buffer_donors = ((2, ()), (2, ()))
    layout = header.entry_layout
    header.entry_layout = ComputationLayout(layout.parameters[:1], layout.result)
    assert len(find_violations(header)) == 6


# -- reports -----------------------------------------------------------------


def test_every_violation_is_listed_with_its_line():
    text = """
ENTRY main {
  p = f32[4,8] parameter(0)
  a = f32[3,8] negate(p)
  b = f32[4,8] add(p, p)
  ROOT c = s32[4,8] add(b, b)
}"""
    with pytest.raises(HloVerifyError) as caught:
        msa.parse(text)
    assert caught.value.violations == [
        "line 4: a in main: negate gives f32[4,8], not f32[3,8]",
        "line 6: c in main: add gives f32[4,8], not s32[4,8]",
    ]
    assert "2 violations" in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.violations == caught.value.violations


def test_like_instructions_are_each_reported():
    lines = "\n".join(f"  n{i} = f32[3] negate(p)" for i in range(5))
    module = msa.parse(
        f"ENTRY m {{\n  p = f32[4] parameter(0)\n{lines}\n}}", verify=False
    )
    assert [v.split(":")[1].split()[0] for v in find_violations(module)] == [
        "n0",
        "n1",
        "n2",
        "n3",
        "n4",
    ]


def test_unknown_opcodes_are_passed_over():
    module = msa.parse(MODULES["elementwise"])
    named(module, "main", "neg").opcode = "frobnicate"
    assert find_violations(module) == []


BODIES = {
    "unbounded": "p = f32[?,8] parameter(0)\n ROOT n = f32[?,8] negate(p)",
    "bounded": "p = f32[<=4,8] parameter(0)\n ROOT n = f32[4,8] negate(p)",
    "layouts": "p = f32[4,8]{0,1} parameter(0)\n ROOT n = f32[4,8]{1,0:T(8,128)S(1)} copy(p)",
    "bitcast": "p = f32[4,8] parameter(0)\n ROOT n = s32[2,16]{0,1} bitcast(p)",
    "opaque": "p = opaque[] parameter(0)\n ROOT n = (opaque[]) tuple(p)",
    "custom-call": 'p = token[] parameter(0)\n ROOT n = f32[1] custom-call(p), custom_call_target="f"',
    "tuple-copy": "p = (f32[2], token[]) parameter(0)\n ROOT n = (f32[2], token[]) copy(p)",
    "wide-dot": "p = bf16[4,4] parameter(0)\n ROOT n = f32[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "empty-tuple": "ROOT n = () tuple()",
    "after-all-nothing": "ROOT n = token[] after-all()",
    "scalar-select": "p = pred[] parameter(0)\n x = f32[8] parameter(1)\n ROOT n = f32[8] select(p, x, x)",
    "late-start": "p = f32[8] parameter(0)\n s = ((), (), u32[]) negate-start()\n u = ((f32[8]), f32[8], u32[]) negate-update(s, p)\n ROOT n = f32[8] negate-done(u)",
    "shard-free-gather": "p = f32[8] parameter(0)\n ROOT n = f32[24] all-gather(p), replica_groups={}, dimensions={0}",
    "nested-tuples": "p = ((f32[2]), ()) parameter(0)\n ROOT n = (f32[2]) get-tuple-element(p), index=0",
    "zero-sized": "p = f32[0,8] parameter(0)\n ROOT n = f32[0] reshape(p)",
    "packed-bits": "p = s4[8]{0:E(4)} parameter(0)\n ROOT n = s8[8] convert(p)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_accepted(body):
    verify(msa.parse(f"ENTRY main {{\n {body}\n}}"))


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_module(name):
    module = msa.parse(f"HloModule m\n{ACCEPTED[name]}")
    assert msa.parse(module.to_text()) == module


SHARED = os.environ.get("MSA_SHARED", "")


@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set")
def test_corpus_is_accepted():
    for path in sorted((Path(SHARED) / "corpus").glob("*.hlo")):
        if path.stat().st_size < 300_000:
            verify(msa.load(path))
