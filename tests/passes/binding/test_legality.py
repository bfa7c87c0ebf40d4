"""Who may touch which memory (MB-13), annotations (MB-3), numbers and kinds (MB-2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

import msa
from msa.errors import HloError, OptionsError
from msa.passes import bind_memory_spaces, check_binding
from msa.passes.binding import (
    Access,
    BindingError,
    BindingOptions,
    GpuColoring,
    Kind,
    MemoryDomain,
    Platform,
    legality,
    placement_of,
)

A = Access
EVERYTHING = set(A)
DEVICE = EVERYTHING - {A.HOST}
HOST = {A.COPY, A.HOST, A.ARGUMENT}
KERNEL = {A.KERNEL_READ, A.KERNEL_WRITE}

# Written down from what the memories are, not from what the code says.
MATRIX = {
    "tpu": {
        Kind.HBM: DEVICE,
        Kind.VMEM: DEVICE,
        Kind.HOST_PINNED: HOST,
        Kind.HOST_UNPINNED: HOST,
    },
    "gpu": {
        Kind.HBM: DEVICE,
        Kind.COLLECTIVE: DEVICE,
        Kind.TEMP: DEVICE - {A.ARGUMENT},
        Kind.HOST_PINNED: HOST | KERNEL,
        Kind.HOST_UNPINNED: HOST | KERNEL,
        Kind.CONSTANT: {A.KERNEL_READ, A.COPY},
        Kind.SHARED: KERNEL,
        Kind.REGISTER: KERNEL,
    },
    "cpu": {Kind.HBM: EVERYTHING},
}


@pytest.mark.parametrize("platform", MATRIX)
def test_matrix_MB13(platform: str) -> None:
    table = legality(Platform.preset(platform))
    assert {kind: set(row) for kind, row in table.items()} == MATRIX[platform]


BODY = """ENTRY e {
  x = f32[8]{0} parameter(0)
  y = f32[8]{0} negate(x)
  c = f32[8]{0} copy(y)
  ROOT z = f32[8]{0} add(c, y)
}"""


def problems(text: str, value: str, access: Access) -> list[str]:
    """What a hand-made binding breaks if one value lies where one access is refused."""
    module = msa.parse(text)
    binding = bind_memory_spaces(module, "gpu")
    assert check_binding(module, binding) == []
    memory = MemoryDomain(Kind.SHARED, None, 1e9, 1e9, allows=frozenset(A) - {access})
    rows = tuple(
        replace(row, domain=memory) if row.value == value else row
        for row in binding.rows
    )
    return check_binding(module, replace(binding, rows=rows))


@pytest.mark.parametrize(
    ("value", "access", "problem"),
    [
        ("y{}", A.KERNEL_WRITE, "y{}: y cannot write shared memory"),
        ("y{}", A.KERNEL_READ, "y{}: z cannot read shared memory"),
        ("y{}", A.COPY, "y{}: c cannot copy from or to shared memory"),
        ("x{}", A.ARGUMENT, "x{}: shared memory does not hold the argument <0 x>"),
    ],
)
def test_each_access_is_checked_MB13(value: str, access: Access, problem: str) -> None:
    assert problems(BODY, value, access) == [problem]
    other = A.HOST if access is not A.HOST else A.COPY
    assert problems(BODY, value, other) == []


def test_hosts_and_collectives_are_checked_MB13() -> None:
    host = BODY.replace(
        "negate(x)", 'negate(x), frontend_attributes={_xla_compute_type="host"}'
    )
    module = msa.parse(host)
    assert set(bind_memory_spaces(module, "tpu").violations) == {
        "x{}: y runs on the host and cannot touch hbm memory",
        "y{}: y runs on the host and cannot touch hbm memory",
    }
    assert bind_memory_spaces(module, "cpu").violations == ()
    scalars = host.replace("f32[8]{0}", "f32[]")
    assert bind_memory_spaces(msa.parse(scalars), "tpu").violations == ()


REDUCE = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} all-reduce(x), replica_groups={}, to_apply=add
}"""
SYMMETRIC = BindingOptions(coloring=GpuColoring(user_buffers=True))


def test_collectives_on_ordinary_buffers_MB13() -> None:
    module = msa.parse(REDUCE)
    plain = bind_memory_spaces(module, "gpu")
    assert check_binding(module, plain) == []
    assert check_binding(module, plain, SYMMETRIC) == [
        "x{}: r needs collective memory, not hbm",
        "r{}: r needs collective memory, not hbm",
    ]
    bound = bind_memory_spaces(module, "gpu", SYMMETRIC)
    assert bound.violations == ()
    host = module_with(REDUCE, "x = f32[8]{0}", "x = f32[8]{0:S(5)}")
    assert bind_memory_spaces(host, "gpu").violations == (
        "x{}: r cannot reach host-pinned memory",
    )


@pytest.mark.parametrize("platform", ["tpu", "cpu"])
def test_collectives_ask_for_nothing_that_is_not_there_MB5(platform: str) -> None:
    binding = bind_memory_spaces(msa.parse(REDUCE), platform, SYMMETRIC)
    assert {row.domain.kind for row in binding.rows} == {Kind.HBM}
    assert binding.violations == ()


def module_with(text: str, old: str, new: str) -> msa.Module:
    assert old in text
    return msa.parse(text.replace(old, new))


