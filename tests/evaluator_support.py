"""Short ways to write modules and run them."""

from __future__ import annotations

from typing import Any

import msa


def run(body: str, *inputs: Any, before: str = "", **options: Any) -> Any:
    """Run an entry computation given as its lines; `before` holds others."""
    return msa.execute(parse(body, before), list(inputs), **options)


def parse(body: str, before: str = "") -> msa.Module:
    return msa.parse(f"HloModule m\n{before}\nENTRY e {{\n{body}\n}}\n")


def scheduled(text: str) -> msa.Module:
    """A module whose text order is its schedule."""
    return msa.parse(f"HloModule m, is_scheduled=true\n{text}")


ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
ADD_S32 = (
    "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }"
)
