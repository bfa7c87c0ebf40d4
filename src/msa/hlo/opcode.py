"""The opcode table: operand counts, attributes, callees and behaviour.

One row per opcode; more opcodes are more rows. Attributes are listed in the order
in which they are printed, `name:kind`, with `!` after the name when the text must
state it. Kinds are those of `msa.hlo.parser.values`.

Source: `xla/hlo/ir/hlo_opcode.h`, `xla/hlo/ir/hlo_instruction.cc`,
`xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msa.hlo.replica_groups import ListGroups
from msa.hlo.window import Window

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction

RUNNING_OPCODES: Final = frozenset({"call", "conditional", "while"})
"""Opcodes that run other computations in their place, and move nothing themselves."""

CONTROL_FLOW_OPCODES: Final = RUNNING_OPCODES | {
    "async-start",
    "async-update",
    "async-done",
}
"""Opcodes whose called computations run as part of the schedule."""

VARIADIC: Final = -1
"""Operand count of an opcode that takes any number of operands."""


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """One attribute of an opcode: how its value is written, and whether it must be."""

    name: str
    kind: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """What is true of every instruction of one opcode.

    Attributes:
        name: the opcode as written.
        arity: operand count, or `VARIADIC`.
        attributes: accepted attributes by name, in printed order.
        called: names of the attributes that name computations, in the order of
            `Instruction.called_computations`.
        defaults: values that an absent attribute stands for; they are left out of
            an instruction's attributes, except those in `always_printed`.
        always_printed: attributes that are stored and printed even at their default.
        shape_required: text must state the result shape.
        elementwise: each output element depends on the same element of operands.
        commutative: the two operands may be swapped.

    >>> OPCODES["compare"].arity, OPCODES["compare"].attributes["direction"].required
    (2, True)
    """

    name: str
    arity: int
    attributes: Mapping[str, AttributeSpec]
    called: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    always_printed: frozenset[str] = frozenset()
    shape_required: bool = False
    elementwise: bool = False
    commutative: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the attributes that text must state."""
        return tuple(a.name for a in self.attributes.values() if a.required)


def _words(text: str) -> list[str]:
    return text.split()


COMMON_ATTRIBUTES: Final = MappingProxyType(
    {
        name: AttributeSpec(name, kind)
        for name, kind in (
            ("sharding", "sharding"),
            ("frontend_attributes", "frontend"),
            ("control-predecessors", "instructions"),
            ("statistics", "statistics"),
            ("origin", "origin"),
            ("metadata", "metadata"),
            ("backend_config", "config"),
            ("parameter_replication", "bools"),
        )
    }
)
"""Attributes that every opcode accepts."""

_RESULT_ACCURACY_OPCODES: Final = (
    "acos acosh asin asinh atanh cbrt cosine cosh erf exponential "
    "exponential-minus-one log log-plus-one logistic rsqrt sine sinh sqrt tan tanh"
)
_ELEMENTWISE_UNARY: Final = (
    "abs ceil convert bitcast-convert copy count-leading-zeros floor imag is-finite "
    "negate not popcnt real round-nearest-afz round-nearest-even sign "
    + _RESULT_ACCURACY_OPCODES
)
_COMMUTATIVE: Final = "add multiply mulhi maximum minimum and or xor"
_ELEMENTWISE_BINARY: Final = (
    "atan2 complex divide power remainder shift-left shift-right-arithmetic "
    "shift-right-logical stochastic-convert subtract " + _COMMUTATIVE
)
_ELEMENTWISE: Final = frozenset(
    _words(
        f"{_ELEMENTWISE_UNARY} {_ELEMENTWISE_BINARY} compare reduce-precision select clamp"
        " constant rng"
    )
)

SHAPE_REQUIRED: Final = frozenset(
    _words(
        "async-start async-update async-done all-gather all-gather-start all-gather-done "
        "all-reduce all-reduce-start all-reduce-done all-to-all collective-broadcast "
        "collective-permute collective-permute-start collective-permute-done copy-done "
        "copy-start dynamic-reshape dynamic-slice dynamic-update-slice ragged-all-to-all "
        "recv recv-done reduce-scatter send send-done slice bitcast bitcast-convert "
        "constant convert custom-call fusion infeed iota outfeed parameter "
        "reduce-precision reshape rng rng-bit-generator rng-get-and-update-state "
        "stochastic-convert"
    )
)
"""Opcodes whose result shape cannot be left out of text."""

