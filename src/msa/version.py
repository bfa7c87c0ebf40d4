"""The version of the library: the one place that says it."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
