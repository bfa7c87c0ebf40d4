"""Forms of printed text."""

import pytest

import msa
from msa.hlo import PrintOptions, print_computation, print_instruction, print_module

TEXT = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0})->(f32[8,4]{1,0}, f32[8]{0})}

FileNames
1 "f.py"


%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b), metadata={op_name="add"}
}

ENTRY %main (p: f32[8,4]) -> (f32[8,4], f32[8]) {
  %p = f32[8,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %big = f32[12]{0} constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  %sum = f32[8]{0} reduce(%p, %zero), dimensions={1}, to_apply=%add
  %six = (f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) tuple(%zero, %zero, %zero, %zero, %zero, /*index=5*/%zero), control-predecessors={%sum}
  ROOT %out = (f32[8,4]{1,0}, f32[8]{0}) tuple(%p, %sum), backend_config={"a":"}"}
}

"""


@pytest.fixture
def module():
    return msa.parse(TEXT)


def test_faithful(module):
    assert module.to_text() == str(module) == TEXT


def test_canonical(module):
    assert (
        module.to_text(canonical=True)
        == """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0})->(f32[8,4]{1,0}, f32[8]{0})}

add {
  tmp_0 = f32[] parameter(0)
  tmp_1 = f32[] parameter(1)
  ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
}

ENTRY main {
  tmp_0 = f32[8,4]{1,0} parameter(0)
  tmp_1 = f32[] constant(0)
  tmp_2 = f32[12]{0} constant({...})
  tmp_3 = f32[8]{0} reduce(f32[8,4]{1,0} tmp_0, f32[] tmp_1), dimensions={1}, to_apply=
  {
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }
  tmp_4 = (f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) tuple(f32[] tmp_1, f32[] tmp_1, f32[] tmp_1, f32[] tmp_1, f32[] tmp_1, f32[] tmp_1)
  ROOT tmp_5 = (f32[8,4]{1,0}, f32[8]{0}) tuple(f32[8,4]{1,0} tmp_0, f32[8]{0} tmp_3)
}

"""
    )


def test_canonical_forgets_names(module):
    renamed = TEXT.replace("%p", "%q").replace("(p:", "(q:").replace("%sum", "%total")
    assert msa.parse(renamed) != module
    assert msa.parse(renamed).to_text(canonical=True) == module.to_text(canonical=True)


@pytest.mark.parametrize(
    ("options", "there", "gone"),
    [
        (
            PrintOptions(operand_shapes=True),
            "reduce(f32[8,4]{1,0} %p, f32[] %zero)",
            "reduce(%p",
        ),
        (PrintOptions(result_shapes=False), "%sum = reduce(", "%sum = f32"),
        (PrintOptions(layouts=False), "%p = f32[8,4] parameter", "%p = f32[8,4]{1,0}"),
        (PrintOptions(metadata=False), "add(%a, %b)\n", "metadata"),
        (PrintOptions(percent=False), "reduce(p, zero)", "%"),
        (PrintOptions(program_shape=False), "ENTRY %main {", "->  f32[]"),
        (PrintOptions(control_dependencies=False), "/*index=5*/%zero)\n", "control"),
        (PrintOptions(index_annotations=False), "%zero, %zero)", "/*index=5*/%"),
        (PrintOptions(large_constants=False), "constant({...})", "11, 12"),
        (PrintOptions(backend_config=False), "tuple(%p, %sum)\n", "backend_config"),
        (PrintOptions(stack_frames=False), "\n\n%add", "FileNames"),
        (PrintOptions(indent=3), "\n     %p = ", "\n  %p = "),
        (
            PrintOptions(subcomputations="bodies"),
            "to_apply=\n  {\n    %a = f32[]",
            "to_apply=%add",
        ),
    ],
)
def test_options(module, options, there, gone):
    text = print_module(module, options=options)
    assert there in text
    assert gone not in text


def test_compact_elements():
    module = msa.parse(
        "ENTRY e { p = (f32[2], (f32[3], f32[4])) parameter(0) a = negate(p#1#0) "
        "ROOT b = add(a, p#1#0) }"
    )
    text = print_module(module, options=PrintOptions(compact_tuple_elements=True))
    assert "add(%a, %p#1#0)" in text
    assert "get-tuple-element" not in text
    assert msa.parse(text).to_text(canonical=True) == module.to_text(canonical=True)


def test_parts(module):
    add = module.computations[0]
    assert str(add.root) == print_instruction(add.root)
    assert (
        print_instruction(add.root)
        == '%c = f32[] add(%a, %b), metadata={op_name="add"}'
    )
    assert (
        print_computation(add) == TEXT[TEXT.index("%add (") : TEXT.index("\n\nENTRY")]
    )


def test_printing_follows_the_schedule(module):
    main = module.entry
    order = list(module.schedule.sequence(main))
    order[1], order[2] = order[2], order[1]
    module.schedule.set_sequence(main, order)
    again = msa.parse(module.to_text())
    assert [x.name for x in again.entry.instructions] == [x.name for x in order]
    assert again == module


def test_an_unscheduled_order_that_is_no_order_gives_way():
    module = msa.parse(
        "ENTRY e { p = f32[] parameter(0) a = negate(p) ROOT b = abs(a) }"
    )
    entry = module.entry
    late = entry.create(
        "late", "exponential", entry.parameters[0].shape, [entry.parameters[0]]
    )
    entry.instructions[1].replace_operand(0, late)
    assert msa.parse(module.to_text()) == module
    assert msa.parse(module.to_text(canonical=True))


@pytest.mark.parametrize("deep", [3_000])
def test_deep_call_graphs_print_without_recursion(deep):
    parts = ["f.0 { ROOT p = f32[] parameter(0) }"]
    parts += [
        f"f.{i} {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=f.{i - 1} }}"
        for i in range(1, deep)
    ]
    module = msa.parse("HloModule m\n" + "\n".join(parts))
    assert msa.parse(module.to_text()) == module
    body = PrintOptions(subcomputations="bodies")
    assert print_computation(module.computations[500], body).count("call(") == 500
