"""Trains the shape detector."""

from __future__ import annotations

import numpy as np
import torch
from common import require, set_up, stored, train, verify
from torch import nn
from torch.nn import functional

from lite_conformance.cases.networks.drawing import SHAPES
from lite_conformance.cases.networks.shape_detector import (
    LARGEST_DISTANCE,
    SHAPE_DETECTOR,
    STRIDE,
    DrawnShape,
    matches,
    render,
)
from lite_core.ops.evaluate import evaluate_graph

#: Standard deviation of the target score around a shape's centre, in units of half its side.
SPREAD = 0.35


class ConvNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.leaky_relu(self.norm(self.conv(x)), 0.1)


class ShapeDetector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(3, 12, 2)
        self.fine = nn.Sequential(ConvNorm(12, 24, 2), ConvNorm(24, 24))
        self.middle = nn.Sequential(ConvNorm(24, 32, 2), ConvNorm(32, 32))
        self.coarse = nn.Sequential(ConvNorm(32, 48, 2), ConvNorm(48, 48))
        self.middle_neck = ConvNorm(48 + 32, 32)
        self.fine_neck = ConvNorm(32 + 24, 32)
        self.head = ConvNorm(32, 32)
        self.kind = nn.Conv2d(32, len(SHAPES), 1)
        self.sides = nn.Conv2d(32, 4, 1)
        nn.init.constant_(self.kind.bias, -4.0)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits [batch, kinds, cells] and boxes [batch, cells, 4] in pixels."""
        fine = self.fine(self.stem(x))
        middle = self.middle(fine)
        coarse = self.coarse(middle)
        middle = self.middle_neck(torch.cat([functional.interpolate(coarse, scale_factor=2), middle], 1))
        fine = self.fine_neck(torch.cat([functional.interpolate(middle, scale_factor=2), fine], 1))
        x = self.head(fine)
        distances = self.sides(x).clamp(max=LARGEST_DISTANCE).exp().flatten(2).transpose(1, 2) * STRIDE
        centre = torch.from_numpy(centres(x.shape[2], x.shape[3])).float()
        return self.kind(x).flatten(2), torch.cat([centre - distances[..., :2], centre + distances[..., 2:]], -1)


def centres(rows: int, columns: int) -> np.ndarray:
    """Return the centres (y, x) of the cells in pixels: [rows columns, 2]."""
    y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return (np.stack([y.ravel(), x.ravel()], 1) + 0.5) * STRIDE


def targets(drawn: list[list[DrawnShape]], rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the target scores [batch, kinds, cells] and the boxes [batch, cells, 4] of the nearest shapes.

    Scores decrease with the distance from the shape's centre, so that the cells of a shape have different scores.
    """
    cells = centres(rows, columns)
    scores = np.zeros((len(drawn), len(SHAPES), len(cells)), np.float32)
    boxes = np.zeros((len(drawn), len(cells), 4), np.float32)
    boxes[..., 2:] = 1
    for image, shapes in enumerate(drawn):
        best = np.zeros(len(cells))
        for shape in shapes:
            y1, x1, y2, x2 = shape.box
            offset = (cells - [(y1 + y2) / 2, (x1 + x2) / 2]) / ((y2 - y1) / 2)
            score = np.exp(-(offset**2).sum(1) / (2 * SPREAD**2))
            score *= np.abs(offset).max(1) < 1
            scores[image, shape.kind] = np.maximum(scores[image, shape.kind], score)
            boxes[image, score > best] = shape.box
            best = np.maximum(best, score)
    return scores, boxes


def iou_loss(boxes: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return one minus the generalised IoU of each pair of boxes (Rezatofighi et al., 2019)."""
    sides = torch.minimum(boxes[..., 2:], wanted[..., 2:]) - torch.maximum(boxes[..., :2], wanted[..., :2])
    hull = torch.maximum(boxes[..., 2:], wanted[..., 2:]) - torch.minimum(boxes[..., :2], wanted[..., :2])
    overlap = sides.clamp(min=0).prod(-1)
    union = sum((b[..., 2:] - b[..., :2]).prod(-1) for b in (boxes, wanted)) - overlap
    return 1 - overlap / union + 1 - union / hull.prod(-1)


def main() -> None:
    generator = set_up()
    model = ShapeDetector()

    def batch_loss() -> torch.Tensor:
        height, width = (16 * int(generator.integers(3, 6)) for _ in range(2))
        images, drawn = render(16, height, width, generator)
        scores, wanted = map(torch.from_numpy, targets(drawn, height // STRIDE, width // STRIDE))
        logits, boxes = model(torch.from_numpy(images))
        weight = scores.amax(1) * (scores.amax(1) > 0.3)
        # Errors are weighted by their size, so that empty cells do not dominate (Li et al., 2020).
        focus = (scores - logits.sigmoid()).abs().detach() + 0.05
        kind = (focus * functional.binary_cross_entropy_with_logits(logits, scores, reduction="none")).sum()
        return (4 * kind + 2 * (weight * iou_loss(boxes, wanted)).sum()) / weight.sum().clamp(min=1)

    train(model, batch_loss, steps=2400, rate=4e-3)
    with stored(model, SHAPE_DETECTOR.name):
        graph = SHAPE_DETECTOR.build()
        images, drawn = render(300, 80, 80, np.random.default_rng([8, 0]))
        outputs = dict(zip((v.name for v in graph.outputs), evaluate_graph(graph, [images])))
        found, all_shapes, given = matches(drawn, outputs)
        require("share of unseen shapes that are found", found / all_shapes, 0.9)
        require("share of boxes that are right", found / given, 0.9)
        inputs = SHAPE_DETECTOR.examples(0)
        logits, boxes = model(torch.from_numpy(inputs["picture"]))
        (suppression,) = (n for n in graph.nodes if n.op == "NonMaxSuppression")
        names = [v.name for v in suppression.inputs[:2] if v is not None]
        verify(graph, inputs, dict(zip(names, (boxes, logits.sigmoid()))))


if __name__ == "__main__":
    main()
