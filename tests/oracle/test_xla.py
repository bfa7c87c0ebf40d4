"""The evaluator against XLA's CPU backend, module by module.

Every scheduled module of the corpus is evaluated as it is; XLA compiles it again from
a form without fusions and layouts (see `portable`). Each module runs in a process of
its own: the compiler aborts on what it does not like.

What XLA cannot run: `host_callback` (its callbacks lived in another process). The
largest, `gpt36_train`, takes three minutes of CPU time and 12 GB.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oracle.tolerance import TOLERANCES, holds

SHARED = os.environ.get("MSA_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
TESTS = Path(__file__).parent.parent
REFUSED = {
    "host_callback": "its callbacks lived in another process",
}
LOOSER = {
    "gpt36_train": TOLERANCES["bf16"],  # its f32 results are made from bf16 ones
    "linalg_zoo": 2e-3,  # eigenvectors of close eigenvalues, made by LAPACK
}
"""Where there is no form in double precision (see `tolerance`)."""

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED, reason="MSA_SHARED does not name the corpus"),
    pytest.mark.skipif(
        importlib.util.find_spec("jaxlib") is None, reason="jaxlib is not installed"
    ),
]


def modules() -> list[str]:
    if not CORPUS.is_dir():
        return []
    return sorted({path.name.split(".")[0] for path in CORPUS.glob("*.opt.hlo*")})


@pytest.mark.parametrize("name", modules())
def test_equals_xla(name: str) -> None:
    if name in REFUSED:
        pytest.skip(f"XLA cannot run it: {REFUSED[name]}")
    path = next(CORPUS.glob(f"{name}.opt.hlo*"))
    done = subprocess.run(
        [sys.executable, "-m", "oracle.compare_module", str(path)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for row in json.loads(done.stdout.splitlines()[-1]):
        assert holds(row) or row["error"] <= LOOSER.get(name, 0), row
