"""Graph passes: rewrites that help every backend."""

from __future__ import annotations

from collections.abc import Iterable

from lite_core.ir import Graph
from lite_core.ops.infer import KnownInference
from lite_core.passes.base import Inspect, Pass, PassRecord, PassResult, run_passes
from lite_core.passes.batch_norm_folding import BatchNormFolding
from lite_core.passes.branch_inlining import BranchInlining
from lite_core.passes.common_subexpression import CommonSubexpression
from lite_core.passes.constant_folding import ConstantFolding
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.gelu_fusion import GeluFusion
from lite_core.passes.hard_swish_fusion import HardSwishFusion
from lite_core.passes.identity_elimination import IdentityElimination
from lite_core.passes.layer_norm_fusion import LayerNormFusion
from lite_core.passes.shape_folding import ShapeFolding
from lite_core.passes.swish_fusion import SwishFusion
from lite_core.passes.transpose_reshape_cleaning import TransposeReshapeCleaning

__all__ = ["Inspect", "Pass", "PassRecord", "PassResult", "default_passes", "optimize", "run_passes"]


def default_passes(known: KnownInference | None = None) -> list[Pass]:
    """Return the default passes, in order.

    Passes that refine types and remove shape arithmetic come first, because the others then recognise more patterns.
    Fusions come after duplicates are merged, because a pattern must be the only user of its intermediate values.

    Args:
        known: stores the inferred types, to be reused when the graph is inferred after the passes.
    """
    return [
        DeadNodeElimination(),
        ShapeFolding(known),
        ConstantFolding(),
        BranchInlining(),
        IdentityElimination(),
        CommonSubexpression(),
        TransposeReshapeCleaning(),
        LayerNormFusion(),
        GeluFusion(),
        HardSwishFusion(),
        SwishFusion(),
        BatchNormFolding(),
        DeadNodeElimination(),
    ]


def optimize(
    graph: Graph,
    *,
    extra: Iterable[Pass] = (),
    inspect: Inspect | None = None,
    known: KnownInference | None = None,
    copy: bool = True,
) -> tuple[Graph, list[PassRecord]]:
    """Run the default passes until nothing changes.

    Args:
        graph: left unchanged unless ``copy`` is False.
        extra: passes that run after the default passes, such as the passes of plugins.
        inspect: called after each pass that changed the graph, see :func:`run_passes`.
        known: stores the inferred types, to be reused when the graph is inferred after the passes.
        copy: False edits the graph itself.

    Returns:
        The optimized graph and one record for each pass run.

    Raises:
        PassError: a pass failed; names the pass.
    """
    return run_passes(graph, [*default_passes(known), *extra], inspect=inspect, copy=copy)
