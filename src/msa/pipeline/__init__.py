"""The whole flow in one call: from a module to placed values, checked."""

from __future__ import annotations

from msa.pipeline.options import PipelineOptions
from msa.pipeline.result import Address, PipelineResult, StageRecord
from msa.pipeline.run import run

__all__ = ["Address", "PipelineOptions", "PipelineResult", "StageRecord", "run"]
