"""Graph passes for the patterns that exporters write for decoders."""

from __future__ import annotations

from lite_core.ir import Graph
from lite_core.passes.base import PassResult

__all__ = ["DecoderFusion"]

#: A graph without one of these has none of the patterns.
_TELLING = frozenset({"Neg", "Softmax", "Sqrt"})


class DecoderFusion:
    """Pass that recognises the operators of decoders, written out in arithmetic.

    Rules:
        1. :mod:`.rms_norm`: ``x / Sqrt(ReduceMean(x^2) + epsilon) * scale`` -> RMSNormalization.
        2. :mod:`.rotary`: ``x * cos + Concat(-x[half:], x[:half]) * sin`` -> RotaryEmbedding.
        3. :mod:`.attention`: ``Softmax(q k' + mask) v`` with keys and values of a cache, or repeated for a group of
           query heads -> Attention.
    """

    name = "decoder_fusion"

    def __call__(self, graph: Graph) -> PassResult:
        if _TELLING.isdisjoint([node.op for node in graph.nodes]):
            return PassResult(graph, changed=False)
        # Imported late: most models have no such nodes.
        from lite_core.passes.rewriting import Scope
        from lite_onnx.passes.attention import fuse_attention
        from lite_onnx.passes.rms_norm import fuse_rms_norm
        from lite_onnx.passes.rotary import fuse_rotary

        scope = Scope(graph)
        fusions = {"Mul": fuse_rms_norm, "Add": fuse_rotary, "MatMul": fuse_attention}
        for node in scope.nodes():
            if node.op in fusions and not node.domain:
                fusions[node.op](scope, node)
        return PassResult(graph, scope.commit())
