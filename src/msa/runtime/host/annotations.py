"""Who is allocating: a stack of frames for each thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msa.runtime.host.chunks import Annotation


class _Frames(threading.local):
    """Each thread's frames, outermost first."""

    frames: Annotation = ()


ANNOTATIONS = _Frames()


def current_annotation() -> Annotation:
    """The frames of this thread, outermost first."""
    return ANNOTATIONS.frames


@contextmanager
def allocation_scope(name: str, **details: object) -> Iterator[None]:
    """Allocations inside carry the frame `(name, details)`.

    >>> with allocation_scope("execute", module="train", device=7):
    ...     render_annotation(current_annotation())
    'execute{module=train, device=7}'
    """
    before = current_annotation()
    ANNOTATIONS.frames = (*before, (name, tuple(details.items())))
    try:
        yield
    finally:
        ANNOTATIONS.frames = before


def render_annotation(annotation: Annotation) -> str:
    """`frame{k=v, k2=v2} / frame2{…}`; empty without frames."""
    parts = []
    for name, details in annotation:
        inside = ", ".join(f"{key}={value}" for key, value in details)
        parts.append(f"{name}{{{inside}}}")
    return " / ".join(parts)