_GROUPS = "channel_id:int replica_groups:groups"
_COLLECTIVE = f"{_GROUPS} constrain_layout:bool"
_DOT = (
    "lhs_batch_dims:ints lhs_contracting_dims:ints rhs_batch_dims:ints "
    "rhs_contracting_dims:ints operand_precision:precisions algorithm:word "
    "sparsity:raw sparsity_config:raw"
)
_WINDOWED = (
    "window:window dim_labels:dim_labels feature_group_count:int batch_group_count:int"
)
_ALL_REDUCE = f"{_COLLECTIVE} use_global_device_ids:bool mode:ignored to_apply!:calls"
_ALL_GATHER = f"{_COLLECTIVE} dimensions!:ints use_global_device_ids:bool"
_PERMUTE = (
    "channel_id:int source_target_pairs!:pairs slice_sizes:int_lists "
    "constrain_layout:ignored"
)
_CHANNEL = "channel_id:int is_host_transfer:bool"

# name, operand count, attributes
_ROWS: Final = f"""
bitcast 1
opt-barrier 1
tuple *
after-all *
add-dependency 2
partition-id 0
replica-id 0
copy-done 1
all-gather-done 1
all-reduce-done 1
collective-permute-done 1
dynamic-update-slice *
dynamic-reshape *
parameter 0 parameter_number:int
constant 0 literal:literal
iota 0 iota_dimension!:int
get-tuple-element 1 index!:int
compare 2 direction!:direction type:word
broadcast 1 dimensions:ints
transpose 1 dimensions!:ints
reverse 1 dimensions!:ints
reshape 1 inferred_dimension:int
concatenate * dimensions!:ints
slice 1 slice!:ranges
dynamic-slice * dynamic_slice_sizes!:ints
pad 2 padding!:padding
reduce-precision 1 exponent_bits!:int mantissa_bits!:int
reduce * dimensions!:ints to_apply!:calls
reduce-window * window:window to_apply!:calls
select-and-scatter 3 window:window select!:calls scatter!:calls
map * dimensions:ints to_apply!:calls
scan * dimensions!:ints num_carries!:int is_reverse:bool is_associative:bool to_apply!:calls
sort * dimensions!:ints is_stable:bool to_apply!:calls
topk 1 k!:int largest:bool is_stable:bool
dot 2 {_DOT}
ragged-dot 3 {_DOT} lhs_ragged_dims:ints rhs_group_dims:ints
scaled-dot 4 {_DOT}
convolution 2 {_WINDOWED} convolution_kind:word operand_precision:precisions algorithm:word sparsity_config:raw
fft 1 fft_type!:fft_type fft_length!:ints
cholesky 1 lower:bool
triangular-solve 2 left_side:bool lower:bool unit_diagonal:bool transpose_a:word
batch-norm-training 3 epsilon!:float feature_index!:int
batch-norm-inference 5 epsilon!:float feature_index!:int
batch-norm-grad 5 epsilon!:float feature_index!:int
gather 2 offset_dims!:ints collapsed_slice_dims!:ints start_index_map!:ints operand_batching_dims:ints start_indices_batching_dims:ints index_vector_dim!:int slice_sizes!:ints indices_are_sorted:bool
scatter * update_window_dims!:ints inserted_window_dims!:ints scatter_dims_to_operand_dims!:ints input_batching_dims:ints scatter_indices_batching_dims:ints index_vector_dim!:int indices_are_sorted:bool unique_indices:bool to_apply!:calls
get-dimension-size 1 dimensions!:ints
set-dimension-size 2 dimensions!:ints
rng * distribution!:distribution
rng-bit-generator 1 algorithm!:rng_algorithm
rng-get-and-update-state 0 delta!:int
fusion * kind!:fusion_kind output_to_operand_aliasing:aliasing calls!:calls
call * to_apply!:calls is_composite:bool output_to_operand_aliasing:aliasing
while 1 condition!:calls body!:calls
conditional * true_computation:calls false_computation:calls branch_computations:calls_list
custom-call * {_WINDOWED} padding_type:word operand_precision:precisions custom_call_target!:string operand_layout_constraints:shapes custom_call_has_side_effect:bool literal:typed_literal output_to_operand_aliasing:aliasing schedule:word api_version:word to_apply:calls called_computations:calls_list
all-reduce * {_ALL_REDUCE}
all-reduce-start * {_ALL_REDUCE}
reduce-scatter * {_COLLECTIVE} use_global_device_ids:bool dimensions!:ints mode:ignored to_apply!:calls
all-gather * {_ALL_GATHER}
all-gather-start * {_ALL_GATHER}
all-to-all * {_COLLECTIVE} dimensions:ints
ragged-all-to-all * {_GROUPS} dimensions:ints
collective-broadcast * {_GROUPS} has_dynamic_root:bool
collective-permute * {_PERMUTE}
collective-permute-start * {_PERMUTE}
copy-start 1 cross_program_prefetch_index:int
async-start * output_to_operand_aliasing:aliasing async_execution_thread:string calls!:calls
async-update * calls:calls async_execution_thread:string
async-done 1 calls:calls async_execution_thread:string
send 2 {_CHANNEL}
recv 1 {_CHANNEL}
send-done 1 {_CHANNEL}
recv-done 1 {_CHANNEL}
infeed 1 infeed_config:string
outfeed 2 outfeed_shape:shape outfeed_config:string
domain 1 domain!:domain
"""

