"""Memory reports: the right numbers, the right names, and forms that hold them."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import msa
from msa.analysis import prepare
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions
from msa.analysis.memory_report import BufferKind, DonationStatus, HintKind

DATA = Path(__file__).parent.parent / "data" / "memory"


def load(name: str):
    return msa.load(DATA / f"{name}.hlo")


def test_c10_peak_truth():
    """Gradient of a 12-layer tanh MLP, 12 x f32[256,256], x f32[1024,256]."""
    report = msa.analyze(load("tanh_mlp_grad"))
    b = report.breakdown
    assert b.arguments == 4_194_304
    assert b.outputs == 3_145_824
    assert b.temporaries == 13_631_488
    assert (b.aliased, b.padding, b.constants) == (0, 0, 0)
    assert report.peak_bytes == 20_971_616
    # 13 activations or gradients of 1 MiB are live together.
    live = [row for row in report.at_peak if row.kind is BufferKind.TEMPORARY]
    assert len(live) == 13
    assert {row.bytes for row in live} == {1 << 20}
    assert all(row.op_name and row.source.startswith("train.py:") for row in live)
    assert sum(row.bytes for row in report.at_peak) == report.peak_bytes
    assert report.timeline.dtype == np.int64
    assert report.timeline[report.peak_step] == report.timeline.max() == 20_971_616
    assert report.lower_bound <= report.peak_bytes
    names = {row.op_name for row in report.at_peak if row.kind is BufferKind.ARGUMENT}
    assert names == {"x", *(f"ws[{i}]" for i in range(12))}
    assert "20,971,616" in str(report)


def test_c7_donated_loop():
    """The argument, exp(x) and the result share one buffer of 4 MiB."""
    report = msa.analyze(load("donated_loop"))
    assert report.breakdown.temporaries <= 256
    assert report.breakdown.aliased == report.breakdown.arguments == 4 << 20
    (donation,) = report.donations
    assert donation.status is DonationStatus.IN_PLACE
    assert donation.used
    assert donation.donated
    large = [hint for hint in report.hints if hint.kind is HintKind.LARGE_BUFFER]
    assert len(large) == 1


C4 = """
HloModule m, is_scheduled=true
body {
  p = (s32[], f32[16], f32[16]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  persistent = f32[16] get-tuple-element(p), index=1
  total = f32[16] get-tuple-element(p), index=2
  use = f32[16] add(total, persistent)
  later = f32[16] reverse(use), dimensions={0}
  next = f32[16] reverse(later), dimensions={0}
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (s32[], f32[16], f32[16]) tuple(n, persistent, next)
}
cond {
  q = (s32[], f32[16], f32[16]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(j, limit), direction=LT
}
ENTRY main {
  a = f32[16] parameter(0)
  zero = s32[] parameter(1)
  kept = f32[16] negate(a)
  start = f32[16] exponential(a)
  t = (s32[], f32[16], f32[16]) tuple(zero, kept, start)
  w = (s32[], f32[16], f32[16]) while(t), condition=cond, body=body
  ROOT out = f32[16] get-tuple-element(w), index=2
}"""


@pytest.mark.parametrize("sharing", ["standard", "tight"])
def test_c4_lifetime_across_a_loop(sharing):
    """What every trip reads keeps its bytes, though its last textual use is early."""
    module = prepare(msa.parse(C4))
    options = BufferAssignmentOptions(sharing=sharing, must_not_live_out=lambda _: True)
    assignment = BufferAssignment.run(module, options)
    assignment.verify()
    named = {x.name: x for c in module.computations for x in c.instructions}
    persistent = assignment.unique_slice(named["persistent"])
    later = assignment.unique_slice(named["later"])
    assert not persistent.overlaps(later)
    assert persistent.size + later.size == 128


TILED = """
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[1024]{0} parameter(0)
  y = f32[1024,2]{1,0:T(8,128)} broadcast(x), dimensions={0}, metadata={op_name="f/y" source_file="f.py" source_line=3}
  z = f32[1024,2]{1,0:T(8,128)} reverse(y), dimensions={0}
  ROOT out = f32[1024]{0} custom-call(z), custom_call_target="f"
}"""


def test_padding_of_tiled_layouts():
    # 1024 x 2 f32 are 8 KiB; tiles of 8 x 128 make 1024 x 128, 512 KiB.
    report = msa.analyze(msa.parse(TILED))
    row = next(row for row in report.at_peak if row.buffer == "y{}")
    assert (row.bytes, row.logical_bytes, row.padding_factor) == (1 << 19, 8192, 64.0)
    assert (row.op_name, row.source) == ("f/y", "f.py:3")
    assert report.breakdown.temporaries == 2 << 19
    assert report.breakdown.padding == 2 * ((1 << 19) - 8192)
    hint = next(hint for hint in report.hints if hint.kind is HintKind.PADDING)
    assert "64.0x" in hint.message
    assert hint.source == "f.py:3" or hint.subject == "z{}"


@pytest.mark.parametrize(
    ("shape", "padded"),
    [
        ("s32[8388608,8,4]{2,1,0:T(8,128)}", 32 << 30),
        ("f32[256,512,128,2]{3,2,1,0:T(8,128)}", 8 << 30),
        ("s32[2048,1,128,128,4]{4,3,2,0,1:T(8,128)}", 16 << 30),
        ("bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}", 4 << 30),
        ("u32[12582912,1]{1,0:T(8,128)}", 6 << 30),
        ("u32[16,8,128]{2,1,0:T(8,128)}", 65_536),
        ("bf16[129,1024]{1,0:T(8,128)(2,1)}", 278_528),
        ("s4[13]{0:E(4)}", 7),
    ],
)
def test_c9_sizes_in_reports(shape, padded):
    report = msa.analyze(
        msa.parse(f"""
        HloModule m, is_scheduled=true
        ENTRY main {{
          x = {shape} parameter(0)
          ROOT y = f32[] custom-call(x), custom_call_target="f"
        }}""")
    )
    (row,) = [row for row in report.at_peak if row.buffer == "x{}"]
    assert row.bytes == padded
    assert row.padding_factor == pytest.approx(row.bytes / row.logical_bytes)


def test_other_memory_spaces_are_kept_apart():
    text = TILED.replace("T(8,128)", "T(8,128)S(1)", 1)
    report = msa.analyze(msa.parse(text))
    assert report.other_spaces == ((1, 1 << 19),)
    assert report.breakdown.temporaries == 1 << 19


def donation(aliases: str, body: str, donors: str = ""):
    head = "HloModule m, is_scheduled=true"
    if aliases:
        head += f", input_output_alias={{ {aliases} }}"
    if donors:
        head += f", buffer_donor={{ {donors} }}"
    return msa.analyze(msa.parse(f"{head}\nENTRY main {{\n{body}\n}}"))


def test_donation_in_place():
    report = donation(
        "{0}: (0, {}, may-alias)",
        """x = f32[64] parameter(0), metadata={op_name="state"}
        y = f32[64] exponential(x)
        ROOT t = (f32[64]) tuple(y)""",
    )
    (d,) = report.donations
    assert (d.status, d.used, d.output, d.op_name) == ("in place", True, (0,), "state")
    assert report.breakdown.aliased == 256


def test_donation_that_needs_a_copy():
    report = donation(
        "{0}: (0, {}, may-alias)",
        """x = f32[64] parameter(0)
        y = f32[64] reverse(x), dimensions={0}
        z = f32[64] add(x, x)
        ROOT t = (f32[64], f32[64]) tuple(y, z)""",
    )
    (d,) = [d for d in report.donations if d.donated]
    assert (d.status, d.used) == (DonationStatus.COPIED, False)
    assert "still read by" in d.reason
    kinds = [hint.kind for hint in report.hints]
    assert HintKind.DONATION in kinds
    assert kinds[0] is HintKind.PREPARED


def test_donation_without_a_fitting_output():
    report = donation(
        "",
        """x = f32[64] parameter(0)
        y = f32[32] slice(x), slice={[0:32]}
        ROOT t = (f32[32]) tuple(y)""",
        donors="(0, {})",
    )
    (d,) = report.donations
    assert (d.status, d.donated, d.used) == (DonationStatus.UNUSED, True, False)
    assert d.reason == "no output takes 256 bytes"


def test_donation_that_would_pay():
    report = donation(
        "",
        """x = f32[64] parameter(0)
        y = f32[64] exponential(x)
        ROOT z = f32[64] reverse(y), dimensions={0}""",
    )
    (d,) = report.donations
    assert (d.status, d.donated, d.output) == (DonationStatus.POSSIBLE, False, ())
    (hint,) = [hint for hint in report.hints if hint.kind is HintKind.DONATION]
    assert "256 B" in hint.message


def test_argument_read_after_the_output_is_not_offered():
    report = donation(
        "",
        """x = f32[64] parameter(0)
        y = f32[64] reverse(x), dimensions={0}
        z = f32[] custom-call(x), custom_call_target="f"
        ROOT t = (f32[64], f32[]) tuple(y, z)""",
    )
    assert report.donations == ()


def test_copies_in_loops_are_hinted():
    text = C4.replace(
        "use = f32[16] add(total, persistent)",
        "use = f32[16] add(total, persistent)\n  dup = f32[16] copy(persistent)",
    ).replace("reverse(use)", "reverse(dup)")
    report = msa.analyze(msa.parse(text))
    (hint,) = [h for h in report.hints if h.kind is HintKind.LOOP_COPY]
    assert hint.subject == "dup{}"
    assert hint.bytes == 64


def test_unscheduled_modules_are_scheduled_for_the_report():
    module = msa.parse(C4.replace(", is_scheduled=true", ""))
    report = msa.analyze(module)
    assert not module.is_scheduled
    assert report.hints[0].kind is HintKind.PREPARED
    assert "no schedule" in report.hints[0].message


def test_computations_with_two_callers():
    # The second call runs too: both results are there at the end.
    module = msa.parse("""
    HloModule m, is_scheduled=true
    f { a = f32[64] parameter(0)
        b = f32[64] reverse(a), dimensions={0}
        ROOT c = f32[64] reverse(b), dimensions={0} }
    ENTRY main {
      x = f32[64] parameter(0)
      y = f32[64] call(x), to_apply=f
      ROOT z = f32[64] call(y), to_apply=f
    }""")
    report = msa.analyze(module)
    assert len(report.steps) == 9
    # Two arrays are live at each step; at best one of them waits in the output.
    ready = prepare(module)
    tight = BufferAssignment.run(ready, BufferAssignmentOptions(sharing="tight"))
    assert tight.temporary_bytes == 256
    assert report.breakdown.temporaries in (256, 512)
    assert report.lower_bound == 3 * 256
    with pytest.raises(msa.HloError, match="call the same computation"):
        BufferAssignment.run(module)


def test_target_sets_the_alignment():
    target = msa.Target.preset("tpu_v5e").replace(alignment_bytes=4096)
    text = """
    HloModule m, is_scheduled=true
    ENTRY main {
      x = f32[4] parameter(0)
      a = f32[4] reverse(x), dimensions={0}
      b = f32[4] reverse(a), dimensions={0}
      ROOT c = f32[5] custom-call(a, b), custom_call_target="f"
    }"""
    module = msa.parse(text)
    assert msa.analyze(module, target=target).breakdown.temporaries == 4096 + 16
    assert msa.analyze(module).breakdown.temporaries == 64 + 16


def test_forms():
    report = msa.analyze(load("tanh_mlp_grad"))
    data = json.loads(report.to_json())
    assert data["peak_bytes"] == 20_971_616
    assert data["breakdown"]["temporaries"] == 13_631_488
    assert len(data["timeline"]) == len(data["steps"]) == len(report.timeline)
    assert {row["kind"] for row in data["at_peak"]} == {
        "argument",
        "output",
        "temporary",
    }
    page = report.html()
    assert "20,971,616" in page
    assert "train.py:" in page
    assert not re.search(r'(src|href)="http', page)
    assert report._repr_html_().startswith("<div>")


def test_names_are_escaped_in_pages():
    text = TILED.replace("f/y", "<script>alert(1)</script>")
    page = msa.analyze(msa.parse(text)).html()
    assert "<script>alert(1)" not in page


def test_files_are_written(tmp_path):
    report = msa.analyze(load("donated_loop"))
    report.html(tmp_path / "a.html")
    report.to_json(tmp_path / "a.json")
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "a.json").read_text())["module"] == "jit_f7"


def test_renaming_and_reparsing_change_nothing_but_names():
    module = load("donated_loop")
    first = msa.analyze(module).to_dict()
    again = msa.analyze(msa.parse(module.to_text())).to_dict()
    assert first == again
    for computation in module.computations:
        for x in computation.instructions:
            x.name = f"renamed.{x.id}"
    renamed = msa.analyze(module)
    assert renamed.timeline.tolist() == first["timeline"]
    assert renamed.peak_bytes == first["peak_bytes"]


def test_empty_program():
    report = msa.analyze(
        msa.parse("HloModule m, is_scheduled=true\nENTRY e { ROOT t = () tuple() }")
    )
    assert report.peak_bytes == 0
    assert report.html()


SHARED = os.environ.get("MSA_SHARED")


@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set: no corpus")
@pytest.mark.slow
def test_largest_module_is_analyzed_quickly():
    module = msa.load(Path(SHARED) / "corpus" / "gpt36_train.opt.hlo.gz")
    start = time.process_time()
    report = msa.analyze(module)
    assert time.process_time() - start < 20
    assert report.breakdown.arguments == 1_979_109_396
    assert report.breakdown.temporaries <= 4_561_452_868
