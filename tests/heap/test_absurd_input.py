"""Values that make no sense, in every place: a verified answer or a typed error."""

import math
from types import NoneType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.cli.app import run
from msa.errors import FileFormatError, MsaError, OptionsError, PackingError, PlanError
from msa.heap import (
    AllocationBlock,
    BestFitRepacker,
    Buffer,
    FreeChunks,
    GlobalDecreasingSizeBestFitHeap,
    HeapPlan,
    HeapSimulator,
    Reservation,
    SearchRepacker,
    SimulatedValue,
    parse_buffers,
)

BIG = 10**30
ABSURD = [
    None,
    True,
    math.nan,
    math.inf,
    -math.inf,
    1.5,
    2.0,
    -1,
    0,
    BIG,
    -BIG,
    2**62,
    2**60,
    2**60 - 1,
    2**53 + 1,
    10**5000,
    "x",
    "8",
    "a\0b",
    "\ud800",
    b"x",
    [],
    [5],
    (1, 2),
    {},
    {"size": 1},
    object(),
    np.nan,
    np.int64(3),
    np.float64(3),
    np.array([1, 2]),
    np.datetime64("2020-01-01"),
    Buffer("q", 0, 1, 1),
]
absurd = st.sampled_from(ABSURD)
numbers = st.integers(0, 12)
#: Mostly sense, so that what makes no sense is met in every place.
mixed = st.one_of(numbers, numbers, numbers, absurd)

FAST = settings(max_examples=60, deadline=None)


def refused(call):
    """What the call returns; None if it raised a typed error that can be shown."""
    try:
        return call()
    except MsaError as error:
        text = str(error)
    assert text
    return None


def packed(*args, **options):
    """The plan, verified; None if the input was refused with a typed error."""
    effort = options.pop("effort", 50)
    plan = refused(lambda: msa.pack(*args, effort=effort, **options))
    if plan is None:
        return None
    plan.verify()
    plan.summary()
    plan.ascii(20, 5)
    plan.svg()
    plan.to_csv()
    text = plan.to_json()
    ids = [(buffer.id, buffer.group) for buffer in plan.buffers]
    # What is no text or number is written as text, and may fall together.
    if all(isinstance(v, (int, str, NoneType)) for pair in ids for v in pair):
        assert HeapPlan.from_json(text).offsets == plan.offsets
    return plan


ROWS = [("a", 0, 2, 3), ("b", 1, 3, 2), ("c", 2, 4, 3, 2)]


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(
    "option", ["capacity", "alignment", "effort", "seed", "reserved"]
)
def test_every_option(option, value):
    if option == "effort" and isinstance(value, int) and value > 100:
        # A count of nodes: any is accepted.
        return
    packed(ROWS, **{option: value})


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(
    "field", ["id", "start", "end", "size", "alignment", "offset", "group", "gaps"]
)
def test_every_field(field, value):
    row = {"id": "z", "start": 0, "end": 3, "size": 4} | {field: value}
    packed([*ROWS, row])
    packed([*ROWS, Buffer(**row)])


@FAST
@given(st.lists(st.lists(mixed, max_size=7).map(tuple), max_size=4), st.data())
def test_rows_of_anything(rows, data):
    names = iter(range(9))
    named = [(next(names), *row[1:]) for row in rows if row]
    packed(named, alignment=data.draw(mixed), capacity=data.draw(mixed))
    packed(rows)


@FAST
@given(st.lists(st.one_of(absurd, st.lists(mixed, max_size=5).map(tuple)), max_size=4))
def test_reservations_of_anything(holds):
    packed(ROWS, reserved=holds)
    built = [
        Reservation(*(*hold, 0, 1)[:4]) for hold in holds if isinstance(hold, tuple)
    ]
    packed(ROWS, reserved=built)


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
def test_buffers_of_anything(value):
    packed(value)
    packed([value])