def test_one_storage_in_two_memories_MB13() -> None:
    text = """ENTRY e {
  x = f32[8]{0} parameter(0)
  u = f32[1]{0} parameter(1)
  i = s32[] parameter(2)
  c = f32[8]{0} copy(x)
  ROOT d = f32[8]{0} dynamic-update-slice(c, u, i)
}"""
    module = msa.parse(text)
    binding = bind_memory_spaces(module, "gpu")
    collective = binding.platform.domain(1)
    rows = tuple(
        replace(row, domain=collective) if row.value == "d{}" else row
        for row in binding.rows
    )
    (problem,) = check_binding(module, replace(binding, rows=rows))
    assert "several memories: d{} in collective and c{} in hbm" in problem


def test_bindings_of_other_modules_are_refused_MB13() -> None:
    binding = bind_memory_spaces(msa.parse(BODY), "gpu")
    with pytest.raises(HloError, match="not of this module"):
        check_binding(msa.parse(REDUCE), binding)
    with pytest.raises(HloError, match="binds nothing"):
        check_binding(msa.parse(BODY), replace(binding, rows=binding.rows[:-1]))


def test_moves_inside_a_kernel_are_no_copies_MB13() -> None:
    text = """
body {
  p = f32[8]{0} parameter(0)
  c = f32[8]{0} copy(p)
  s = f32[4]{0} slice(c), slice={[0:4]}
  ROOT n = f32[4]{0} negate(s)
}
ENTRY e {
  x = f32[8]{0} parameter(0)
  ROOT f = f32[4]{0} fusion(x), kind=kLoop, calls=body
}"""
    binding = bind_memory_spaces(msa.parse(text), "gpu")
    assert binding.of("s").domain.kind is Kind.REGISTER
    assert binding.violations == ()


def annotated(target: str, attributes: str = "") -> msa.Module:
    return msa.parse(f"""ENTRY e {{
  x = f32[8]{{0}} parameter(0)
  a = f32[8]{{0}} custom-call(x), custom_call_target="{target}"{attributes}
  ROOT z = f32[8]{{0}} copy(a)
}}""")


def placement(name: str) -> str:
    return f', frontend_attributes={{_xla_buffer_placement="{name}"}}'


DEVICE_PLACEMENT = "annotate_device_placement"


@pytest.mark.parametrize(
    ("target", "named", "kind"),
    [
        (DEVICE_PLACEMENT, "pinned_host", Kind.HOST_PINNED),
        (DEVICE_PLACEMENT, "unpinned_host", Kind.HOST_UNPINNED),
        (DEVICE_PLACEMENT, "device", Kind.HBM),
        (DEVICE_PLACEMENT, "pinned_device", Kind.HBM),
        (DEVICE_PLACEMENT, "vmem", Kind.VMEM),
        ("MoveToHost", "", Kind.HOST_PINNED),
        ("MoveToDevice", "", Kind.HBM),
        ("PinToDevice", "", Kind.HBM),
        ("PinToDeviceSram", "", Kind.VMEM),
    ],
)
def test_annotations_name_memories_MB3(target: str, named: str, kind: Kind) -> None:
    module = annotated(target, placement(named) if named else "")
    row = bind_memory_spaces(module, "tpu").of("a")
    assert (row.domain.kind, row.reason) == (kind, "annotation")
    if kind is not Kind.VMEM:
        cpu = bind_memory_spaces(module, "cpu").of("a")
        assert cpu.domain.kind is Kind.HBM


def test_annotations_that_cannot_be_granted_MB3() -> None:
    with pytest.raises(BindingError, match=r"unknown memory 'moon'.*vmem"):
        bind_memory_spaces(annotated(DEVICE_PLACEMENT, placement("moon")))
    with pytest.raises(BindingError, match="no memory"):
        bind_memory_spaces(annotated(DEVICE_PLACEMENT))
    with pytest.raises(BindingError, match="asks for vmem and the platform 'gpu'"):
        bind_memory_spaces(annotated("PinToDeviceSram"), "gpu")
    assert placement_of(annotated("anything").entry.root.operands[0]) == ""


def test_domains_MB2() -> None:
    target = msa.Target.preset("tpu_v5e")
    tpu, gpu, cpu = (Platform.preset(n, target) for n in ("tpu", "gpu", "cpu"))
    assert tpu.domain(1).capacity == target.alternate_memory_bytes
    assert tpu.domain(0).read_bandwidth == target.default_memory_bandwidth
    assert [gpu.domain(s).kind for s in (0, 1, 2, 5)] == [
        Kind.HBM,
        Kind.COLLECTIVE,
        Kind.TEMP,
        Kind.HOST_PINNED,
    ]
    assert {cpu.domain(s).kind for s in (0, 5)} == {Kind.HBM}
    assert cpu.domain(0).alignment == 64
    assert gpu.domain(0).alignment == gpu.domain(1).alignment == 256
    assert tpu.kind(Kind.REGISTER) is None
    register = gpu.kind(Kind.REGISTER)
    assert register is not None
    assert register.space is None
    for domain in (
        MemoryDomain(Kind.VMEM, 1, 1, 1),
        MemoryDomain(Kind.VMEM, None, 1, 1),
    ):
        with pytest.raises(OptionsError, match="cannot take another memory"):
            gpu.with_memory(domain)
