"""Real modules: assignments hold, and need no more than the recorded ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import msa
from analysis.storage_oracle import storage_problems
from msa.analysis import missing_copies, prepare
from msa.analysis.buffer_assignment import BufferAssignment, BufferAssignmentOptions

SHARED = os.environ.get("MSA_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
pytestmark = pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set: no corpus")


def records():
    if not SHARED:
        return []
    manifest = json.loads((CORPUS / "manifest.json").read_text())
    return [
        (program["name"], entry["file"], sum(record["temp_allocations"]))
        for program in manifest["programs"]
        if (record := program.get("buffer_assignment"))
        for entry in program["files"]
        if entry["form"] == "opt"
    ]


def recorded_sizes(name):
    """Argument and output bytes that the compiler states."""
    manifest = json.loads((CORPUS / "manifest.json").read_text())
    (program,) = [p for p in manifest["programs"] if p["name"] == name]
    return program["memory_analysis"]


@pytest.mark.parametrize(
    ("name", "file", "recorded"),
    [
        pytest.param(
            *row,
            id=row[0],
            marks=[pytest.mark.slow] if row[1].endswith(".gz") else [],
        )
        for row in records()
    ],
)
def test_assignments_of_optimized_modules(name, file, recorded):
    module = msa.load(CORPUS / file)
    assert missing_copies(module) == []
    sizes = recorded_sizes(name)
    for sharing in ("standard", "tight"):
        options = BufferAssignmentOptions(sharing=sharing, alignment=64, effort=200)
        assignment = BufferAssignment.run(module, options)
        assignment.verify()
        stats = assignment.statistics()
        assert stats.temporaries <= recorded
        assert stats.parameters == sizes["argument_size_in_bytes"]
        assert stats.outputs == sizes["output_size_in_bytes"]
        if len(assignment.live.schedule) < 1500:
            assert storage_problems(assignment) == []


def unoptimized():
    names = sorted(CORPUS.glob("*.pre.hlo")) if SHARED else []
    return [pytest.param(path, id=path.name.split(".")[0]) for path in names]


@pytest.mark.parametrize("path", unoptimized())
def test_unoptimized_modules_can_be_prepared(path):
    module = prepare(msa.load(path))
    assert missing_copies(module) == []
    assert not module.schedule.check(module)
    options = BufferAssignmentOptions(sharing="tight", effort=0)
    assignment = BufferAssignment.run(module, options)
    assignment.verify()
    assert storage_problems(assignment) == []
