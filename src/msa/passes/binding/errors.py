"""What goes wrong when values are bound to memories."""

from __future__ import annotations

from msa.errors import HloError


class BindingError(HloError):
    """Wishes about a value's memory contradict each other or cannot be read.

    Attributes:
        colors: the spaces that were asked for, where two disagree.

    >>> BindingError("two wishes", colors=(1, 5)).colors
    (1, 5)
    """

    def __init__(
        self,
        message: str,
        *,
        colors: tuple[int, ...] = (),
        where: str = "",
        hint: str = "",
    ) -> None:
        self.colors = colors
        super().__init__(message, where=where, hint=hint)