@FAST
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 5),
            st.none() | st.integers(0, 4),
            st.none() | st.integers(4, 6),
        ),
        max_size=5,
    )
)
def test_reservations_may_overlap(holds):
    plan = packed(ROWS, reserved=holds, effort=2000)
    assert plan is not None
    # Against the addresses of each time, one by one.
    for row, offset in zip(ROWS, plan.offsets, strict=True):
        for low, size, start, end in holds:
            first, last = 0 if start is None else start, 4 if end is None else end
            in_time = max(first, row[1]) < min(last, row[2])
            in_space = max(low, offset) < min(low + size, offset + row[3])
            assert not (in_time and in_space)


def test_overlapping_reservations_count_once():
    # Together they hold [0, 12); the loads of both would be 20.
    holds = [(0, 8), (4, 8), (0, 8)]
    plan = msa.pack([("a", 0, 2, 4)], reserved=holds, capacity=16)
    plan.verify()
    assert plan.offsets == (12,)


def test_one_limit_for_alignments():
    for limit in (2**60, BIG):
        with pytest.raises(OptionsError, match="out of range"):
            msa.pack(ROWS, alignment=limit)
        with pytest.raises(PackingError, match="out of range"):
            msa.pack([("a", 0, 2, 4, limit)])
    assert msa.pack([("a", 0, 2, 4)], alignment=2**59).height == 4
    assert msa.pack([("a", 0, 2, 4, 2**59)]).height == 4


def test_aliases_whose_common_alignment_is_out_of_range():
    primes = (2**19 - 1, 2**31 - 1, 2**17 - 1)
    rows = [Buffer(p, 0, 2, 4, alignment=p, group="g") for p in primes]
    with pytest.raises(PackingError, match="add up"):
        msa.pack(rows)


