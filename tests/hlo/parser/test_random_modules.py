"""Grammar-based random modules survive printing and reading in every form."""

from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.hlo import PrintOptions, parse_shape, print_module
from msa.hlo.equality import first_difference
from msa.hlo.primitive import PRIMITIVE_TYPES

KINDS = [k for k, v in PRIMITIVE_TYPES.items() if v.family != "special"]


@st.composite
def layouts(draw, rank):
    order = draw(st.permutations(range(rank)))
    tags = ""
    if draw(st.booleans()):
        tiles = draw(
            st.lists(st.lists(st.integers(1, 128), min_size=1, max_size=3), max_size=2)
        )
        if tiles:
            tags += "T" + "".join(f"({','.join(map(str, t))})" for t in tiles)
        for letter, values in (
            ("L", st.integers(2, 9)),
            ("E", st.integers(1, 64)),
            ("S", st.integers(1, 9)),
        ):
            if draw(st.booleans()):
                tags += f"{letter}({draw(values)})"
    if not rank and not tags:
        return ""
    return "{" + ",".join(map(str, order)) + (f":{tags}" if tags else "") + "}"


@st.composite
def arrays(draw, max_size=9):
    kind = draw(st.sampled_from(KINDS))
    sizes = draw(st.lists(st.integers(0, max_size), max_size=4))
    dims = [f"<={n}" if draw(st.integers(0, 9)) == 0 else str(n) for n in sizes]
    return f"{kind}[{','.join(dims)}]{draw(layouts(len(sizes)))}"


def _tuple(parts):
    written = [
        f"/*index={i}*/{p}" if i and i % 5 == 0 else p for i, p in enumerate(parts)
    ]
    return f"({', '.join(written)})"


SHAPES = st.recursive(
    st.one_of(arrays(), st.sampled_from(["token[]", "opaque[]"])),
    lambda inner: st.lists(inner, max_size=7).map(_tuple),
    max_leaves=8,
)


@given(SHAPES)
def test_shapes(text):
    shape = parse_shape(text)
    assert str(shape) == text
    assert parse_shape(shape.to_text()) == shape
    assert hash(parse_shape(text)) == hash(shape)


NOISE = st.sampled_from(["", " ", "\n  ", " /* x=1 } */ ", " // y\n"])
STRINGS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@st.composite
def attributes(draw):
    found = []
    if draw(st.booleans()):
        found.append(
            f"metadata={{op_name={quoted(draw(STRINGS))} source_line={draw(st.integers(0, 99))}}}"
        )
    if draw(st.booleans()):
        found.append(f'backend_config={{"k":{quoted(draw(STRINGS))}}}')
    if draw(st.booleans()):
        found.append(
            f"backend_config={quoted(draw(STRINGS))}"
            if not any("backend" in f for f in found)
            else "sharding={manual}"
        )
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from("abcxyz"), unique=True, max_size=3))
        pairs = ",".join(f"{k}={quoted(draw(STRINGS))}" for k in keys)
        found.append(f"frontend_attributes={{{pairs}}}")
    return draw(st.permutations(found))


@st.composite
def computations(draw, name, callees):
    """Instructions over f32[4] values, with calls to earlier computations."""
    lines = [["p.0 = f32[4]{0} parameter(0)", []]]
    names = ["p.0"]
    for i in range(draw(st.integers(0, 8))):
        value = f"{draw(st.sampled_from(['v', 'x-y', 'add', '_q']))}.{i}"
        a, b = (draw(st.sampled_from(names)) for _ in range(2))
        choice = draw(st.integers(0, 5 if callees else 4))
        if choice == 0:
            lines.append([f"{value} = f32[4]{{0}} add({a}, {b})", draw(attributes())])
        elif choice == 1:
            lines.append([f"{value} = f32[4]{{0}} negate(%{a})", draw(attributes())])
        elif choice == 2:
            lines.append(
                [f"{value} = multiply(f32[4] {a}, abs({b}))", draw(attributes())]
            )
        elif choice == 3:
            number = draw(st.floats(allow_nan=False, allow_infinity=False, width=32))
            tail = ["dimensions={}", *draw(attributes())]
            lines.append([f"c.{i} = f32[] constant({number!r})", []])
            lines.append([f"{value} = f32[4]{{0}} broadcast(c.{i})", tail])
        elif choice == 4:
            tail = [f"control-predecessors={{{b}}}", *draw(attributes())]
            lines.append([f"{value} = f32[4]{{0}} tanh({a})", tail])
        else:
            callee = draw(st.sampled_from(callees))
            lines.append([f"{value} = f32[4]{{0}} call({a})", [f"to_apply={callee}"]])
        names.append(value)
    body = []
    for i, (line, tail) in enumerate(lines):
        root = "ROOT " if i == len(lines) - 1 else ""
        comma = draw(NOISE)
        body.append(root + line + "".join(f"{comma},{comma or ' '}{t}" for t in tail))
    separator = draw(st.sampled_from(["\n", "\n  ", " \n\n", " "]))
    return f"{name} {{{separator}{separator.join(body)}\n}}"


@st.composite
def modules(draw):
    names: list[str] = []
    texts = []
    for i in range(draw(st.integers(1, 4))):
        texts.append(draw(computations(f"f.{i}", list(names))))
        names.append(f"f.{i}")
    scheduled = draw(st.sampled_from(["", ", is_scheduled=true"]))
    texts[-1] = "ENTRY " + texts[-1]
    return f"HloModule m{scheduled}\n\n" + "\n\n".join(texts)


@given(modules())
@settings(max_examples=60, deadline=None)
def test_modules(text):
    module = msa.parse(text)
    printed = module.to_text()
    again = msa.parse(printed)
    assert first_difference(module, again) is None
    assert again.to_text() == printed
    assert module.clone() == module
    canonical = module.to_text(canonical=True)
    for options in (
        PrintOptions.short_parsable(),
        PrintOptions(operand_shapes=True),
        PrintOptions(index_annotations=False, percent=False, indent=4),
    ):
        form = print_module(module, options=options)
        assert msa.parse(form).to_text(canonical=True) == canonical
