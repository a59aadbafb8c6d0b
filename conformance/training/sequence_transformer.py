"""Trains the transformer that sorts."""

from __future__ import annotations

import math

import numpy as np
import torch
from common import require, set_up, stored, train, verify
from torch import nn
from torch.nn import functional

from lite_conformance.cases.networks.sequence_transformer import (
    HEADS,
    LAYERS,
    LONGEST,
    NUMBERS,
    PADDING,
    SEQUENCE_TRANSFORMER,
    WIDTH,
    make_sequences,
)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        projected = self.project(self.attention_norm(x)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in projected)
        weights = (query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask).softmax(-1)
        x = x + self.merge((weights @ value).transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.widen(self.mlp_norm(x))))


class SequenceTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUMBERS + 1, WIDTH)
        self.positions = nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.classify = nn.Linear(WIDTH, NUMBERS + 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = torch.where(tokens == PADDING, -1e4, 0.0)[:, None, None, :]
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        return self.classify(self.norm(x))


def main() -> None:
    generator = set_up()
    model = SequenceTransformer()

    def batch_loss() -> torch.Tensor:
        tokens, ordered = make_sequences(96, int(generator.integers(8, LONGEST + 1)), generator)
        logits = model(torch.from_numpy(tokens)).flatten(0, 1)
        return functional.cross_entropy(logits, torch.from_numpy(ordered).flatten(), ignore_index=PADDING)

    train(model, batch_loss, steps=5000, rate=3e-3, weight_decay=0.01)
    with stored(model, SEQUENCE_TRANSFORMER.name):
        tokens, ordered = make_sequences(1000, LONGEST, np.random.default_rng([6, 0]))
        right = model(torch.from_numpy(tokens)).argmax(-1).numpy() == ordered
        require("share of unseen positions that are right", right[tokens != PADDING].mean(), 0.97)
        inputs = SEQUENCE_TRANSFORMER.examples(0)
        verify(SEQUENCE_TRANSFORMER.build(), inputs, {"logits": model(torch.from_numpy(inputs["tokens"]))})


if __name__ == "__main__":
    main()
