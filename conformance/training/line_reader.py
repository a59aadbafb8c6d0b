"""Trains the line reader."""

from __future__ import annotations

import numpy as np
import torch
from common import require, set_up, stored, train, verify
from torch import nn
from torch.nn import functional

from lite_conformance.cases.networks.drawing import ALPHABET
from lite_conformance.cases.networks.line_reader import (
    BLANK,
    CHANNELS,
    HIDDEN,
    LINE_READER,
    edit_distance,
    greedy_decode,
    render,
)


class LineReader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        inputs = (1, *CHANNELS[:-1])
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1, bias=False) for i, o in zip(inputs, CHANNELS))
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for o in CHANNELS)
        self.lstm = nn.LSTM(CHANNELS[-1], HIDDEN, bidirectional=True)
        self.classify = nn.Linear(2 * HIDDEN, len(ALPHABET) + 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm, pool in zip(self.convs, self.norms, ((2, 2), (2, 2), (4, 1))):
            x = functional.max_pool2d(functional.relu(norm(conv(x))), pool)
        x, _ = self.lstm(x.squeeze(2).permute(2, 0, 1))
        return self.classify(x).log_softmax(-1)


def main() -> None:
    generator = set_up()
    model = LineReader()

    def batch_loss() -> torch.Tensor:
        images, lines = render(32, 16 * int(generator.integers(5, 9)), generator)
        outputs = model(torch.from_numpy(images))
        lengths = torch.tensor([len(line) for line in lines])
        targets = torch.from_numpy(np.concatenate(lines) + 1)
        steps = torch.full((len(lines),), outputs.shape[0])
        return functional.ctc_loss(outputs, targets, steps, lengths, blank=BLANK, zero_infinity=True)

    train(model, batch_loss, steps=2200, rate=6e-3)
    with stored(model, LINE_READER.name):
        images, lines = render(400, 128, np.random.default_rng([4, 0]))
        found = greedy_decode(model(torch.from_numpy(images)).numpy())
        wrong = sum(edit_distance(a, list(b)) for a, b in zip(found, lines))
        require("share of unseen characters that are right", 1 - wrong / sum(map(len, lines)), 0.95)
        inputs = LINE_READER.examples(0)
        verify(LINE_READER.build(), inputs, {"log_probabilities": model(torch.from_numpy(inputs["image"]))})


if __name__ == "__main__":
    main()
