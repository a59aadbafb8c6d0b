"""Functions that all trainings share: the training loop, and storing and verifying the weights."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

import lite_conformance.cases.networks
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph

WEIGHTS = Path(lite_conformance.cases.networks.__file__).parent / "weights"
#: The largest difference allowed between outputs of PyTorch and of the graph.
LARGEST_DIFFERENCE = 1e-4


def set_up(seed: int = 0) -> np.random.Generator:
    """Make the training reproducible: fixed seeds, and one thread, because sums of several threads differ by run."""
    random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    return np.random.default_rng([0, seed])


def train(
    model: torch.nn.Module,
    batch_loss: Callable[[], torch.Tensor],
    *,
    steps: int,
    rate: float,
    weight_decay: float = 1e-4,
) -> None:
    """Train with AdamW, a warm-up and a cosine schedule of the learning rate."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    model.train()
    started, recent = time.perf_counter(), []
    for step in range(1, steps + 1):
        loss = batch_loss()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent.append(loss.item())
        if step % 200 == 0 or step == steps:
            print(f"step {step}: loss {np.mean(recent):.4f}, {time.perf_counter() - started:.0f} s", flush=True)
            recent.clear()
    model.eval()


@contextmanager
def stored(model: torch.nn.Module, name: str) -> Iterator[None]:
    """Write the weights, with matrices and kernels rounded to float16 in the file and in the model.

    The body of the context checks the model. If it raises, the former weights file is restored.
    """
    arrays = {}
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            if tensor.ndim > 1:
                tensor.copy_(tensor.half().float())
            arrays[key] = tensor.numpy().astype(np.float16 if tensor.ndim > 1 else np.float32)
    WEIGHTS.mkdir(exist_ok=True)
    path = WEIGHTS / f"{name}.npz"
    former = path.read_bytes() if path.exists() else None
    np.savez_compressed(path, **arrays)
    try:
        with torch.no_grad():
            yield
    except BaseException:
        if former is None:
            path.unlink()
        else:
            path.write_bytes(former)
        raise
    print(f"{path.name}: {path.stat().st_size} bytes, {sum(a.size for a in arrays.values())} numbers")


def require(what: str, figure: float, least: float) -> None:
    """Print the quality of a network on unseen data.

    Raises:
        SystemExit: the quality is below the required one.
    """
    print(f"{what}: {figure:.4g}, at least {least:.4g} wanted")
    if not figure >= least:
        raise SystemExit(f"{what}: {figure:.4g} is less than {least:.4g}")


def verify(
    graph: Graph,
    inputs: Mapping[str, np.ndarray],
    expected: Mapping[str, torch.Tensor],
) -> None:
    """Compare the values that the graph's references compute with those of PyTorch.

    Args:
        graph: the network as the package builds it.
        inputs: the inputs by name.
        expected: PyTorch's tensors by the names of values of the graph, which need not be outputs.

    Raises:
        SystemExit: a value differs by more than :data:`LARGEST_DIFFERENCE`.
    """
    found: dict[str, np.ndarray] = {}

    def observe(node: Node, results: list[np.ndarray]) -> None:
        found.update((v.name, array) for v, array in zip(node.outputs, results) if v is not None)

    evaluate_graph(graph, [inputs[v.name] for v in graph.inputs], observe=observe)
    for name, tensor in expected.items():
        wanted = tensor.detach().numpy()
        if wanted.shape != found[name].shape:
            raise SystemExit(f"{graph.name}: {name} is {found[name].shape}, PyTorch's {wanted.shape}")
        difference = float(np.abs(wanted - found[name]).max())
        print(f"{graph.name}: {name} {found[name].shape} differs from PyTorch's by {difference:.2e}")
        if not difference < LARGEST_DIFFERENCE:
            raise SystemExit(f"{graph.name}: {name} differs from PyTorch's by {difference}")