ONE_DIMENSION: Final = frozenset(
    _words(
        "concatenate get-dimension-size set-dimension-size sort scan reduce-scatter "
        "all-gather all-gather-start"
    )
)
"""Opcodes whose `dimensions` has exactly one element."""

_NONE_OF: Final[Mapping[str, Any]] = MappingProxyType({})
_DOT_DEFAULTS: Final[Mapping[str, Any]] = {
    "lhs_batch_dims": (),
    "rhs_batch_dims": (),
    "lhs_contracting_dims": (),
    "rhs_contracting_dims": (),
    "algorithm": "dot_unset",
}
_GROUP_COUNT_DEFAULTS: Final[Mapping[str, Any]] = {
    "feature_group_count": 1,
    "batch_group_count": 1,
}
_NO_GROUPS: Final[Mapping[str, Any]] = {"replica_groups": ListGroups()}
_COLLECTIVE_DEFAULTS: Final[Mapping[str, Any]] = {
    **_NO_GROUPS,
    "constrain_layout": False,
    "use_global_device_ids": False,
}
_CHANNEL_DEFAULTS: Final[Mapping[str, Any]] = {"is_host_transfer": False}
_NO_WINDOW: Final = Window()
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "reduce-window": {"window": _NO_WINDOW},
    "select-and-scatter": {"window": _NO_WINDOW},
    "broadcast": {"dimensions": ()},
    "reshape": {"inferred_dimension": -1},
    "scan": {"is_reverse": False, "is_associative": False},
    "sort": {"is_stable": False},
    "topk": {"largest": True, "is_stable": True},
    "dot": _DOT_DEFAULTS,
    "ragged-dot": _DOT_DEFAULTS,
    "scaled-dot": _DOT_DEFAULTS,
    "convolution": {
        "window": _NO_WINDOW,
        **_GROUP_COUNT_DEFAULTS,
        "algorithm": "dot_unset",
        "convolution_kind": "unset",
    },
    "cholesky": {"lower": False},
    "triangular-solve": {
        "left_side": False,
        "lower": False,
        "unit_diagonal": False,
    },
    "gather": {
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "indices_are_sorted": False,
    },
    "scatter": {
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "indices_are_sorted": False,
        "unique_indices": False,
    },
    "fusion": {"output_to_operand_aliasing": ()},
    "call": {"is_composite": False, "output_to_operand_aliasing": ()},
    "custom-call": {
        **_GROUP_COUNT_DEFAULTS,
        "custom_call_has_side_effect": False,
        "output_to_operand_aliasing": (),
        "schedule": "SCHEDULE_NONE",
        "api_version": "API_VERSION_ORIGINAL",
        "padding_type": "PADDING_INVALID",
    },
    "all-reduce": _COLLECTIVE_DEFAULTS,
    "all-reduce-start": _COLLECTIVE_DEFAULTS,
    "reduce-scatter": _COLLECTIVE_DEFAULTS,
    "all-gather": _COLLECTIVE_DEFAULTS,
    "all-gather-start": _COLLECTIVE_DEFAULTS,
    "all-to-all": {**_NO_GROUPS, "constrain_layout": False},
    "ragged-all-to-all": _NO_GROUPS,
    "collective-broadcast": {**_NO_GROUPS, "has_dynamic_root": False},
    "async-start": {
        "async_execution_thread": "main",
        "output_to_operand_aliasing": (),
    },
    "async-update": {"async_execution_thread": "main"},
    "async-done": {"async_execution_thread": "main"},
    "send": _CHANNEL_DEFAULTS,
    "recv": _CHANNEL_DEFAULTS,
    "send-done": _CHANNEL_DEFAULTS,
    "recv-done": _CHANNEL_DEFAULTS,
    "infeed": {"infeed_config": ""},
    "outfeed": {"outfeed_config": ""},
}
_CONTRACTING: Final = frozenset({"lhs_contracting_dims", "rhs_contracting_dims"})
_GROUPED: Final = frozenset({"replica_groups"})
_ALWAYS_PRINTED: Final[Mapping[str, frozenset[str]]] = {
    "broadcast": frozenset({"dimensions"}),
    "topk": frozenset({"largest"}),
    "dot": _CONTRACTING,
    "ragged-dot": _CONTRACTING,
    "scaled-dot": _CONTRACTING,
    "scan": frozenset({"is_associative"}),
    "all-reduce": _GROUPED,
    "all-reduce-start": _GROUPED,
    "reduce-scatter": _GROUPED,
    "all-gather": _GROUPED,
    "all-gather-start": _GROUPED,
    "all-to-all": _GROUPED,
    "ragged-all-to-all": _GROUPED,
    "collective-broadcast": _GROUPED,
}
_CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "while": ("body", "condition"),
    "select-and-scatter": ("select", "scatter"),
    "conditional": ("true_computation", "false_computation", "branch_computations"),
    "custom-call": ("called_computations", "to_apply"),
}


