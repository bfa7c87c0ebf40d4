"""Which kind of code computes a product.

Source: `xla/service/cpu/dot_op_emitter.cc` (GetDotImplementationStrategy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Final

from msa.analysis.dot_strategy.arguments import read_product
from msa.errors import OptionsError, UnsupportedError, shown
from msa.heap.whole_number import read_whole
from msa.hlo.arguments import expect
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape

_LIBRARY_TYPES: Final = frozenset({"f16", "f32", "f64", "c64", "c128", "s32"})
_TILED_TYPES: Final = _LIBRARY_TYPES - {"f16", "c64", "c128"}
_BATCH_PARALLEL_ELEMENTS: Final = 32768


class Strategy(StrEnum):
    """Kinds of code for a product.

    >>> [str(s) for s in Strategy if s.needs_row_major]
    ['tiled GEMM', 'library']
    """

    NAIVE = "naive"
    TILED_GEMV = "tiled GEMV"
    TILED_GEMM = "tiled GEMM"
    LIBRARY = "library"

    @property
    def accepts_transposed(self) -> bool:
        """Whether operands may be contracted over the other dimension."""
        return self is not Strategy.TILED_GEMM

    @property
    def needs_row_major(self) -> bool:
        """Whether operands and result must be stored row by row."""
        return self in (Strategy.TILED_GEMM, Strategy.LIBRARY)


@dataclass(frozen=True, slots=True)
class DotConfig:
    """What the code generator may use.

    Attributes:
        multi_thread_eigen: the library runs on many threads, and is then preferred.
        force_llvm_gemm: tile all products that can be.
        allow_runtime_calls: the library may be called at all.
        gemm_tiles: (m, k, n) of tiled products; n counts vectors.

    Raises:
        OptionsError: a field is of another kind, or a tile has no size.

    >>> DotConfig(allow_runtime_calls=False).gemm_tiles
    (11, 9, 1)
    """

    multi_thread_eigen: bool = True
    force_llvm_gemm: bool = False
    allow_runtime_calls: bool = True
    gemm_tiles: tuple[int, int, int] = (11, 9, 1)

    def __post_init__(self) -> None:
        for name in ("multi_thread_eigen", "force_llvm_gemm", "allow_runtime_calls"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise OptionsError(f"{name} is True or False, not {shown(value)}")
        tiles = self.gemm_tiles
        if not isinstance(tiles, tuple) or len(tiles) != 3:
            raise OptionsError(f"gemm_tiles are three numbers, not {shown(tiles)}")
        for size in tiles:
            read_whole(size, "a size of gemm_tiles", at_least=1)


@dataclass(frozen=True, slots=True)
class DotChoice:
    """How a product is computed.

    Attributes:
        strategy: of the product, or of one of its batch.
        rule: number of the rule that chose, 1 to 4 (see `choose_strategy`).
        m, k, n: rows, contracted size and columns of (one of) the products.
        batch: how many products.
        scalar: both sides are scalars: no loops.
        needs_row_major: all of it must be stored row by row.
        parallel_over_batch: tasks are products of the batch, not parts of one.

    >>> DotChoice(Strategy.NAIVE, rule=2, m=2, k=2, n=2).batch
    1
    """

    strategy: Strategy
    rule: int
    m: int
    k: int
    n: int
    batch: int = 1
    scalar: bool = False
    needs_row_major: bool = False
    parallel_over_batch: bool = False


def choose_for(dot: Instruction, config: DotConfig | None = None) -> DotChoice:
    """The choice for a `dot` instruction; see `choose_strategy`.

    Raises:
        HloError: that is no instruction.
        UnsupportedError: the instruction is not a dot, or its operands are sparse.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[16,64] parameter(0)
    ...   b = f32[64,1] parameter(1)
    ...   ROOT d = f32[16,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> str(choose_for(module.entry.root).strategy)
    'tiled GEMV'
    """
    dot = expect(dot, Instruction, where="choose_for", what="an Instruction")
    if dot.opcode != "dot":
        raise UnsupportedError(
            f"{dot.name} is {dot.opcode}, not dot", subject=dot.opcode, where=dot.name
        )
    attributes = dot.attributes
    if "sparsity" in attributes:
        raise UnsupportedError(
            f"an operand of {dot.name} is sparse", subject="dot", where=dot.name
        )
    return choose_strategy(
        dot.operands[0].shape,
        dot.operands[1].shape,
        dot.shape,
        attributes.get("lhs_contracting_dims", ()),
        attributes.get("rhs_contracting_dims", ()),
        config,
        lhs_batch=attributes.get("lhs_batch_dims", ()),
        rhs_batch=attributes.get("rhs_batch_dims", ()),
    )


def choose_strategy(
    lhs: Shape,
    rhs: Shape,
    result: Shape,
    lhs_contracting: Sequence[int],
    rhs_contracting: Sequence[int],
    config: DotConfig | None = None,
    *,
    lhs_batch: Sequence[int] = (),
    rhs_batch: Sequence[int] = (),
) -> DotChoice:
    """The first rule that fits.

    1. A vector as result, of numbers: matrix–vector kernels.
    2. Both sides tiny (a vector, or a matrix with a side of at most 3): plain loops.
    3. Matrices without empty sides of a type that the library knows: tiled loops if
       the library is single-threaded and the product small (or tiling forced), rows
       contracted with columns and the type has tiled code; else the library if it
       may be called.
    4. Plain loops.

    A batch is judged by one of its products; batch dimensions come first.

    Raises:
        HloError: a shape or the configuration is none.
        OptionsError: dimension numbers or sizes do not fit together.
        UnsupportedError: batch dimensions do not come first, a shape is no array, or
            a size is not known.

    >>> from msa.hlo import parse_shape
    >>> a, b, c = (parse_shape(s) for s in ("f32[16,64]", "f32[64,100]", "f32[16,100]"))
    >>> str(choose_strategy(a, b, c, [1], [0]).strategy)
    'library'
    >>> str(choose_strategy(a, b, c, [1], [0], DotConfig(multi_thread_eigen=False)).strategy)
    'tiled GEMM'
    """
    given = DotConfig() if config is None else config
    config = expect(given, DotConfig, where="choose_strategy", what="a DotConfig")
    product = read_product(
        (lhs, rhs, result), (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)
    )
    shapes = product[:3]
    left, right = product.lhs_contracting, product.rhs_contracting
    count = len(product.lhs_batch)
    if not count:
        return _choose(*shapes, left, right, config)
    leading = tuple(range(count))
    if product.lhs_batch != leading or product.rhs_batch != leading:
        raise UnsupportedError(
            "batch dimensions must come first on both sides",
            subject="dot",
            hint="transpose the operands",
        )
    inner = [Shape.array(s.element_type, s.dimensions[count:]) for s in shapes]
    choice = _choose(
        inner[0],
        inner[1],
        inner[2],
        tuple(d - count for d in left),
        tuple(d - count for d in right),
        config,
    )
    large = max(inner[0].element_count, inner[1].element_count)
    return DotChoice(
        choice.strategy,
        choice.rule,
        choice.m,
        choice.k,
        choice.n,
        batch=prod(product.lhs.dimensions[:count]),
        scalar=choice.scalar,
        needs_row_major=True,
        parallel_over_batch=large > _BATCH_PARALLEL_ELEMENTS,
    )


def _choose(
    lhs: Shape,
    rhs: Shape,
    result: Shape,
    lhs_contracting: tuple[int, ...],
    rhs_contracting: tuple[int, ...],
    config: DotConfig,
) -> DotChoice:
    k = prod(lhs.dimensions[d] for d in lhs_contracting)
    m = prod(d for i, d in enumerate(lhs.dimensions) if i not in lhs_contracting)
    n = prod(d for i, d in enumerate(rhs.dimensions) if i not in rhs_contracting)
    strategy, rule = _rule(
        lhs, rhs, result, (lhs_contracting, rhs_contracting), (m, k, n), config
    )
    return DotChoice(
        strategy,
        rule,
        m,
        k,
        n,
        scalar=not lhs.dimensions and not rhs.dimensions,
        needs_row_major=strategy.needs_row_major,
    )


def _rule(
    lhs: Shape,
    rhs: Shape,
    result: Shape,
    contracting: tuple[tuple[int, ...], tuple[int, ...]],
    sizes: tuple[int, int, int],
    config: DotConfig,
) -> tuple[Strategy, int]:
    kind = result.element_type
    numbers = kind.is_floating or kind.is_integral
    if numbers and _is_vector(result):
        return Strategy.TILED_GEMV, 1
    if numbers and _is_tiny(lhs) and _is_tiny(rhs):
        return Strategy.NAIVE, 2
    matrices = lhs.rank == rhs.rank == result.rank == 2
    filled = lhs.element_count and rhs.element_count
    if matrices and filled and kind.name in _LIBRARY_TYPES:
        if _may_tile(kind.name, contracting, sizes, config):
            return Strategy.TILED_GEMM, 3
        if config.allow_runtime_calls:
            return Strategy.LIBRARY, 3
    return Strategy.NAIVE, 4


def _is_vector(shape: Shape) -> bool:
    return shape.rank <= 1 or (shape.rank == 2 and 1 in shape.dimensions)


def _is_tiny(shape: Shape) -> bool:
    return shape.rank <= 1 or (shape.rank == 2 and min(shape.dimensions) <= 3)


def _may_tile(
    kind: str,
    contracting: tuple[tuple[int, ...], tuple[int, ...]],
    sizes: tuple[int, int, int],
    config: DotConfig,
) -> bool:
    m, k, n = sizes
    small = k <= 128 and ((m <= 32 and n <= 128) or (m <= 128 and n <= 32))
    return (
        not config.multi_thread_eigen
        and (config.force_llvm_gemm or small)
        and contracting == ((1,), (0,))
        and kind in _TILED_TYPES
    )
