"""Loading, cloning and comparing modules."""

import gzip
import io
import os
from pathlib import Path

import pytest

import msa
from hlo.reader_rows import BODIES, module_text
from msa.errors import FileFormatError, HloParseError, UnsupportedError
from msa.hlo.equality import first_difference
from msa.hlo.files import pick_dump

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = sorted(DATA.glob("*.hlo*"))
TEXT = "HloModule jit_f\n\nENTRY %e (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2]{0} parameter(0)\n}\n\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples(path):
    module = msa.load(path)
    again = msa.parse(module.to_text())
    assert again == module
    assert again.to_text() == module.to_text()
    assert module.clone() == module


# -- files -----------------------------------------------------------------------


def test_plain_and_compressed_files(tmp_path):
    (tmp_path / "a.hlo").write_text(TEXT)
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.hlo.gz").write_bytes(gzip.compress(TEXT.encode()))
    modules = [msa.load(tmp_path / name) for name in ("a.hlo", "a.txt", "a.hlo.gz")]
    assert modules[0] == modules[1] == modules[2]
    assert msa.load(str(tmp_path / "a.hlo")).name == "jit_f"


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(TEXT))
    assert msa.load("-").name == "jit_f"


DUMPS = [
    "module_0000.jit_f.before_optimizations.txt",
    "module_0000.jit_f.cpu_after_optimizations.txt",
    "module_0000.jit_f.cpu_after_optimizations-buffer-assignment.txt",
    "module_0003.jit_f.cpu_after_optimizations.txt",
    "module_0001.jit_g.cpu_after_optimizations.txt",
    "module_0001.jit_g.cpu_after_optimizations.dot",
]


def test_dump_folders(tmp_path):
    for name in DUMPS:
        (tmp_path / name).write_text(TEXT.replace("jit_f", name.split(".")[1]))
    assert pick_dump(tmp_path, "jit_f").name == DUMPS[3]
    assert msa.load(tmp_path, name="jit_g").name == "jit_g"
    with pytest.raises(FileFormatError, match="2 modules fit") as caught:
        msa.load(tmp_path)
    assert "jit_f, jit_g" in caught.value.hint
    with pytest.raises(FileFormatError, match="0 modules fit"):
        msa.load(tmp_path, name="jit_h")


def test_a_folder_with_one_text(tmp_path):
    (tmp_path / "only.hlo").write_text(TEXT)
    assert msa.load(tmp_path).name == "jit_f"


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "bad.hlo").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "bad.hlo.gz").write_bytes(b"no gzip")
    (tmp_path / "empty").mkdir()
    for name in ("missing.hlo", "bad.hlo", "bad.hlo.gz", "empty"):
        with pytest.raises(FileFormatError) as caught:
            msa.load(tmp_path / name)
        assert name in caught.value.where


def test_errors_in_files_point_into_them(tmp_path):
    (tmp_path / "a.hlo").write_text(TEXT.replace("parameter", "parametr"))
    with pytest.raises(HloParseError) as caught:
        msa.load(tmp_path / "a.hlo")
    assert (caught.value.line, caught.value.nearest) == (4, "parameter")


def test_protos_need_an_extra(tmp_path, monkeypatch):
    (tmp_path / "a.pb").write_bytes(b"\n\x03abc")
    monkeypatch.setitem(__import__("sys").modules, "jaxlib._hlo", None)
    with pytest.raises(UnsupportedError, match="jaxlib"):
        msa.load(tmp_path / "a.pb")


@pytest.mark.oracle
def test_protos(tmp_path):
    hlo = pytest.importorskip("jaxlib._hlo")
    proto = hlo.hlo_module_from_text(TEXT).as_serialized_hlo_module_proto()
    (tmp_path / "a.pb").write_bytes(proto)
    size = bytes([len(proto) & 0x7F | 0x80, len(proto) >> 7])  # a varint of two bytes
    (tmp_path / "b.pb").write_bytes(b"\n" + size + proto)
    (tmp_path / "c.pb").write_bytes(b"junk")
    for name in ("a.pb", "b.pb"):
        assert msa.load(tmp_path / name).entry.root.name == "p"
    with pytest.raises(FileFormatError):
        msa.load(tmp_path / "c.pb")


