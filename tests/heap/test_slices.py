"""Sliced intervals, permutations of slice times, and the sliced finder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.errors import PackingError
from msa.heap import (
    AllocatedSlice,
    BufferInterval,
    Chunk,
    SlicedAllocationFinder,
    SlicedBufferInterval,
    SlicePermutations,
)


def sliced_example():
    whole = BufferInterval(0, 20, 100, 200, colocations=(1,))
    return SlicedBufferInterval.of(whole).with_slices([4, 5, 5, 6])


def rows(sliced):
    return [(i.size, i.start, i.end, i.colocations) for i in sliced.search_intervals()]


def test_inclusive_start_times_10_8():
    sliced = sliced_example().with_inclusive_start_times([100, 125, 150, 175])
    assert rows(sliced) == [
        (4, 100, 124, ()),
        (4, 125, 149, ()),
        (4, 150, 174, ()),
        (20, 175, 200, (1,)),
    ]
    longer = sliced.with_end_time(300)
    assert rows(longer)[:3] == rows(sliced)[:3]
    assert rows(longer)[3] == (20, 175, 300, (1,))
    assert longer.full.end == 300


def test_exclusive_start_times_10_8():
    sliced = sliced_example().with_exclusive_start_times([100, 125, 150, 175])
    assert [row[1:3] for row in rows(sliced)] == [
        (101, 125),
        (126, 150),
        (151, 175),
        (176, 200),
    ]
    assert sliced.full.start == 101


def test_one_slice_is_the_interval():
    whole = BufferInterval(0, 20, 100, 200, colocations=(1,))
    assert SlicedBufferInterval.of(whole).search_intervals() == [whole]
    assert SlicedBufferInterval.of(whole).with_slices([]).search_intervals() == [whole]


@pytest.mark.parametrize("sizes", [[4, 5], [0, 20], [-1, 21]])
def test_slices_must_cut_the_buffer(sizes):
    with pytest.raises(PackingError):
        SlicedBufferInterval.of(BufferInterval(0, 20, 0, 9)).with_slices(sizes)


def words(permutations):
    return ["".join(map(str, p)) for p in permutations]


@pytest.mark.parametrize(
    ("kind", "starts", "expected"),
    [
        ("all", [1], "0"),
        ("all", [1, 2], "01 10"),
        ("all", [1, 2, 3], "012 021 102 120 201 210"),
        (
            "all",
            [40, 10, 450, 10],
            "0123 0132 0213 0231 0312 0321 2013 2031 2301 3012 3021 3201",
        ),
        ("preferred", [1], "0"),
        ("preferred", [1, 2], "01 10"),
        ("preferred", [40, 10, 450, 12, 14], "01234 43210 31024"),
        ("preferred", [40, 10, 450, 10], "0123 3210 3102"),
        ("preferred", [40, 40], "01"),
    ],
    ids=lambda value: f"10.10-{value}" if isinstance(value, str) else None,
)
def test_permutations(kind, starts, expected):
    permutations = SlicePermutations.new(kind, starts)
    assert words(permutations) == expected.split()
    assert words(permutations) == expected.split(), "must be reusable"


def slices_of(sizes, starts):
    offset, result = 0, []
    for size, start in zip(sizes, starts, strict=True):
        result.append(AllocatedSlice(size, offset, start))
        offset += size
    return result


@pytest.mark.parametrize(
    ("kind", "sizes", "starts", "expected"),
    [
        ("all", [], [], "0"),
        ("all", [1, 1, 1], [1, 2, 3], "012 021 102 120 201 210"),
        ("all", [1, 2, 1], [1, 3, 2], "021 120"),
        (
            "all",
            [1, 1, 2, 1, 2, 3],
            [1, 2, 1, 1, 3, 4],
            "012345 014325 031245 034125 301245 304125",
        ),
        ("preferred", [1, 1, 1], [1, 2, 3], "012 210 102"),
        # The middle slice differs in size and keeps its time, the third.
        ("preferred", [1, 2, 1], [1, 3, 2], "021 120"),
    ],
    ids=lambda value: f"10.10-repack-{value}" if isinstance(value, str) else None,
)
def test_repack_permutations(kind, sizes, starts, expected):
    slices = slices_of(sizes, starts) or None
    assert words(SlicePermutations.repack(kind, slices)) == expected.split()


BASE = "5-7 10-40 60-70"


def gaps(text):
    return [tuple(map(int, word.split("-"))) for word in text.split()]


def finder(free, sizes, **options):
    allowed = options.pop("forbidden", None)
    return SlicedAllocationFinder(
        [gaps(text) for text in free],
        sizes,
        permutations=SlicePermutations.new("all", range(len(free))),
        is_offset_allowed=None if allowed is None else lambda o: o != allowed,
        **options,
    )


def plus(*extra):
    return [f"{BASE} {text}" for text in extra]


LEFT = plus("45-48", "45-51", "45-54")
RIGHT = plus("51-54", "48-54", "45-54")
MIDDLE = plus("48-51", "48-54", "45-54")
HOLES = [
    "5-31 39-42 46-51 54-60 62-64",
    "5-31 38-44 46-51 54-59 62-64",
    "5-31 36-59 62-64",
]
EARLY = ["6-68", "5-25 28-40 48-54 60-70", f"{BASE} 45-54"]
FORBIDDEN = plus("45-49", "45-52", "45-55")
FINDER = [
    ("unsliced", plus("45-48"), [3], {}, [(45, 3), (48, 0)]),
    ("room", plus("45-48"), [3], {"max_colocation_size": 6}, [(60, 3), (63, 3)]),
    ("tie", ["5-7 10-13 15-40 45-48 60-70"], [3], {}, [(10, 3), (13, 0)]),
    ("left-hole", LEFT, [3, 3, 3], {}, [45, 48, 51]),
    ("right-hole", RIGHT, [3, 3, 3], {}, [51, 48, 45]),
    ("middle", MIDDLE, [3, 3, 3], {}, [48, 51, 45]),
    ("many-holes", HOLES, [3, 3, 3], {}, [46, 40, 43]),
    ("early-large", EARLY, [3, 3, 3], {}, [48, 51, 45]),
    (
        "different-sizes",
        plus("46-51", "46-54", "42-54"),
        [5, 3, 4],
        {},
        [(47, 3), (50, 4), (42, 5)],
    ),
    (
        "different-sizes-second",
        plus("46-49", "46-54", "42-54"),
        [5, 3, 4],
        {},
        [10, 15, 18],
    ),
    (
        "room-10",
        MIDDLE,
        [3, 3, 3],
        {"max_colocation_size": 10},
        [(60, 3), (63, 3), (66, 3), (69, 1)],
    ),
    ("preferred", MIDDLE, [3, 3, 3], {"preferred_offset": 20}, [20, 23, 26]),
    ("preferred-taken", MIDDLE, [3, 3, 3], {"preferred_offset": 35}, [48, 51, 45]),
    (
        "aligned",
        plus("47-53", "47-57", "43-57"),
        [4, 4, 4],
        {"alignment": 2},
        [48, 52, 44],
    ),
    (
        "aligned-preferred",
        plus("47-53", "47-57", "43-57"),
        [4, 4, 4],
        {"alignment": 2, "preferred_offset": 21},
        [48, 52, 44],
    ),
    ("two-slices", ["5-11 15-21", "5-11 25-31"], [3, 3], {}, [5, 8]),
    (
        "two-slices-more",
        ["5-16 20-26 40-43", "5-16 26-32 42-45"],
        [3, 3],
        {},
        [5, 8],
    ),
    ("forbidden-45", FORBIDDEN, [3, 3, 3], {"forbidden": 45}, [46, 49, 52]),
    ("forbidden-46", LEFT, [3, 3, 3], {"forbidden": 46}, [45, 48, 51]),
    (
        "right-forbidden",
        plus("51-55", "48-55", "45-55"),
        [3, 3, 3],
        {"forbidden": 45},
        [52, 49, 46],
    ),
    ("right-forbidden-tight", RIGHT, [3, 3, 3], {"forbidden": 45}, [60, 63, 66]),
    ("empty-ranges", [f"{BASE} 45-45 45-48"], [3], {}, [45]),
]


@pytest.mark.parametrize(
    ("free", "sizes", "options", "expected"),
    [row[1:] for row in FINDER],
    ids=[f"10.9-{row[0]}" for row in FINDER],
)
def test_finder(free, sizes, options, expected):
    chunks = finder(free, sizes, **options).find()
    for chunk, wanted in zip(chunks, expected, strict=False):
        if isinstance(wanted, tuple):
            assert (chunk.offset, chunk.size) == wanted
        else:
            assert chunk.offset == wanted
    assert len(chunks) == len(sizes) + 1


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (10, [10, 13, 16]),
        (20, [20, 23, 26]),
        (45, None),
        (46, [46, 49, 52]),
        (59, None),
        (61, [61, 64, 67]),
    ],
)
def test_find_for_offset_10_9(offset, expected):
    chunks = finder(FORBIDDEN, [3, 3, 3], forbidden=45).find_for_offset(offset)
    assert [chunk.offset for chunk in chunks[:3]] == (expected or [])


def free_lists(draw_bits):
    """Bit strings of free cells as gaps."""
    return [
        [(i, i + 1) for i, free in enumerate(bits) if free] + [(20, 60)]
        for bits in draw_bits
    ]


def merged(cells):
    result = []
    for start, end in cells:
        if result and result[-1][1] == start:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result


@given(
    st.lists(st.lists(st.booleans(), min_size=20, max_size=20), min_size=2, max_size=3),
    st.data(),
)
def test_finder_agrees_with_all_offsets_tried(bits, data):
    free = [merged(cells) for cells in free_lists(bits)]
    sizes = data.draw(
        st.lists(st.integers(1, 4), min_size=len(free), max_size=len(free))
    )
    alignment = data.draw(st.sampled_from([1, 2, 4]))
    permutations = list(SlicePermutations.new("all", range(len(free))))

    def fits(offset, permutation):
        at = offset
        for size, time in zip(sizes, permutation, strict=True):
            for k in range(time, len(free)):
                if not any(s <= at and at + size <= e for s, e in free[k]):
                    return False
            at += size
        return any(s <= offset and at <= e for s, e in free[-1])

    expected = None
    for start, end in sorted(free[-1], key=lambda gap: (gap[1] - gap[0], gap[0])):
        for offset in range(-(-start // alignment) * alignment, end, alignment):
            found = [p for p in permutations if fits(offset, p)]
            if found and offset + sum(sizes) <= end:
                expected = (offset, found[0])
                break
        if expected:
            break
    chunks = SlicedAllocationFinder(
        free, sizes, alignment=alignment, permutations=permutations
    ).find()
    assert expected is not None
    offset, permutation = expected
    assert min(c.offset for c in chunks) == offset
    at = offset
    for size, time in zip(sizes, permutation, strict=True):
        assert chunks[time] == Chunk(at, size)
        at += size
