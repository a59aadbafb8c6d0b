"""Rewriting of operators into those that Paddle-Lite has.

:mod:`.forms` gives every operator the attributes and inputs that Paddle-Lite's operator of that name reads.
:mod:`.substitutes` expresses operators that have no kernel on the targets by others.
:mod:`.sizes` converts tensors with sizes to the type that Paddle-Lite reads.
"""

from __future__ import annotations

from ..draft import Draft
from ..kernels import Target, kernels_of
from ..placing import Targets
from .forms import FORMS
from .rules import Rewriting, Rule
from .sizes import narrow_sizes
from .substitutes import SUBSTITUTES

__all__ = ["rewrite"]


def rewrite(draft: Draft, targets: Targets) -> None:
    """Rewrite every operator of a draft that Paddle-Lite has in another form, or not at all, on the targets."""
    for block in draft.blocks():
        ops = []
        for op in block.ops:
            rule: Rule | None = FORMS.get(op.type)
            # OpenCL may leave any operator to the processor, which must have a kernel for it, too.
            if not any(k.target in targets and k.target is not Target.OPENCL for k in kernels_of(op.type)):
                rule = SUBSTITUTES.get(op.type)
            rewriting = Rewriting(op, draft)
            if rule is not None:
                rule(rewriting)
            ops += rewriting.ops if rewriting.ops else [op]
        block.ops = ops
    narrow_sizes(draft)
