"""Host offloading: values between annotations lie in host memory."""

from __future__ import annotations

from msa.passes.offload.legalize import LegalizeHostOffload
from msa.passes.offload.offloader import (
    HostOffloading,
    OffloadToHost,
    offload_to_host,
)
from msa.passes.offload.report import OffloadedValue, offload_report
from msa.passes.offload.vocabulary import HostOffloadError

__all__ = [
    "HostOffloadError",
    "HostOffloading",
    "LegalizeHostOffload",
    "OffloadToHost",
    "OffloadedValue",
    "offload_report",
    "offload_to_host",
]
