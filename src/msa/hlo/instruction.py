"""Instructions: the nodes of a computation's dataflow graph.

Source: `xla/hlo/ir/hlo_instruction.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msa.errors import HloError

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.metadata import Metadata
    from msa.hlo.shape import Shape

NO_ATTRIBUTES: Final[Mapping[str, Any]] = MappingProxyType({})


class Instruction:
    """One operation of a computation. Compared by identity.

    Attributes:
        name: unique in its computation.
        opcode: the opcode's text name, such as `dynamic-slice`.
        shape: shape of the result.
        operands: ordered, repeats allowed; change with `replace_operand`.
        attributes: immutable mapping from attribute name to parsed value; it may be
            shared by instructions with equal attribute text. Computations, control
            edges, metadata and backend config are kept apart.
        called_computations: in the order stated in `msa.hlo.opcode`
            (`while`: body, condition).
        control_predecessors, control_successors: ordering edges without data.
        metadata_text: text between the braces of `metadata={…}`, or None; parsed
            by `metadata`.
        backend_config: raw text of the value (a JSON dict, or the unescaped
            contents of a string), or None.
        computation: the computation that holds it.
        id: dense number, unique in its module, in order of creation.
        line: line of the text it was read from (1-based), 0 if built.

    Invariant: `b in a.operands` if and only if `a in b.users`.

    >>> import msa
    >>> root = msa.parse("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }").entry.root
    >>> root.name, root.opcode, str(root.shape), [x.name for x in root.operands]
    ('n', 'negate', 'f32[4]{0}', ['p'])
    """

    __slots__ = (
        "_control_successors",
        "_users",
        "attributes",
        "backend_config",
        "called_computations",
        "computation",
        "control_predecessors",
        "id",
        "line",
        "metadata_text",
        "name",
        "opcode",
        "operands",
        "shape",
    )

    def __init__(
        self,
        name: str,
        opcode: str,
        shape: Shape,
        operands: tuple[Instruction, ...] = (),
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
        called_computations: tuple[Computation, ...] = (),
        control_predecessors: tuple[Instruction, ...] = (),
        metadata_text: str | None = None,
        backend_config: str | None = None,
    ) -> None:
        self.name = name
        self.opcode = opcode
        self.shape = shape
        self.operands = operands
        self.attributes = attributes
        self.called_computations = called_computations
        self.control_predecessors: tuple[Instruction, ...] = ()
        self._control_successors: dict[Instruction, None] | None = None
        self.metadata_text = metadata_text
        self.backend_config = backend_config
        self.computation: Computation = None  # type: ignore[assignment]  # set by add
        self.id = -1
        self.line = 0
        self._users: dict[Instruction, None] = {}
        for operand in operands:
            operand._users[self] = None
        if control_predecessors:
            self._set_control_predecessors(control_predecessors)

    # -- reading -------------------------------------------------------------

    @property
    def users(self) -> tuple[Instruction, ...]:
        """Distinct instructions that read this one, in order of first use."""
        return tuple(self._users)

    @property
    def control_successors(self) -> tuple[Instruction, ...]:
        """Instructions that must run after this one, in order of addition."""
        return tuple(self._control_successors or ())

    @property
    def user_count(self) -> int:
        """Number of distinct users."""
        return len(self._users)

    @property
    def is_root(self) -> bool:
        """Whether this is the result of its computation."""
        return self.computation.root is self

    @property
    def is_dead(self) -> bool:
        """Whether nothing uses it and it is not the root."""
        return not self._users and self.computation.root is not self

    def operand_indices(self, operand: Instruction) -> tuple[int, ...]:
        """All operand numbers at which `operand` is read, ascending."""
        return tuple(i for i, x in enumerate(self.operands) if x is operand)

    @property
    def metadata(self) -> Metadata:
        """Parsed metadata (empty when there is none)."""
        from msa.hlo.metadata import parse_metadata

        return parse_metadata(self.metadata_text)

    @property
    def parameter_number(self) -> int:
        """Number of a parameter."""
        return int(self.attributes["parameter_number"])

    @property
    def tuple_index(self) -> int:
        """Element selected by a get-tuple-element."""
        return int(self.attributes["index"])

    @property
    def fused_computation(self) -> Computation:
        """Body of a fusion."""
        return self.called_computations[0]

    @property
    def while_body(self) -> Computation:
        """Body of a while loop."""
        return self.called_computations[0]

    @property
    def while_condition(self) -> Computation:
        """Condition of a while loop."""
        return self.called_computations[1]

    # -- changing ------------------------------------------------------------

    def replace_operand(self, number: int, new: Instruction) -> None:
        """Read `new` as operand `number`; user lists follow."""
        old = self.operands[number]
        if old is new:
            return
        self.operands = (*self.operands[:number], new, *self.operands[number + 1 :])
        if old not in self.operands:
            del old._users[self]
        new._users[self] = None

    def set_operands(self, operands: tuple[Instruction, ...]) -> None:
        """Replace all operands at once; user lists follow."""
        for old in set(self.operands):
            del old._users[self]
        self.operands = operands
        for operand in operands:
            operand._users[self] = None

    def append_operand(self, operand: Instruction) -> None:
        """Add one operand at the end."""
        self.operands = (*self.operands, operand)
        operand._users[self] = None

    def replace_all_uses_with(self, new: Instruction) -> None:
        """Make every user (and the root) use `new` instead."""
        if new is self:
            return
        for user in self.users:
            if user is new:
                continue
            del self._users[user]
            user.operands = tuple(new if x is self else x for x in user.operands)
            new._users[user] = None
        if self.computation.root is self:
            self.computation.root = new

    def add_control_successor(self, successor: Instruction) -> None:
        """Require that this runs before `successor`."""
        if self._control_successors is None:
            self._control_successors = {}
        if successor not in self._control_successors:
            self._control_successors[successor] = None
            successor.control_predecessors = (*successor.control_predecessors, self)

    def _set_control_predecessors(self, predecessors: tuple[Instruction, ...]) -> None:
        self.control_predecessors = tuple(dict.fromkeys(predecessors))
        for predecessor in self.control_predecessors:
            if predecessor._control_successors is None:
                predecessor._control_successors = {}
            predecessor._control_successors[self] = None

    def runs_before(self, successor: Instruction) -> bool:
        """Whether a control edge from this to `successor` exists; O(1)."""
        return successor in (self._control_successors or ())

    def drop_control_dependencies(self) -> None:
        """Remove all ordering edges at this instruction."""
        for p in self.control_predecessors:
            if p._control_successors is not None:
                p._control_successors.pop(self, None)
        for s in self.control_successors:
            s.control_predecessors = tuple(
                x for x in s.control_predecessors if x is not self
            )
        self.control_predecessors = ()
        self._control_successors = None

    def detach(self) -> None:
        """Cut all edges to operands before removal; it must have no users."""
        if self._users:
            raise HloError(f"{self.name} still has users and cannot be removed")
        for operand in set(self.operands):
            del operand._users[self]
        self.operands = ()
        self.drop_control_dependencies()

    def __reduce__(self) -> tuple[Any, ...]:
        from msa.hlo.pickling import reduce_instruction

        return reduce_instruction(self)

    def __str__(self) -> str:
        from msa.hlo.printer import print_instruction

        return print_instruction(self)

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name}>"
