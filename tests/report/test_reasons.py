"""Every value in slow memory has a reason, also one of which nothing was decided."""

import msa
from msa.report import capture_plan

TEXT = """
HloModule m, is_scheduled=true

ENTRY main {
  a = f32[1024,1024]{1,0} parameter(0)
  b = f32[1024,1024]{1,0} negate(a)
  ROOT c = f32[1024,1024]{1,0} exponential(b)
}
"""


def test_the_result_is_said_to_lie_where_the_caller_expects_it() -> None:
    plan = msa.assign(msa.parse(TEXT), msa.Target.preset("tpu_v5e"))
    expected = "part of the result, which the caller expects in slow memory"
    losses = {row["value"]: row["reason"] for row in capture_plan(plan)["losses"]}
    assert losses["c{}"] == expected
    assert all(losses.values())
    assert str(plan.explain("c")).endswith(f"in slow memory all the time: {expected}")
    assert expected in str(plan.why_not("c"))