def _row(name: str, count: str, attributes: Iterable[str]) -> OpcodeInfo:
    specs: dict[str, AttributeSpec] = {}
    called = []
    for item in attributes:
        key, kind = item.split(":")
        required = key.endswith("!")
        key = key.rstrip("!")
        specs[key] = AttributeSpec(key, kind, required)
        if kind.startswith("calls"):
            called.append(key)
    return OpcodeInfo(
        name,
        VARIADIC if count == "*" else int(count),
        MappingProxyType(specs),
        _CALLED.get(name, tuple(called)),
        MappingProxyType(dict(_DEFAULTS.get(name, _NONE_OF))),
        _ALWAYS_PRINTED.get(name, frozenset()),
        name in SHAPE_REQUIRED,
        name in _ELEMENTWISE,
        name in _COMMUTATIVE.split(),
    )


def _table() -> dict[str, OpcodeInfo]:
    rows = [line.split() for line in _ROWS.strip().splitlines()]
    known = {row[0] for row in rows}
    for name in _ELEMENTWISE_UNARY.split():
        if name not in known:
            accurate = name in _RESULT_ACCURACY_OPCODES.split()
            rows.append([name, "1", *(["result_accuracy:accuracy"] * accurate)])
    rows.extend([name, "2"] for name in _ELEMENTWISE_BINARY.split())
    rows.extend((["select", "3"], ["clamp", "3"]))
    return {row[0]: _row(row[0], row[1], row[2:]) for row in rows}


OPCODES: Final[Mapping[str, OpcodeInfo]] = MappingProxyType(_table())
"""Every opcode by name."""

NATIVE_ASYNC_STARTS: Final = frozenset(
    {
        "copy-start",
        "all-gather-start",
        "all-reduce-start",
        "collective-permute-start",
        "send",
        "recv",
    }
)
"""Starts that are opcodes of their own and wrap no computation."""

