"""Values in shards: half the room, at all places alike, whole in default memory."""

from __future__ import annotations

import pytest

import msa
from assignment.hlo_rows import Planned, chain, count_options, module, plan
from assignment.random_options import halved
from msa.assignment.verification import verify_plan
from msa.errors import OptionsError, PlanError
from msa.hlo.layout import SplitConfig

W = "f32[8,4]{1,0}"  # 128 bytes, 64 in halves


def options(determine=halved, **changes):
    splitting = {
        "determine_split_dimension_fn": determine,
        "init_split_tree_fn": lambda instruction, tree: tree.setdefault(
            instruction, {}
        ),
        "shape_size_fn": lambda shape: shape.shard_byte_size(),
        "bitcast_split_fn": lambda instruction, dimension: dimension,
    }
    return count_options(**{**splitting, **changes})


def shape(made: Planned, name: str) -> str:
    return str(made.by_name[name].shape)


LONG = module(
    f"  p0 = {W} parameter(0)\n{chain('n', 7, 'p0', W)}\n  ROOT add = {W} add(n6, n6)"
)


@pytest.mark.parametrize("faithful", [False, True])
def test_halves_fit_where_the_whole_does_not(faithful) -> None:
    # A negate needs its operand and its result: 256 bytes, or 128 in halves.
    made = plan(LONG, options(faithful=faithful))
    assert {size for _, size in made.plan.chunks.values()} == {64}
    for number in range(7):
        assert shape(made, f"n{number}") == "f32[8,4]{1,0:S(1)SC(0:4)}"
    # The result is the caller's, in one piece.
    assert shape(made, "add") == W
    made.plan.prove()


def test_copies_cut_and_join() -> None:
    # The parameter is cut on its way in; `t` is evicted whole, and cut again.
    text = module(
        f"  p0 = {W} parameter(0)\n  t = {W} tanh(p0)\n  u = {W} negate(t)\n"
        f"{chain('n', 14, 'u', W)}\n  e = {W} add(n13, t)\n  ROOT r = {W} negate(e)"
    )
    made = plan(text, options())
    assert made.evicted_and_back("e", 1, "t")
    back = made.operand("e", 1)
    out = back.operands[0].operands[0]
    assert str(out.shape) == W
    assert str(back.shape) == "f32[8,4]{1,0:S(1)SC(0:4)}"
    start = out.operands[0].shape
    assert str(start.subshape((0,))) == W
    assert str(start.subshape((1,))) == "f32[8,4]{1,0:S(1)SC(0:4)}"
    made.plan.prove()


def test_largest_shard_counts() -> None:
    made = plan(LONG, options(lambda place, tree: SplitConfig(0, (2, 5))))
    # Shards of 2, 3 and 3 rows of 16 bytes.
    assert {size for _, size in made.plan.chunks.values()} == {48}
    assert shape(made, "n0") == "f32[8,4]{1,0:S(1)SC(0:2,5)}"
    made.plan.prove()


def test_what_shares_storage_is_cut_alike_or_not_at_all() -> None:
    text = module(
        f"  p0 = {W} parameter(0)\n  a = {W} negate(p0)\n"
        f'  b = {W} custom-call(a), custom_call_target="x", '
        "output_to_operand_aliasing={{}: (0, {})}\n"
        f"  ROOT r = {W} negate(b)"
    )
    cut = plan(text, options())
    assert shape(cut, "a") == shape(cut, "b") == "f32[8,4]{1,0:S(1)SC(0:4)}"

    def only_b(place, tree):
        return SplitConfig(0, (4,)) if place.instruction.name == "b" else None

    whole = plan(text, options(only_b))
    assert "SC" not in whole.module.to_text()


def test_the_tree_holds_what_was_decided() -> None:
    trees = []

    def some(place, tree):
        trees.append(tree)
        return SplitConfig(1, (2,)) if place.instruction.name == "n0" else None

    plan(LONG, options(some, replicated_split_dimension=-7))
    decided = {x.name: nodes for x, nodes in trees[0].items()}
    assert decided["n0"] == {(): 1}
    assert decided["n1"] == {(): -7}


VIEWS = module(
    f"  p0 = {W} parameter(0)\n  a = {W} negate(p0)\n  b = f32[2,4,4] bitcast(a)\n"
    f"  c = f32[2,4,4] negate(b)\n  d = {W} bitcast(c)\n  ROOT r = {W} negate(d)"
)


def test_bitcasts_are_cut_where_their_operand_is() -> None:
    made = plan(VIEWS, options())
    assert shape(made, "a") == "f32[8,4]{1,0:S(1)SC(0:4)}"
    # Row 4 of 8 is plane 1 of 2.
    assert shape(made, "b") == "f32[2,4,4]{2,1,0:S(1)SC(0:1)}"
    assert shape(made, "c") == "f32[2,4,4]{2,1,0:S(1)SC(0:1)}"
    assert shape(made, "d") == "f32[8,4]{1,0:S(1)SC(0:4)}"
    made.plan.prove()


def test_bitcasts_that_cannot_be_cut() -> None:
    # Shards of 3 and 5 rows do not end at planes of 4 rows.
    def uneven(place, tree):
        return SplitConfig(0, (3,)) if place.instruction.name == "a" else None

    with pytest.raises(PlanError, match="cannot be cut"):
        plan(VIEWS, options(uneven), alternate_memory_bytes=1024)


@pytest.mark.parametrize("split", [SplitConfig(2, (1,)), SplitConfig(0, (8,))])
def test_cuts_that_the_shape_does_not_have(split) -> None:
    with pytest.raises(OptionsError, match="determine_split_dimension_fn cuts"):
        plan(LONG, options(lambda place, tree: split))


def test_a_tree_without_an_entry() -> None:
    with pytest.raises(OptionsError, match="no entry for"):
        plan(LONG, options(init_split_tree_fn=lambda instruction, tree: None))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        # A place that reads halves as a whole; default memory in halves.
        ("n3 = f32[8,4]{1,0:S(1)SC(0:4)}", "n3 = f32[8,4]{1,0:S(1)}", "n3"),
        ("add = f32[8,4]{1,0}", "add = f32[8,4]{1,0SC(0:4)}", "add"),
    ],
)
def test_verify_sees_places_cut_wrongly(old, new, where) -> None:
    made = plan(LONG, options()).plan
    text = made.module.to_text()
    assert old in text
    spoiled = msa.parse(text.replace(old, new.replace("0SC", "0:SC")))
    with pytest.raises(PlanError):
        verify_plan(made.original, spoiled, made.chunks, made.target)
