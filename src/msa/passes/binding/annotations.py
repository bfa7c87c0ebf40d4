"""Custom calls that say which memory their result is meant for.

Source: `xla/service/memory_annotations.h`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from msa.hlo.instruction import Instruction
from msa.passes.binding.domains import Kind, MemoryDomain, Platform
from msa.passes.binding.errors import BindingError

PLACEMENT_TARGET: Final = "annotate_device_placement"
PLACEMENT: Final = "_xla_buffer_placement"

_PLACEMENTS: Final = MappingProxyType(
    {
        "pinned_host": Kind.HOST_PINNED,
        "unpinned_host": Kind.HOST_UNPINNED,
        "device": Kind.HBM,
        "pinned_device": Kind.HBM,
        "vmem": Kind.VMEM,
    }
)
_TARGETS: Final = MappingProxyType(
    {
        "MoveToHost": "pinned_host",
        "MoveToDevice": "device",
        "PinToDevice": "pinned_device",
        "PinToDeviceSram": "vmem",
    }
)
_HOST_SPACES: Final = MappingProxyType({Kind.HOST_PINNED: 5, Kind.HOST_UNPINNED: 6})


def placement_of(x: Instruction) -> str:
    """The memory that a custom call names, such as `pinned_host`, or nothing.

    Raises:
        BindingError: an annotation names no memory, or an unknown one.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY e {
    ...   x = f32[8] parameter(0)
    ...   ROOT y = f32[8] custom-call(x), custom_call_target="PinToDeviceSram"
    ... }''')
    >>> placement_of(module.entry.root)
    'vmem'
    """
    if x.opcode != "custom-call":
        return ""
    target = x.attributes.get("custom_call_target", "")
    if target != PLACEMENT_TARGET:
        return _TARGETS.get(target, "")
    named = dict(x.attributes.get("frontend_attributes") or {}).get(PLACEMENT)
    if named not in _PLACEMENTS:
        what = "no memory" if named is None else f"the unknown memory {named!r}"
        raise BindingError(
            f"{x.name} asks for {what}",
            where=x.name,
            hint=f"{PLACEMENT} is one of {', '.join(_PLACEMENTS)}",
        )
    return str(named)


def placed_domain(x: Instruction, platform: Platform) -> MemoryDomain | None:
    """The platform's memory that an annotation asks for, if `x` is one.

    Raises:
        BindingError: the annotation is not understood, or the platform has no such
            memory.
    """
    placement = placement_of(x)
    if not placement:
        return None
    kind = _PLACEMENTS[placement]
    found = platform.kind(kind) or platform.domains.get(_HOST_SPACES.get(kind, -1))
    if found is None:
        kinds = dict.fromkeys(d.kind.value for d in platform.domains.values())
        raise BindingError(
            f"{x.name} asks for {placement} and the platform {platform.name!r} has "
            f"{', '.join(kinds)}",
            where=x.name,
            hint="take the annotation away, or choose another platform",
        )
    return found
