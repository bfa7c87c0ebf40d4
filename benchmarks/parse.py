"""Reading and printing of real modules: speed, scaling, memory.

    MSA_SHARED=… python benchmarks/parse.py [NAME]

CPU seconds, the best of several runs. `check` includes the verifier, as `msa.parse`
does by default; `peak` is the largest traced allocation while reading, as a multiple
of the text's size; `xla` is the ratio of reading (without the verifier) to XLA's C++
reader in the same run, where jaxlib is installed. Scaling repeats the largest
module's fusions under new names.
"""

from __future__ import annotations

import gzip
import importlib
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msa
from msa.hlo.parser import parse

ROUNDS = 5


def best(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Least CPU seconds of several runs."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def modules(wanted: str) -> list[Path]:
    """The corpus, or the bundled examples without one; largest last."""
    shared = os.environ.get("MSA_SHARED")
    folder = Path(__file__).parents[1] / "tests" / "data"
    if shared:
        folder = Path(shared) / "corpus"
    found = [p for p in folder.glob("*.hlo*") if wanted in p.name]
    return sorted(found, key=lambda p: p.stat().st_size)[-8:]


def peak_ratio(text: str) -> float:
    """Largest traced allocation while reading, over the size of the text."""
    parse(text, verify=False)
    tracemalloc.start()
    parse(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / len(text)


def xla_reader() -> Callable[[str], object] | None:
    """XLA's own reader of HLO text, if there is one."""
    try:
        return importlib.import_module("jaxlib._hlo").hlo_module_from_text  # type: ignore[no-any-return]
    except ImportError:
        return None


def repeated(text: str, times: int) -> str:
    """A module with `times` copies of each computation that is not the entry."""
    head, _, entry = text.rpartition("\nENTRY ")
    start = head.index("\n%")
    bodies = head[start:]
    copies = [bodies.replace("\n%", f"\n%copy{i}_") for i in range(times)]
    # The copies call the originals, which come first.
    return f"{head}\n{''.join(copies)}\nENTRY {entry}"


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    xla = xla_reader()
    print(f"{'module':36s} {'MB':>6s} {'instr':>6s} {'read/s':>8s} {'check/s':>8s} "
          f"{'MB/s':>6s} {'print/s':>8s} {'peak':>5s} {'xla':>5s}")  # fmt: skip
    total = count = 0.0
    for path in modules(wanted):
        text = read_text(path)
        module = msa.parse(text)
        n = module.instruction_count
        plain = best(lambda text=text: parse(text, verify=False))
        checked = best(lambda text=text: parse(text))
        printed = best(module.to_text, 2)
        ratio = plain / best(lambda text=text: xla(text), 3) if xla else float("nan")
        total += checked
        count += n
        print(
            f"{path.name:36s} {len(text) / 1e6:6.2f} {n:6d} {n / plain:8.0f} "
            f"{n / checked:8.0f} {len(text) / checked / 1e6:6.2f} {n / printed:8.0f} "
            f"{peak_ratio(text):5.1f} {ratio:5.1f}"
        )
    print(f"together: {count / total:,.0f} instructions/s read and checked")
    text = read_text(modules(wanted)[-1])
    small = best(lambda: parse(text, verify=False), 3)
    large_text = repeated(text, 3)
    large = best(lambda: parse(large_text, verify=False), 3)
    growth = len(large_text) / len(text)
    print(
        f"scaling: {growth:.2f} times the text takes {large / small:.2f} times as long"
    )


if __name__ == "__main__":
    main()