# -- clones ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b for bodies in BODIES.values() for b in bodies[:12]],
    ids=lambda b: b[-24:],
)
def test_clones(body):
    module = msa.parse(module_text(body, ", is_scheduled=true"), verify=False)
    before = module.to_text()
    copy = module.clone()
    assert copy == module
    assert copy.to_text() == before
    mine = {x for c in module.computations for x in c.instructions}
    theirs = [x for c in copy.computations for x in c.instructions]
    for instruction in theirs:
        assert instruction not in mine
        assert instruction.computation.module is copy
        assert not mine & {*instruction.operands, *instruction.users}
        assert not mine & {
            *instruction.control_predecessors,
            *instruction.control_successors,
        }
    assert sorted(x.id for x in theirs) == list(range(copy.id_limit))
    copy.entry.root.name = "other"
    assert module.to_text() == before


# -- equality ----------------------------------------------------------------------

BASE = """HloModule m, is_scheduled=true, replica_count=2

f {
  a = f32[4] parameter(0)
  ROOT b = f32[4] negate(a), metadata={op_name="x"}
}

ENTRY e {
  p = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 3, 4})
  d = f32[4] add(p, c), backend_config={"k":1}
  x = pred[4] compare(p, c), direction=LT
  ROOT r = f32[4] call(d), to_apply=f, control-predecessors={p}
}
"""


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("HloModule m", "HloModule n", "name"),
        (", is_scheduled=true", "", "is_scheduled"),
        ("replica_count=2", "replica_count=3", "replica_count"),
        ("f {", "g {", "is named g"),
        ("negate(a)", "abs(a)", "opcode abs"),
        ('op_name="x"', 'op_name="y"', "metadata"),
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}", "attributes"),
        ("add(p, c)", "add(c, p)", "operands"),
        ('{"k":1}', '{"k":2}', "backend config"),
        ("f32[4] add", "f32[4]{0:S(1)} add", "shape"),
        ("direction=LT", "direction=LE", "attributes"),
        ("predecessors={p}", "predecessors={c}", "control predecessors"),
        ("  c = f32[4] constant({1, 2, 3, 4})\n", "  c = f32[4] constant({1, 2, 3, 4})\n  z = f32[4] negate(p)\n", "instructions"),
        ("ROOT r = f32[4] call", "r = f32[4] call", ""),
        ("{1, 2, 3, 4}", "{1.0,2,3,4}", ""),
        ("direction=LT", "direction=LT, type=FLOAT", ""),
    ],
)  # fmt: skip
def test_differences(old, new, where):
    other = BASE.replace(old, new)
    if new == "g {":
        other = other.replace("to_apply=f", "to_apply=g")
    difference = first_difference(msa.parse(BASE), msa.parse(other, verify=False))
    assert difference is None if not where else where in difference


SHARED = os.environ.get("MSA_SHARED", "")


@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set")
@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_corpus(large):
    import hashlib
    import json

    corpus = Path(SHARED) / "corpus"
    for program in json.loads((corpus / "manifest.json").read_text())["programs"]:
        for row in program["files"]:
            if (row["bytes"] > 200_000) is not large:
                continue
            module = msa.load(corpus / row["file"])
            assert module.instruction_count == row["instructions"]
            assert msa.parse(module.to_text()) == module, row["file"]
            canonical = module.to_text(canonical=True)
            digest = hashlib.sha256(canonical.encode()).hexdigest()
            assert digest == row["canonical_sha256"], row["file"]


def test_a_file_may_start_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "m.hlo"
    path.write_bytes(b"\xef\xbb\xbfENTRY e { ROOT p = f32[4] parameter(0) }")
    assert msa.load(path).entry.name == "e"


def test_a_folder_without_texts_says_how_to_dump(tmp_path):
    with pytest.raises(FileFormatError, match="0 module texts .*--xla_dump_to"):
        msa.load(tmp_path)


def test_a_name_that_no_text_has_lists_those_there_are(tmp_path):
    (tmp_path / "one.hlo").write_text("ENTRY e { ROOT p = f32[4] parameter(0) }")
    with pytest.raises(FileFormatError, match="name=, one of: one.hlo"):
        msa.load(tmp_path, name="two")
