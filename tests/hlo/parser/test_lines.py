"""The fast path reads what the general reader reads."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from hlo.reader_rows import BODIES, module_text
from msa.hlo.equality import first_difference

ROWS = [
    pytest.param(body, id=f"{row}-{n}")
    for row, bodies in BODIES.items()
    for n, body in enumerate(bodies)
]


def slowly(text: str) -> str:
    """The same text in a form that the fast path leaves alone."""
    return text.replace(" = ", " /**/ = ")


@pytest.mark.parametrize("body", ROWS)
def test_both_paths_agree(body):
    printed = msa.parse(module_text(body), verify=False).to_text()
    fast = msa.parse(printed, verify=False)
    general = msa.parse(slowly(printed), verify=False)
    assert first_difference(fast, general) is None
    assert [x.line for x in fast.entry.instructions] == [
        x.line for x in general.entry.instructions
    ]


PIECES = st.sampled_from(
    [
        'metadata={op_name="x"}',
        'metadata={op_name="a, metadata={b}"}',
        'backend_config={"a":"}"}',
        "sharding={replicated}",
        'frontend_attributes={k="v, calls=f"}',
        'frontend_attributes={k="}, backend_config={1}"}',
        "slice={[0:2]}",
        "control-predecessors={p}",
        "calls=f",
        "kind=kLoop",
        "// , x",
        "/* } */",
    ]
)


@given(st.lists(PIECES, max_size=4), st.sampled_from([", ", ",", " , ", ",\n  ", " "]))
@settings(max_examples=100, deadline=None)
def test_both_paths_agree_on_odd_tails(pieces, comma):
    tail = "".join(comma + piece for piece in pieces)
    for opcode in ("negate", "slice", "fusion"):
        for before in ("", "  a = f32[2]{0} slice(p), slice={[0:2]}\n"):
            text = (
                "f { ROOT p = f32[2] parameter(0) }\n\nENTRY e {\n"
                f"  p = f32[2]{{0}} parameter(0)\n{before}"
                f"  r = f32[2]{{0}} {opcode}(p){tail}\n  t = f32[2]{{0}} negate(r)\n}}\n"
            )
            text = f"HloModule m\n{text}"
            outcomes = []
            for form in (text, slowly(text)):
                try:
                    module = msa.parse(form, verify=False)
                    outcomes.append(module.to_text())
                except msa.HloParseError as error:
                    outcomes.append((error.message, error.line))
            assert outcomes[0] == outcomes[1]


def test_a_repeated_attribute_text_is_shared():
    module = msa.parse(
        "ENTRY e {\n  p = f32[4] parameter(0)\n  a = f32[2] slice(p), slice={[0:2]}\n"
        "  b = f32[2] slice(p), slice={[0:2]}\n  ROOT t = f32[2] add(a, b)\n}\n"
    )
    a, b = module.entry.instructions[1:3]
    assert a.attributes is b.attributes
    assert a.shape is b.shape


def chain(count: int, template: str, end: str = "\n") -> str:
    lines = [template.format(i=i, before=i - 1) for i in range(1, count)]
    return (
        "ENTRY e {"
        + end
        + "v0 = f32[4]{0} parameter(0)"
        + end
        + end.join(lines)
        + end
        + "}"
    )


FORMS = {
    "plain": ("v{i} = f32[4]{{0}} negate(v{before})", "\n"),
    "one-line": ("v{i} = f32[4]{{0}} negate(v{before})", " "),
    "metadata": (
        'v{i} = f32[4]{{0}} negate(v{before}), metadata={{op_name="{i}"}}',
        "\n",
    ),
    "nested": ("v{i} = f32[4]{{0}} negate(abs(v{before}))", " "),
    "control": (
        "v{i} = f32[4]{{0}} negate(v{before}), control-predecessors={{v0}}",
        "\n",
    ),
    "inline": (
        "v{i} = f32[4]{{0}} map(v{before}), to_apply={{ a = f32[] parameter(0) ROOT b = negate(a) }}",
        "\n",
    ),
    "sharded": (
        "v{i} = f32[4]{{0}} negate(v{before}), sharding={{devices=[4]<=[4]}}",
        " ",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_reading_is_linear(form):
    template, end = FORMS[form]
    seconds = []
    for count in (250, 2_000):
        text = chain(count, template, end)
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            msa.parse(text, verify=False)
            best = min(best, time.process_time() - start)
        seconds.append(best)
    # Eight times the text; a quadratic step would take 64 times as long.
    assert seconds[1] < 24 * seconds[0] + 0.05
