"""Small trained networks, with inputs whose correct answers are known.

Their weights were trained for this suite on data that it generates, so that a backend is judged not only by the
errors of its outputs, but also by the network's success at its task::

    for network in NETWORKS:
        graph, inputs = network.build(), network.examples(seed)
        outputs = lite_core.load(graph).run(inputs)
        problem = network.task_error(seed, outputs)      # None: the task is solved
"""

from __future__ import annotations

from lite_conformance.cases.networks.glyph_classifier import GLYPH_CLASSIFIER
from lite_conformance.cases.networks.line_reader import LINE_READER
from lite_conformance.cases.networks.network import Network
from lite_conformance.cases.networks.sequence_transformer import SEQUENCE_TRANSFORMER
from lite_conformance.cases.networks.shape_detector import SHAPE_DETECTOR
from lite_conformance.cases.networks.upscaler import UPSCALER

__all__ = ["NETWORKS", "Network"]

#: All networks, in the order of their names.
NETWORKS: tuple[Network, ...] = (GLYPH_CLASSIFIER, LINE_READER, SEQUENCE_TRANSFORMER, SHAPE_DETECTOR, UPSCALER)
