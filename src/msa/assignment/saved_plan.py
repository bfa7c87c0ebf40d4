"""Plans read back from their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from msa.assignment.plan_copies import PlanCopy
from msa.assignment.plan_decisions import PlanDecision
from msa.assignment.plan_estimate import Estimate
from msa.errors import FileFormatError, TargetError, UnitError
from msa.files import write_text
from msa.hlo.module import Module
from msa.target import Target

SCHEMA: Final = "msa.assignment/2"

Chunks = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """Everything that was decided, without the modules.

    Attributes:
        module: name of the planned module.
        target: the machine.
        strategy: how it was planned.
        estimate: modelled times, seconds.
        alternate_peak_bytes: highest address used in fast memory.
        chunks, scoped_chunks: `name{index}`, or the name of an instruction with
            scratch → offset and size in bytes.
        copies, decisions: as of `msa.Assignment`.
        allocations: plain rows.
        schedule: instruction names of the planned module's flattened schedule.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e { p = f32[1024]{0} parameter(0) n = f32[1024]{0} negate(p)
    ...           ROOT a = f32[1024]{0} abs(n) }''')
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> saved = SavedPlan.from_json(plan.to_json())
    >>> saved.chunks == plan.chunks, saved.to_json() == plan.to_json()
    (True, True)
    >>> saved.verify(plan.original, plan.module)
    """

    module: str
    target: Target
    strategy: str
    estimate: Estimate
    alternate_peak_bytes: int
    chunks: Chunks
    scoped_chunks: Chunks
    copies: tuple[PlanCopy, ...]
    allocations: tuple[Mapping[str, Any], ...]
    decisions: tuple[PlanDecision, ...]
    schedule: tuple[str, ...]

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON; also written to `path` if given. Equal plans give equal text.

        Raises:
            FileFormatError: `path` cannot be written.
        """
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "module": self.module,
            "target": self.target.to_dict(),
            "strategy": self.strategy,
            "estimate": {**asdict(self.estimate), "speedup": self.estimate.speedup},
            "alternate_peak_bytes": self.alternate_peak_bytes,
            "chunks": {name: list(chunk) for name, chunk in self.chunks.items()},
            "scoped_chunks": {
                n: list(chunk) for n, chunk in self.scoped_chunks.items()
            },
            "copies": [asdict(copy) for copy in self.copies],
            "allocations": [dict(row) for row in self.allocations],
            "decisions": [asdict(decision) for decision in self.decisions],
            "schedule": list(self.schedule),
        }
        return write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", path)

    @staticmethod
    def from_json(text: str) -> SavedPlan:
        """Read JSON that `msa.Assignment.to_json` or `to_json` wrote.

        Raises:
            FileFormatError: the text is not such a plan, or of another schema.
        """
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise FileFormatError(
                    f"a plan of schema {data['schema']!r}, not {SCHEMA!r}",
                    hint="write it again with this version",
                )
            estimate = {k: float(v) for k, v in data["estimate"].items()}
            estimate.pop("speedup", None)
            return SavedPlan(
                str(data["module"]),
                Target.from_dict(data["target"]),
                str(data["strategy"]),
                Estimate(**estimate),
                int(data["alternate_peak_bytes"]),
                _chunks(data["chunks"]),
                _chunks(data["scoped_chunks"]),
                tuple(PlanCopy(**row) for row in data["copies"]),
                tuple(dict(row) for row in data["allocations"]),
                tuple(PlanDecision.from_dict(row) for row in data["decisions"]),
                tuple(map(str, data["schedule"])),
            )
        except FileFormatError:
            raise
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            RecursionError,
            TargetError,
            UnitError,
        ) as error:
            raise FileFormatError(
                f"not a plan: {error!r}", hint="plan.to_json(path) writes one"
            ) from None

    @staticmethod
    def load(path: str | Path) -> SavedPlan:
        """Read a file; see `from_json`."""
        try:
            return SavedPlan.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise FileFormatError(
                f"cannot be read: {error}", where=str(path)
            ) from error

    def verify(self, original: Module, module: Module) -> None:
        """Check the offsets against the modules, as `msa.Assignment.verify` does.

        Raises:
            PlanError: a rule is broken.
        """
        from msa.assignment.verification import verify_plan

        verify_plan(
            original, module, self.chunks, self.target, scoped=self.scoped_chunks
        )


def _chunks(rows: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {str(name): (int(a), int(b)) for name, (a, b) in rows.items()}
