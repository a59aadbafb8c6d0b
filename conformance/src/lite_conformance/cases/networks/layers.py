"""Trained weights, and layers that use them."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

from lite_core import Graph, GraphBuilder
from lite_core.ir import Value

__all__ = ["Layers", "load_weights"]

Array = np.ndarray[Any, Any]


def load_weights(network: str) -> dict[str, Array]:
    """Return the trained weights of a network by name, as float32 (the file has matrices and kernels as float16).

    Raises:
        FileNotFoundError: the package has no weights of that name.
    """
    file = resources.files("lite_conformance.cases.networks").joinpath(f"weights/{network}.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


class Layers:
    """Builder of layers whose weights have PyTorch's names: ``layers.conv(x, "stem")`` uses ``stem.weight``.

    Args:
        network: the network's name, which is that of its weights and its graph.
    """

    def __init__(self, network: str) -> None:
        self.builder = GraphBuilder(network)
        self._weights = load_weights(network)
        self._unused = set(self._weights)

    def weight(self, name: str) -> Array:
        """Return a weight as it is stored.

        Raises:
            KeyError: the network has no weight of that name.
        """
        if name not in self._weights:
            raise KeyError(f"the weights of {self.builder.graph.name} have no {name!r}; train the network again")
        self._unused.discard(name)
        return self._weights[name]

    def constant(self, name: str) -> Value:
        """Add a weight as a constant of the graph."""
        return self.builder.constant(self.weight(name), name)

    def has(self, name: str) -> bool:
        """Return True if the network has a weight of that name."""
        return name in self._weights

    def conv(
        self, x: Value, name: str, *, stride: int = 1, group: int = 1, batch_norm: str = "", transposed: bool = False
    ) -> Value:
        """Add a convolution with square kernels; it divides the size by the stride, or multiplies if transposed."""
        weight = self.constant(f"{name}.weight")
        kernel = self.weight(f"{name}.weight").shape[2]
        pad = (kernel - stride) // 2 if transposed else kernel // 2
        inputs = [x, weight, *([self.constant(f"{name}.bias")] if self.has(f"{name}.bias") else [])]
        y = self.builder.add(
            "ConvTranspose" if transposed else "Conv",
            inputs,
            {"kernel_shape": (kernel,) * 2, "strides": (stride,) * 2, "pads": (pad,) * 4, "group": group},
            name=name,
        )
        if not batch_norm:
            return y
        statistics = [self.constant(f"{batch_norm}.{n}") for n in ("weight", "bias", "running_mean", "running_var")]
        return self.builder.add("BatchNormalization", [y, *statistics], {"epsilon": 1e-5}, name=batch_norm)

    def linear(self, x: Value, name: str) -> Value:
        """Add ``x W' + b`` over the last axis of an input of any rank, as MatMul and Add."""
        weight = self.builder.constant(self.weight(f"{name}.weight").T, f"{name}.weight")
        product = self.builder.add("MatMul", [x, weight], name=name)
        return self.builder.add("Add", [product, self.constant(f"{name}.bias")])

    def gemm(self, x: Value, name: str) -> Value:
        """Add ``x W' + b`` of a matrix, as Gemm with its second factor transposed."""
        inputs = [x, self.constant(f"{name}.weight"), self.constant(f"{name}.bias")]
        return self.builder.add("Gemm", inputs, {"transB": 1}, name=name)

    def apply(self, x: Value, op: str, **attributes: Any) -> Value:
        """Add a node with one input, such as an activation or a transposition."""
        return self.builder.add(op, [x], attributes)

    def build(self) -> Graph:
        """Return the graph.

        Raises:
            ValueError: a stored weight was not used, so that the graph differs from the trained network.
        """
        if self._unused:
            raise ValueError(f"weights of {self.builder.graph.name} are not used: {', '.join(sorted(self._unused))}")
        return self.builder.build()
