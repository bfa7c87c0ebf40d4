"""Files, pictures and tile sets."""

import json
import xml.etree.ElementTree as ET

import pytest

import msa
from msa.errors import FileFormatError, OptionsError, PackingError
from msa.heap import (
    Buffer,
    HeapPlan,
    buffers_from_json,
    load_buffers,
    load_csv,
    parse_csv,
)
from msa.heap.packing.io import buffers_to_csv

ROWS = [
    Buffer("a", 0, 4, 24, alignment=8),
    Buffer("b,c", 2, 9, 8, offset=32),
    Buffer("d", 0, 9, 4, group="g", gaps=((2, 3), (5, 6))),
]


def test_csv_round_trip():
    assert parse_csv(buffers_to_csv(ROWS)) == ROWS
    plain = [Buffer("x", 0, 2, 64)]
    assert buffers_to_csv(plain) == "id,lower,upper,size\nx,0,2,64\n"


@pytest.mark.parametrize(
    "text",
    [
        "id,lower,upper,size\nx,0,2,64\n",
        "buffer,start,end,size\nx,0,2,64",
        "size,end,begin,name,note\r\n64,2,0,x,hello\r\n\r\n",
        "x,0,2,64\n",
        "id, lower, upper, size\n x , 0, 2, 64\n",
        # Every row has an offset: a solution, which pins nothing.
        "id,lower,upper,size,offset\nx,0,2,64,128\n",
    ],
    ids=["minimalloc", "plain", "reordered", "headless", "spaces", "solution"],
)
def test_csv_dialects(text):
    assert parse_csv(text) == [Buffer("x", 0, 2, 64)]


def test_csv_and_json_files_are_told_apart_by_what_they_hold(tmp_path):
    text, data = tmp_path / "a.txt", tmp_path / "b.txt"
    text.write_text("x,0,2,64\n")
    data.write_text('\n[["x", 0, 2, 64]]')
    assert load_buffers(text) == load_buffers(data) == [Buffer("x", 0, 2, 64)]
    assert msa.pack(data).height == 64
    data.write_text('[["x", 0, 2]]')
    with pytest.raises(FileFormatError, match=r"b\.txt"):
        msa.pack(data)


def test_csv_gaps_may_be_at_negative_times():
    rows = [Buffer("x", -9, 4, 8, gaps=((-7, -5), (-1, 2)))]
    plan = msa.pack(rows)
    assert parse_csv(plan.to_csv()) == rows


def test_csv_pins_where_some_offsets_are_empty():
    text = "id,lower,upper,size,offset\nx,0,2,64,128\ny,0,2,64,\n"
    assert [b.offset for b in parse_csv(text)] == [128, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,lower,size\nx,0,2\n", "no column end"),
        ("id,lower,upper,size\nx,0,2,many\n", "csv:2.*many"),
        ("id,lower,upper,size\nx,0,2,3,4\n", "csv:2.*5 cells"),
        ("id,lower,upper,size\nx,0,,3\n", "csv:2.*end"),
        ("id,lower,upper,size\nx,5,2,3\n", "before start"),
        ("id,lower,upper,size\nx,0,2\n", "lacks size"),
        ("id,lower,upper,size,gaps\nx,0,9,3,1:2\n", "gap"),
        ("id,lower,upper,size\nx,0,2,1\nx,0,2,1\n", "twice"),
    ],
)
def test_bad_csv(text, message):
    with pytest.raises(FileFormatError, match=message):
        parse_csv(text)


def test_csv_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,lower,upper,size\nx,0,2,64\ny,1,3,64\n")
    assert load_csv(path) == load_csv(str(path))
    plan = msa.pack(path)
    assert msa.pack(str(path)) == plan
    out = tmp_path / "plan.csv"
    text = plan.to_csv(out)
    assert out.read_text() == text
    assert text.splitlines()[0] == "id,lower,upper,size,offset"
    assert [p.name for p in tmp_path.iterdir()] != []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plan.csv", "x.csv"]
    with pytest.raises(FileFormatError):
        msa.pack(tmp_path / "missing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileFormatError):
        load_csv(tmp_path / "binary.csv")


def test_json_round_trip():
    plan = msa.pack(ROWS, reserved=[(100, 4)], capacity=200)
    again = HeapPlan.from_json(plan.to_json())
    assert again == plan
    again.verify()
    data = json.loads(plan.to_json())
    assert data["height"] == plan.height
    assert data["offsets"] == list(plan.offsets)


@pytest.mark.parametrize(
    "text", ["[1, 2", "3", '{"buffers": 3}', '{"buffers": []}', '[["x", 0]]']
)
def test_bad_json(text):
    with pytest.raises(FileFormatError):
        HeapPlan.from_json(text)


def test_json_buffers():
    rows = '[{"id": "x", "lower": 0, "upper": 2, "size": 8}, ["y", 0, 2, 4]]'
    assert buffers_from_json(rows) == [Buffer("x", 0, 2, 8), Buffer("y", 0, 2, 4)]


def test_ascii_draws_to_scale():
    plan = HeapPlan.of(
        [Buffer("a", 0, 2, 1), Buffer("b", 0, 4, 2), Buffer("c", 2, 4, 1)],
        [0, 1, 0],
        lower_bound=3,
        optimal=True,
    )
    assert plan.ascii(4, 3).splitlines() == [
        "3 |bbbb|",
        "2 |bbbb|",
        "1 |aacc|",
        "   0  4",
    ]


def test_svg_has_every_buffer_and_escapes_names():
    plan = msa.pack([("<&>", 0, 2, 8), ("y", 1, 3, 8)], capacity=64)
    text = plan.svg()
    root = ET.fromstring(text)
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("<&>:") for title in titles)
    assert any(title.startswith("capacity") for title in titles)
    assert plan._repr_html_() == text


