"""Where values inside a fused kernel live: registers, shared memory, or scratch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msa.errors import OptionsError, shown
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import is_elementwise
from msa.passes.binding.domains import Kind

_LEAST: Final = {
    "registers_per_thread": 0,
    "register_reserve": 0,
    "shared_bytes": 0,
    "shared_alignment": 1,
}
_VIEWS: Final = frozenset({"bitcast", "broadcast", "get-tuple-element", "reshape"})


@dataclass(frozen=True, slots=True)
class KernelBudget:
    """Memory of a kernel.

    Attributes:
        registers_per_thread: 4-byte registers.
        register_reserve: of them for addresses and the like.
        shared_bytes: per block.
        shared_alignment: bytes.
        bank_padding: add an element to rows of a multiple of 128 bytes, so that a
            column does not fall into one bank.
    """

    registers_per_thread: int = 255
    register_reserve: int = 32
    shared_bytes: int = 48 << 10
    shared_alignment: int = 16
    bank_padding: bool = False

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise OptionsError(
                    f"{name} is a whole number, at least {least}, not {shown(value)}"
                )

    @property
    def register_bytes(self) -> int:
        """Bytes of fused values that a thread can hold."""
        return 4 * (self.registers_per_thread - self.register_reserve)


@dataclass(frozen=True, slots=True)
class KernelPlace:
    """Where a fused value lives, and why.

    Attributes:
        kind: register, shared or (scratch in) main memory.
        reason: `fused-register`, `fused-shared` or `spill`.
        note: in words.
        offset: in shared memory, or -1.
    """

    kind: Kind
    reason: str
    note: str
    offset: int = -1


def bind_kernel(
    body: Computation, budget: KernelBudget
) -> dict[Instruction, KernelPlace]:
    """Places of everything between a fused body's parameters and its root.

    Values read once, element by element, stay in registers while a thread can hold
    them; values that other threads read go to shared memory by lifetime, and what
    does not fit spills. A value counts with all its bytes in shared memory and with
    one element in registers. Linear, but for the overflow of registers: one scan of
    what is live for each value moved, and of shared memory: one packing for each value
    spilled.
    """
    order = body.post_order()
    step = {x: t for t, x in enumerate(order)}
    inner = [x for x in order if x.opcode != "parameter" and not x.is_root and x.users]
    last = {x: max(step[u] for u in x.users) for x in inner}
    shared: dict[Instruction, str] = {}
    held: dict[Instruction, int] = {}
    live = 0
    ends: dict[int, list[Instruction]] = {}
    for x, end in last.items():
        ends.setdefault(end + 1, []).append(x)
    for x in order:
        for old in ends.get(step[x], ()):
            live -= held.pop(old, 0)
        if x not in last:
            continue
        why = _why_shared(x)
        if why:
            shared[x] = why
            continue
        held[x] = max(4, -(-_bits(x) // 8))
        live += held[x]
        while live > budget.register_bytes:
            far = max(held, key=lambda h: (last[h] - step[h], -step[h]))
            live -= held.pop(far)
            shared[far] = "the registers of a thread are full"
    places = {
        x: KernelPlace(Kind.REGISTER, "fused-register", "read once, element by element")
        for x in inner
        if x not in shared
    }
    return places | _place_shared(shared, step, last, budget)


def _bits(x: Instruction) -> int:
    return max(
        (s.as_array.element_type.bits for _, s in x.shape.leaves() if s.is_array),
        default=0,
    )


def _why_shared(x: Instruction) -> str:
    """Why other threads need a value; empty when only its own does."""
    if len(x.users) > 1:
        return f"read by {len(x.users)} operations"
    (user,) = x.users
    if user.opcode in _VIEWS or user.opcode == "tuple":
        return ""
    if all(is_elementwise(user, k) for k in user.operand_indices(x)):
        return ""
    return f"{user.opcode} reads other elements than its own"


def shared_bytes(x: Instruction, budget: KernelBudget) -> int:
    """Bytes of a value in shared memory, with bank padding if wanted."""
    total = 0
    for _, shape in x.shape.leaves():
        if not shape.is_array:
            continue
        size = shape.byte_size()
        if budget.bank_padding and shape.rank > 1:
            row = shape.dimensions[-1] * shape.element_type.bits // 8
            if row and row % 128 == 0:
                rows = size // row
                size += rows * (shape.element_type.bits // 8)
        total += size
    return total


def _place_shared(
    shared: dict[Instruction, str],
    step: dict[Instruction, int],
    last: dict[Instruction, int],
    budget: KernelBudget,
) -> dict[Instruction, KernelPlace]:
    """Pack by lifetime; the values that would not fit spill, largest first."""
    from msa.heap import Buffer, pack

    places: dict[Instruction, KernelPlace] = {}
    waiting = dict(shared)
    while waiting:
        rows = [
            Buffer(x, step[x], last[x] + 1, shared_bytes(x, budget)) for x in waiting
        ]
        plan = pack(rows, alignment=budget.shared_alignment)
        if plan.height <= budget.shared_bytes:
            for (x, why), offset in zip(waiting.items(), plan.offsets, strict=True):
                places[x] = KernelPlace(Kind.SHARED, "fused-shared", why, offset)
            break
        largest = max(waiting, key=lambda x: (shared_bytes(x, budget), -step[x]))
        del waiting[largest]
        places[largest] = KernelPlace(
            Kind.HBM,
            "spill",
            f"{shared_bytes(largest, budget)} bytes do not fit into "
            f"{budget.shared_bytes} of shared memory",
        )
    return places