NATIVE_ASYNC_DONES: Final = frozenset(
    {
        "copy-done",
        "all-gather-done",
        "all-reduce-done",
        "collective-permute-done",
        "send-done",
        "recv-done",
    }
)
"""Counterparts of `NATIVE_ASYNC_STARTS`."""

ASYNC_STARTS: Final = NATIVE_ASYNC_STARTS | {"async-start"}
"""Opcodes that begin an asynchronous operation."""

ASYNC_DONES: Final = NATIVE_ASYNC_DONES | {"async-done"}
"""Opcodes that end an asynchronous operation."""

_SIDE_EFFECTS: Final = frozenset(
    _words(
        "send send-done recv recv-done rng rng-get-and-update-state infeed outfeed "
        "all-reduce-start all-reduce-done all-gather-start all-gather-done "
        "collective-broadcast collective-permute-start collective-permute-done"
    )
)
_CONSTRAINED: Final = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}
)
_CHANNELED: Final = _CONSTRAINED | {"collective-permute"}


def has_side_effect(
    instruction: Instruction, *, recursive: bool = True, channel_sensitive: bool = False
) -> bool:
    """Whether an instruction does more than compute its result.

    With `recursive`, the computations that it calls count too (each is visited once).
    With `channel_sensitive`, collectives with a channel id count.
    """
    if _direct_side_effect(instruction, channel_sensitive):
        return True
    if not recursive or not instruction.called_computations:
        return False
    seen = set(instruction.called_computations)
    work = list(seen)
    while work:
        for inner in work.pop().instructions:
            if _direct_side_effect(inner, channel_sensitive):
                return True
            for callee in inner.called_computations:
                if callee not in seen:
                    seen.add(callee)
                    work.append(callee)
    return False


def _direct_side_effect(instruction: Instruction, channel_sensitive: bool) -> bool:
    opcode = instruction.opcode
    if opcode in _SIDE_EFFECTS:
        return True
    attributes = instruction.attributes
    if opcode == "custom-call":
        return bool(attributes.get("custom_call_has_side_effect", False))
    if opcode in _CONSTRAINED and attributes.get("constrain_layout", False):
        return True
    return opcode in _CHANNELED and channel_sensitive and "channel_id" in attributes


def is_elementwise(instruction: Instruction, operand: int | None = None) -> bool:
    """Whether each result element depends only on the same element of operands.

    Args:
        instruction: the instruction asked about.
        operand: ask about one operand only; None asks about all of them.

    A fusion is elementwise on an operand when every instruction reached from the
    fused parameter is; without an operand, when all its instructions are.
    Linear in the size of the fused computations.
    """
    opcode = instruction.opcode
    if opcode == "fusion":
        return _is_fusion_elementwise(instruction, operand)
    if opcode == "map":
        dimensions = instruction.attributes.get("dimensions", ())
        rank = instruction.shape.rank
        return not dimensions or dimensions == tuple(range(rank))
    if opcode == "bitcast-convert":
        source = instruction.operands[0].shape
        return source.element_type.bits == instruction.shape.element_type.bits
    if opcode == "dynamic-update-slice":
        return operand == 0
    info = OPCODES.get(opcode)
    return info is not None and info.elementwise


def _is_fusion_elementwise(fusion: Instruction, operand: int | None) -> bool:
    # An explicit stack of (instruction, operand number) questions: fusions nest.
    work: list[tuple[Instruction, int | None]] = [(fusion, operand)]
    asked = set(work)
    while work:
        instruction, number = work.pop()
        if instruction.opcode != "fusion":
            if not is_elementwise(instruction, number):
                return False
            continue
        body = instruction.fused_computation
        if number is None:
            found: list[tuple[Instruction, int | None]] = [
                (x, None) for x in body.instructions if x.opcode != "parameter"
            ]
        else:
            found = _reached_uses(body.parameters[number])
        for question in found:
            if question not in asked:
                asked.add(question)
                work.append(question)
    return True


def _reached_uses(parameter: Instruction) -> list[tuple[Instruction, int | None]]:
    reached = {parameter}
    queue = [parameter]
    uses: list[tuple[Instruction, int | None]] = []
    for value in queue:
        for user in value.users:
            uses.extend((user, i) for i in user.operand_indices(value))
            if user not in reached:
                reached.add(user)
                queue.append(user)
    return uses
