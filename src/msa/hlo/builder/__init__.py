"""Writing modules from Python, with the coverage of HLO text.

`Builder` holds the module, `ComputationBuilder` adds instructions to one computation
and infers their shapes; `Builder.build` verifies.

>>> from msa.hlo import Builder
>>> builder = Builder("example")
>>> main = builder.entry("main")
>>> x = main.parameter("f32[8,128]", name="x")
>>> w = main.parameter("f32[128,16]", name="w")
>>> y = main.dot(x, w, lhs_contracting_dims=1, rhs_contracting_dims=0)
>>> total = main.reduce(y, main.constant(0.0), dimensions=(0, 1), to_apply="add")
>>> module = builder.build(schedule=True)
>>> str(module.entry.root.shape), [i.opcode for i in module.entry.instructions]
('f32[]', ['parameter', 'parameter', 'dot', 'constant', 'reduce'])
"""

from __future__ import annotations

from msa.hlo.builder.computation_builder import ComputationBuilder
from msa.hlo.builder.module_builder import Builder

__all__ = ["Builder", "ComputationBuilder"]