def test_html_page(tmp_path):
    plan = msa.pack([("x", 0, 2, 8)])
    path = tmp_path / "plan.html"
    assert plan.to_html(path) == path.read_text()
    text = path.read_text()
    assert "lower bound" in text
    assert "proved lowest" in text
    assert "<svg" in text


def test_html_page_lists_the_largest_buffers_and_escapes_names():
    rows = [("<b>", 0, 2, 5000), *((n, 0, 2, 8) for n in range(1200))]
    text = msa.pack(rows).to_html()
    assert "&lt;b&gt;" in text
    assert "<b>:" not in text
    assert "201 smaller ones" in text


def test_svg_leaves_out_the_smallest_of_very_many():
    rows = [(n, n, n + 1, 2 if n < 20_000 else 1) for n in range(20_005)]
    text = msa.pack(rows, effort=0).svg()
    assert "5 small rectangles are not drawn" in text
    assert text.count("<rect") == 20_000 + 1


def test_empty_plan_can_be_drawn():
    plan = msa.pack([])
    assert plan.ascii()
    assert plan.svg().startswith("<svg")


def test_offset_of_unknown_buffer():
    with pytest.raises(KeyError):
        msa.pack([("x", 0, 2, 8)]).offset_of("y")


# --- Tile sets ------------------------------------------------------------------


def test_double_buffering():
    # 8 x 1024 x 2 bytes, twice.
    report = msa.fits([("x", (8, 1024), "bf16")], copies=2, capacity=32768)
    assert report
    assert report.needed == 32768
    assert report.largest == ((8, 1024),)
    assert not msa.fits([("x", (8, 1024), "bf16")], copies=2, capacity=32767)


def test_register_tiles_pad():
    # bf16 packs two rows: tiles of 16 rows by 128 lanes.
    report = msa.fits([("x", (8, 100), "bf16")], capacity="1MiB", tile=(8, 128))
    assert report.tiles[0].bytes == 1600
    assert report.tiles[0].padded_bytes == 16 * 128 * 2
    target = msa.Target.preset("tpu_v5e")
    assert msa.fits([("x", (8, 100), "bf16")], target=target).needed >= 4096
    named = msa.fits([("x", (8, 100), "bf16")], target="tpu_v5e")
    assert named.capacity == target.alternate_memory_bytes


def test_largest_scales_leading_dimensions_together():
    report = msa.fits([("x", (4, 256), "f32"), ("y", (8, 128), "s8")], capacity=10_000)
    # A step is 1 x 256 floats and 2 x 128 bytes: 1280 bytes; 7 steps fit.
    assert report.largest == ((7, 256), (14, 128))
    assert "largest that fits" in str(report)


def test_nothing_fits():
    report = msa.fits([("x", (8, 1024), "f32")], capacity=1000)
    assert not report.fits
    assert report.largest is None
    assert "does not fit" in str(report)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("pred", 5), ("s4", 3), ("bf16", 10), ("f8e4m3fn", 5), ("c64", 40), ("u64", 40)],
)
def test_element_types(dtype, size):
    assert msa.fits([("x", (5,), dtype)], capacity=100).tiles[0].bytes == size


@pytest.mark.parametrize(
    ("tiles", "options", "error"),
    [
        ([("x", (8,), "f32")], {}, OptionsError),
        ([("x", (8,), "f32")], {"capacity": 9, "copies": 0}, OptionsError),
        ([("x", (8,))], {"capacity": 9}, PackingError),
        ([("x", (-8,), "f32")], {"capacity": 9}, PackingError),
        ([("x", (8,), "quaternion")], {"capacity": 9}, PackingError),
        ([("x", (8,), "f32", 0)], {"capacity": 9}, PackingError),
    ],
)
def test_bad_tiles(tiles, options, error):
    with pytest.raises(error):
        msa.fits(tiles, **options)


def test_csv_of_pins_alone_is_no_solution():
    rows = [Buffer("x", 0, 2, 8, offset=16), Buffer("y", 0, 2, 8, offset=0)]
    text = buffers_to_csv(rows)
    assert text.splitlines()[0] == "id,lower,upper,size,pin"
    assert parse_csv(text) == rows
    both = "id,lower,upper,size,offset,pin\nx,0,2,8,16,\ny,0,2,8,0,4\n"
    assert [row.offset for row in parse_csv(both)] == [None, 4]