def test_addresses_above_the_exact_floating_point_numbers():
    # Even and odd sizes beyond 2**53, three of which live at once.
    size = 2**55 + 1
    rows = [(n, n // 2, n // 2 + 2, size + n % 3) for n in range(9)]
    plan = msa.pack(rows)
    plan.verify()
    assert plan.height >= 4 * size
    with pytest.raises(PackingError, match="add up"):
        msa.pack([(n, 0, 1, 2**57) for n in range(9)])


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
def test_plan_methods(value, tmp_path):
    plan = msa.pack(ROWS)

    refused(lambda: plan.ascii(value, 5))
    refused(lambda: plan.ascii(5, value))
    refused(lambda: plan.svg(value, 5))
    refused(lambda: plan.svg(5, value))
    if not isinstance(value, (str, bytes)) or "\0" in str(value):
        for method in (plan.to_csv, plan.to_json, plan.to_html):
            if value is not None:
                with pytest.raises(FileFormatError):
                    method(value)
    refused(lambda: plan.offset_of(value))
    refused(lambda: HeapPlan.from_json(value))
    refused(lambda: parse_buffers(value))
    refused(
        lambda: HeapPlan.of(
            plan.buffers, [value, 0, 5], lower_bound=5, optimal=True
        ).verify()
    )
    refused(lambda: msa.heap.load_buffers(value))


@pytest.mark.parametrize(
    "value",
    [v for v in ABSURD if not isinstance(v, Buffer)],
    ids=lambda v: type(v).__name__,
)
def test_offsets_that_are_no_numbers_are_no_plan(value):
    good = msa.pack(ROWS)
    fields = {"lower_bound": good.lower_bound, "optimal": good.optimal}
    with pytest.raises(PlanError):
        HeapPlan(
            good.buffers, (value, *good.offsets[1:]), good.height + 1, **fields
        ).verify()


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
def test_tile_sets(value):
    tiles = [("x", (8, 128), "bf16", 2)]
    calls = [
        (value, {}),
        ([value], {}),
        *(
            ([tuple(value if k == n else tiles[0][k] for k in range(4))], {})
            for n in range(4)
        ),
        *(
            (tiles, {option: value})
            for option in ("copies", "capacity", "alignment", "tile", "target")
        ),
    ]
    for rows, options in calls:
        chosen = {"capacity": "1MiB"} | options
        report = refused(lambda rows=rows, chosen=chosen: msa.fits(rows, **chosen))
        if report is not None:
            assert report.needed >= 0
            assert str(report)


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
def test_simulator_and_heaps(value):
    good = {"id": 1, "buffer": 1, "size": 8, "start": 1, "end": 2}

    def simulated(field):
        changed = SimulatedValue(**good | {field: value})
        simulator = HeapSimulator([SimulatedValue(0, 0, 8, 0, 1), changed], 4)
        assert simulator.run(GlobalDecreasingSizeBestFitHeap()).heap_size >= 0

    for field in (*good, "reusable"):
        refused(lambda field=field: simulated(field))
    for call in (
        lambda: HeapSimulator([], value).run(GlobalDecreasingSizeBestFitHeap()),
        lambda: HeapSimulator(value, 4),
        lambda: HeapSimulator([value], 4),
        lambda: HeapSimulator([], 4, buffers_to_assign=value),
        lambda: GlobalDecreasingSizeBestFitHeap(value),
        lambda: GlobalDecreasingSizeBestFitHeap(1, value).finish(),
        lambda: GlobalDecreasingSizeBestFitHeap().alloc(0, value),
        lambda: GlobalDecreasingSizeBestFitHeap().alloc(value, 8),
        lambda: GlobalDecreasingSizeBestFitHeap().free(0, value),
        lambda: FreeChunks(value),
    ):
        refused(call)


@pytest.mark.parametrize("value", ABSURD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("kind", [BestFitRepacker, SearchRepacker])
def test_repackers(kind, value):
    def blocks(**fields):
        given_ = {"inclusive_start_time": 0, "end_time": 2, "size": 8} | fields
        return [AllocationBlock(**{"id": 1} | given_), AllocationBlock(1, 3, 4, id=7)]

    calls = [
        lambda: kind(value).repack(blocks()),
        lambda: kind(64, value).repack(blocks()),
        lambda: kind(64, permutations=value).repack(blocks()),
        lambda: kind(64).repack(value),
        lambda: kind(64).repack([value]),
    ]
    calls += [
        lambda field=field: kind(10).repack(blocks(**{field: value}))
        for field in (
            "inclusive_start_time",
            "end_time",
            "size",
            "id",
            "initial_offset",
        )
    ]
    if kind is SearchRepacker:
        calls += [
            lambda: kind(64, seed=value).repack(blocks()),
            lambda: kind(64, effort=value).repack(blocks()),
        ]
    for call in calls:
        assert refused(call) in (True, False, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--capacity", "nan"],
        ["--capacity", "-1"],
        ["--capacity", "1e400"],
        ["--alignment", "0"],
        ["--alignment", "9" * 5000],
        ["--effort", "-1"],
        ["--seed", "-1"],
        ["--reserve", "0:5:9:1"],
        ["--reserve", f"0:{BIG}"],
        ["--reserve", ":"],
        ["-o", "a\0b"],
        ["--html", "/nowhere/x.html"],
    ],
    ids=lambda a: a[0] + str(a[1])[:9],
)
def test_command_line(arguments, tmp_path, capsys):
    path = tmp_path / "b.csv"
    path.write_text("id,lower,upper,size\na,0,2,64\n")
    assert run(["pack", str(path), *arguments]) == 2
    error = capsys.readouterr().err
    assert "error" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "text",
    [
        "id,lower,upper,size\na,0,2," + "9" * 5000,
        "id,lower,upper,size\na,0,2,nan",
        'id,lower,upper,size\n"' + "a" * 200_000 + '",0,2,1\n',
        "[" * 100_000,
        '[["a", 0, 2, NaN]]',
        '[["a", 0, 2, 1e400]]',
        '[{"id": "a", "start": 0, "end": 2, "size": 1, "gaps": [5]}]',
        '[{"id": "a", "start": 0, "end": 2, "size": 1, "gaps": null}]',
        '[{"id": "a", "start": 0, "lower": 1, "end": 2, "size": 1}]',
        '{"buffers": {"a": 1}}',
        "null",
        "\0",
    ],
    ids=lambda t: t[:24],
)
def test_files_of_anything(text, tmp_path, capsys):
    for suffix in ("csv", "json"):
        path = tmp_path / f"b.{suffix}"
        path.write_text(text)
        with pytest.raises(MsaError):
            msa.pack(path)
        assert run(["pack", str(path)]) == 2
        assert "Traceback" not in capsys.readouterr().err
