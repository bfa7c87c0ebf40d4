"""Captures as JSON files, so that reports can be made later and elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from msa.errors import FileFormatError
from msa.files import write_text
from msa.report.capture import SCHEMA, PlanCapture


def capture_to_json(capture: PlanCapture, path: str | Path | None = None) -> str:
    """The capture as JSON; also written to `path` if one is given.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> from msa.report import capture_plan
    >>> capture_from_json(capture_to_json(capture_plan(plan)))["module"]
    'module_e'
    """
    return write_text(json.dumps(capture, ensure_ascii=False) + "\n", path)


def capture_from_json(text: str) -> PlanCapture:
    """A capture from the text of `capture_to_json`.

    Raises:
        FileFormatError: the text is something else, or of another schema version.

    >>> capture_from_json('{"schema": "msa.plan/0"}')
    Traceback (most recent call last):
    ...
    msa.errors.FileFormatError: the schema is 'msa.plan/0', expected 'msa.plan/1'
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise FileFormatError(f"is not JSON: {error}") from error
    if not isinstance(data, dict) or "schema" not in data:
        raise FileFormatError("is not a captured plan: it names no schema")
    if data["schema"] != SCHEMA:
        raise FileFormatError(f"the schema is {data['schema']!r}, expected {SCHEMA!r}")
    missing = sorted(set(PlanCapture.__annotations__) - set(data))
    if missing:
        raise FileFormatError(f"the capture has no {', '.join(missing)}")
    return cast(PlanCapture, data)
