"""Trains the glyph classifier."""

from __future__ import annotations

import numpy as np
import torch
from common import require, set_up, stored, train, verify
from torch import nn
from torch.nn import functional

from lite_conformance.cases.networks.drawing import ALPHABET
from lite_conformance.cases.networks.glyph_classifier import BLOCKS, GLYPH_CLASSIFIER, render


class Block(nn.Module):
    def __init__(self, inputs: int, expanded: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.residual = inputs == outputs and stride == 1
        self.expand = nn.Conv2d(inputs, expanded, 1, bias=False)
        self.expand_norm = nn.BatchNorm2d(expanded)
        self.depthwise = nn.Conv2d(expanded, expanded, kernel, stride, kernel // 2, groups=expanded, bias=False)
        self.depthwise_norm = nn.BatchNorm2d(expanded)
        self.squeeze = nn.Conv2d(expanded, expanded // 4, 1)
        self.excite = nn.Conv2d(expanded // 4, expanded, 1)
        self.project = nn.Conv2d(expanded, outputs, 1, bias=False)
        self.project_norm = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.hardswish(self.expand_norm(self.expand(x)))
        y = functional.hardswish(self.depthwise_norm(self.depthwise(y)))
        gate = self.excite(functional.relu(self.squeeze(y.mean(dim=(2, 3), keepdim=True))))
        y = self.project_norm(self.project(y * functional.hardsigmoid(gate)))
        return x + y if self.residual else y


class ConvNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.hardswish(self.norm(self.conv(x)))


class GlyphClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(1, BLOCKS[0][0], 3)
        self.blocks = nn.Sequential(*(Block(*block) for block in BLOCKS))
        self.head = ConvNorm(BLOCKS[-1][2], 128, 1)
        self.hidden = nn.Linear(128, 128)
        self.classify = nn.Linear(128, len(ALPHABET))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.head(self.blocks(self.stem(x))).mean(dim=(2, 3))
        return self.classify(functional.hardswish(self.hidden(x)))


def main() -> None:
    generator = set_up()
    model = GlyphClassifier()

    def batch_loss() -> torch.Tensor:
        images, labels = render(64, generator)
        return functional.cross_entropy(model(torch.from_numpy(images)), torch.from_numpy(labels), label_smoothing=0.02)

    train(model, batch_loss, steps=1600, rate=6e-3)
    with stored(model, GLYPH_CLASSIFIER.name):
        images, labels = render(2000, np.random.default_rng([2, 0]))
        right = (model(torch.from_numpy(images)).argmax(1).numpy() == labels).mean()
        require("share of unseen glyphs that are right", right, 0.97)
        inputs = GLYPH_CLASSIFIER.examples(0)
        verify(GLYPH_CLASSIFIER.build(), inputs, {"probabilities": model(torch.from_numpy(inputs["image"])).softmax(1)})


if __name__ == "__main__":
    main()
