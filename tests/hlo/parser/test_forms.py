"""Whole modules in every dress that HLO text is found in.

`tests/data/reader_forms.txt` and `reader_modules.txt` hold them, `reader_lines.txt`
bodies for `CONTEXT`; `tests/oracle/test_reader.py` lets XLA's own reader judge what
ours makes of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import msa

DATA = Path(__file__).parents[2] / "data"
CONTEXT = """HloModule m{header}

add_f32 {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }}
neg8 {{ x = f32[8] parameter(0) ROOT s = f32[8] negate(x) }}

ENTRY e {{
  p = f32[8] parameter(0)
  q = f32[4,8] parameter(1)
  i = s32[] parameter(2)
  c = pred[] parameter(3)
  k = token[] parameter(4)
  {body}
}}
"""
HEADERS = """
, is_scheduled=false
, num_partitions=2, replica_count=1
, alias_passthrough_params=false
, input_output_alias={ {}: (0, {}) }
, input_output_alias={{}: (0, {}, must-alias)}
, buffer_donor={}
, input_output_alias={}
, entry_computation_layout={(f32[8], f32[4,8], s32[], pred[], token[])->f32[8]}
, entry_computation_layout={(f32[8]{0:S(5)}, f32[4,8]{1,0:T(8,128)}, s32[], pred[], token[])->f32[8]{0:S(1)}}
, frontend_attributes={}
, frontend_attributes={mhlo.sharding={devices=[2]<=[2]},x="y"}
, allow_spmd_sharding_propagation_to_output=true
,is_scheduled=true
"""


def whole_modules(name: str) -> list[str]:
    return (DATA / name).read_text().split("\n=====\n")


FORMS = [
    *whole_modules("reader_forms.txt"),
    *whole_modules("reader_modules.txt"),
    *(
        CONTEXT.format(header="", body=line.replace(" ;; ", "\n  "))
        for line in (DATA / "reader_lines.txt").read_text().splitlines()
    ),
    *(
        CONTEXT.format(header=header, body="ROOT r = f32[8] negate(p)")
        for header in HEADERS.strip().splitlines()
    ),
]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_forms_are_read_verified_and_printed(number: int) -> None:
    module = msa.parse(FORMS[number])
    assert msa.parse(module.to_text()) == module
    assert msa.parse(module.to_text()).to_text(canonical=True) == module.to_text(
        canonical=True
    )


def test_the_collection_is_there() -> None:
    assert len(FORMS) > 300
