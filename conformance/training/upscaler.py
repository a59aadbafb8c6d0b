"""Trains the upscaler."""

from __future__ import annotations

import numpy as np
import torch
from common import require, set_up, stored, train, verify
from torch import nn
from torch.nn import functional

from lite_conformance.cases.networks.upscaler import BLOCKS, CHANNELS, GROUPS, UPSCALER, bilinear, psnr, render, shrink


class Block(nn.Module):
    def __init__(self, norm: str) -> None:
        super().__init__()
        self.first = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.norm: nn.Module = nn.Identity()
        if norm == "InstanceNormalization":
            self.norm = nn.InstanceNorm2d(CHANNELS, affine=True)
        elif norm == "GroupNormalization":
            self.norm = nn.GroupNorm(GROUPS, CHANNELS)
        self.prelu = nn.PReLU(CHANNELS)
        self.second = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(self.prelu(self.norm(self.first(x))))


class Upscaler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.stem_prelu = nn.PReLU(CHANNELS)
        self.blocks = nn.Sequential(*(Block(norm) for norm in BLOCKS))
        self.expand = nn.Conv2d(CHANNELS, 12, 3, padding=1)
        self.enlarge = nn.ConvTranspose2d(3, 3, 4, 2, 1, groups=3)
        line = torch.tensor([0.25, 0.75, 0.75, 0.25])  # initialised to bilinear interpolation
        with torch.no_grad():
            self.enlarge.weight.copy_(torch.outer(line, line).expand(3, 1, 4, 4))

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        features = self.stem_prelu(self.stem(small))
        details = functional.pixel_shuffle(self.expand(self.blocks(features) + features), 2)
        return self.enlarge(small) + details


def main() -> None:
    generator = set_up()
    model = Upscaler()

    def batch_loss() -> torch.Tensor:
        large = render(12, 48, 48, generator)
        return 100 * functional.mse_loss(model(torch.from_numpy(shrink(large))), torch.from_numpy(large))

    train(model, batch_loss, steps=3000, rate=3e-3)
    with stored(model, UPSCALER.name):
        large = render(100, 64, 64, np.random.default_rng([10, 0]))
        small = shrink(large)
        found = model(torch.from_numpy(small)).clamp(0, 1).numpy()
        gain = psnr(found, large) - psnr(bilinear(small), large)
        require("decibels over bilinear interpolation on unseen pictures", gain, 5.0)
        inputs = UPSCALER.examples(0)
        verify(UPSCALER.build(), inputs, {"large": model(torch.from_numpy(inputs["small"])).clamp(0, 1)})


if __name__ == "__main__":
    main()
