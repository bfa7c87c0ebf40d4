"""Whole modules in every dress that HLO text is found in.

`tests/data/reader_forms.txt` holds them; `tests/oracle/test_reader.py` lets XLA's
own reader judge what ours makes of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import msa

FORMS = (
    (Path(__file__).parents[2] / "data" / "reader_forms.txt")
    .read_text()
    .split("\n=====\n")
)


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_forms_are_read_verified_and_printed(number: int) -> None:
    module = msa.parse(FORMS[number])
    assert msa.parse(module.to_text()) == module
    assert msa.parse(module.to_text()).to_text(canonical=True) == module.to_text(
        canonical=True
    )


def test_the_collection_is_there() -> None:
    assert len(FORMS) > 60
