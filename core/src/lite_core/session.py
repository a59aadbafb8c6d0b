"""Loading a model and running it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from lite_core import ops, passes
from lite_core.arguments import check_out, check_shapes, overlapping, to_arrays
from lite_core.backend import Options
from lite_core.errors import GraphError, InputError
from lite_core.formats import read_model
from lite_core.ir import Graph, TensorType
from lite_core.ops.infer import infer_graph
from lite_core.plugins import PluginHost, available_backends, default_host, left_out_backends
from lite_core.schedule import NodeAssignment, Plan, place, select_devices
from lite_core.schedule.plan import PartitionTime, copy_into

__all__ = ["Binding", "RunProfile", "Session", "load"]

logger = logging.getLogger("lite.session")

Array = np.ndarray[Any, Any]
_PRECISIONS = ("float32", "float16", "bfloat16")
_MOST_PLANS = 16


def load(
    model: str | os.PathLike[str] | Graph,
    backend: str | Sequence[str] = "auto",
    threads: int | None = None,
    precision: str = "float32",
    *,
    fallback: str = "host",
    placement: Mapping[str, str] | None = None,
    optimize: bool = True,
    plugins: PluginHost | None = None,
    **options: Any,
) -> Session:
    """Load a model and prepare it for running.

    Args:
        model: a file or folder that an installed plugin reads, or a graph.
        backend: ``"auto"`` takes the best device for each node; a name such as ``"x86"`` or
            ``"opencl:1"``, or several in order of preference, uses these only (and ``host`` for what
            they cannot run). From outside, ``LITE_BACKEND`` overrides it, and ``LITE_BACKENDS`` names
            the backends that may be used at all.
        threads: how many threads the backends may use; all processors when omitted.
        precision: ``"float32"``, or ``"float16"`` / ``"bfloat16"`` to let backends compute in that type.
        fallback: ``"never"`` forbids ``host`` to run what the named backends cannot.
        placement: node name pattern to backend, for nodes that must run there.
        optimize: run the graph passes first.
        plugins: the plugins to use instead of the installed ones, for tests.
        options: passed to the reader of the file, for example ``params=``.

    Raises:
        ModelFormatError: the file is not a model that an installed plugin reads, or is damaged.
        UnsupportedOperatorError: operators cannot be lowered or run; all are listed.
        BackendUnavailableError: a backend asked for by name cannot be used.
    """
    if not isinstance(model, (Graph, str, os.PathLike)):
        raise InputError(f"model must be a path or a Graph, is {type(model).__name__}")
    if isinstance(model, Graph):
        if options:
            raise InputError(f"a graph takes no reader options, given: {', '.join(options)}")
        graph = model
    else:
        graph = read_model(model, host=plugins, **options)
    return Session(
        graph,
        backend=backend,
        threads=threads,
        precision=precision,
        fallback=fallback,
        placement=placement,
        run_passes=optimize,
        plugins=plugins,
    )


class RunProfile:
    """How long each partition of one run took; filled by ``session.run(..., profile=...)``."""

    def __init__(self) -> None:
        self.partitions: list[PartitionTime] = []
        self.seconds = 0.0

    def by_device(self) -> dict[str, float]:
        """Seconds spent on each device."""
        total: dict[str, float] = {}
        for part in self.partitions:
            total[part.device] = total.get(part.device, 0.0) + part.seconds
        return total


class Session:
    """A model ready to run. One session may be used by many threads at once.

    Use :func:`load` to make one. ``inputs`` and ``outputs`` map names to types, in the model's order.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        backend: str | Sequence[str] = "auto",
        threads: int | None = None,
        precision: str = "float32",
        fallback: str = "host",
        placement: Mapping[str, str] | None = None,
        run_passes: bool = True,
        plugins: PluginHost | None = None,
    ) -> None:
        if precision not in _PRECISIONS:
            raise InputError(f"precision must be one of {', '.join(_PRECISIONS)}, is {precision!r}")
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads must be a whole number, at least 1, is {threads!r}")
        host = plugins or default_host()
        self._options = Options(threads or os.cpu_count() or 1, precision)
        ops.verify(graph)
        self._selection = select_devices(
            backend, available_backends(host), fallback=fallback, left_out=left_out_backends(host)
        )
        extra = [item for _, item in host.ask("lite_passes")]
        self.graph = passes.optimize(graph, extra=extra)[0] if run_passes else graph.copy()
        infer_graph(self.graph)
        self._placement = place(self.graph, self._selection.candidates, placement)
        self._plans: OrderedDict[tuple[tuple[int, ...], ...], _PlanSlot] = OrderedDict()
        self._lock = threading.Lock()
        self.inputs: Mapping[str, TensorType] = MappingProxyType({v.name: v.type for v in self.graph.inputs})
        self.outputs: Mapping[str, TensorType] = MappingProxyType({v.name: v.type for v in self.graph.outputs})

    # **** running ****

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        out: Mapping[str, Array] | None = None,
        profile: RunProfile | None = None,
        **named: Any,
    ) -> dict[str, Array]:
        """Run the model.

        Args:
            inputs: an array (or what NumPy makes one of) for each input, by name.
            out: arrays to write outputs into, by name, contiguous and of the right type.
            profile: filled with the time of each partition.
            named: inputs whose names are identifiers may be given as keywords.

        Returns:
            Output name to array, in the model's order. The arrays are the caller's own: no later run,
            no other thread and not even the end of the session changes them.

        Raises:
            InputError: an input is missing, unknown, or does not fit in shape or element type.
        """
        arrays = to_arrays(self.graph.name, self.graph.inputs, inputs, named)
        check_out(self.outputs, out)
        start = time.perf_counter()
        plan = self._plan({name: array.shape for name, array in arrays.items()})
        late = overlapping(out, arrays)
        direct = {name: array for name, array in (out or {}).items() if name not in late}
        if profile is not None:
            profile.partitions.clear()
        results = plan.run(arrays, direct, profile.partitions if profile else None)
        outputs = {v.name: array for v, array in zip(self.graph.outputs, results)}
        for name in late:
            outputs[name] = copy_into((out or {})[name], outputs[name], name)
        if profile is not None:
            profile.seconds = time.perf_counter() - start
        return outputs

    def prepare(self, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """Compile everything for input shapes before the first run.

        Args:
            shapes: a shape for each input with unknown dimensions; the others have their own.

        Raises:
            InputError: a shape is missing or does not fit.
        """
        self._plan(check_shapes(self.graph.name, self.graph.inputs, shapes or {}))

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> Binding:
        """Tie arrays to inputs and outputs once, to run without copies again and again.

        Args:
            inputs: arrays the caller fills before each run.
            outputs: arrays that receive the outputs; allocated by a first run when omitted.
        """
        return Binding(self, inputs, outputs)

    # **** looking ****

    def assignment(self) -> tuple[NodeAssignment, ...]:
        """Which node runs where, and why not on a preferred device."""
        return self._placement.assignments

    @property
    def selection_log(self) -> tuple[str, ...]:
        """One line for each backend that was considered."""
        return self._selection.log

    @property
    def devices(self) -> tuple[str, ...]:
        """Labels of the devices that run at least one node, most nodes first."""
        return tuple(label for label, _ in self._counts().most_common())

    def _counts(self) -> Counter[str]:
        """How many nodes each device runs."""
        return Counter(a.device for a in self._placement.assignments)

    def describe(self) -> str:
        """The session in words: inputs, outputs, devices and how many nodes each runs, and why."""
        lines = [f"model {self.graph.name}: {len(self.graph.nodes)} nodes"]
        lines += [f"  input  {name}: {type_}" for name, type_ in self.inputs.items()]
        lines += [f"  output {name}: {type_}" for name, type_ in self.outputs.items()]
        lines += [f"  {count} node(s) on {label}" for label, count in self._counts().items()]
        refused = Counter((a.device, label, why) for a in self._placement.assignments for label, why in a.refusals)
        lines += [
            f"  {count} node(s) on {device}, not {label}: {why}" for (device, label, why), count in refused.items()
        ]
        lines += [f"  {line}" for line in self.selection_log]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Session {self.graph.name} on {', '.join(self.devices) or 'no device'}>"

    # **** inside ****

    def _plan(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan:
        """The plan for these input shapes, made when it is first needed and kept while it is in use.

        Threads that need the same new plan wait for it; those whose plan is there do not.
        """
        key = tuple(shapes[name] for name in self.inputs)
        with self._lock:
            slot = self._plans.setdefault(key, _PlanSlot())
            self._plans.move_to_end(key)
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        with slot.lock:
            if slot.plan is None:
                slot.plan = self._make_plan(shapes)
            return slot.plan

    def _make_plan(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan:
        start = time.perf_counter()
        graph = self.graph.copy()
        try:
            infer_graph(graph, {n: t.with_shape(shapes[n]) for n, t in self.inputs.items()})
        except GraphError as error:
            listed = ", ".join(f"{n}={list(s)}" for n, s in shapes.items())
            raise InputError(f"the model does not accept the input shapes {listed}: {error}") from None
        plan = Plan(graph, self._placement, self._options)
        logger.debug("planned for %s in %.1f ms", dict(shapes), (time.perf_counter() - start) * 1e3)
        return plan


class _PlanSlot:
    """A place for a plan that one thread is making."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.plan: Plan | None = None


class Binding:
    """Arrays tied to a session's inputs and outputs. Not for several threads at once."""

    def __init__(self, session: Session, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None) -> None:
        self._session = session
        #: The arrays that each run reads.
        self.inputs = dict(inputs)
        #: The arrays that each run writes.
        self.outputs: dict[str, Array] = dict(outputs) if outputs else session.run(self.inputs)

    def run(self) -> dict[str, Array]:
        """Run on what the input arrays hold now; returns the output arrays, overwritten."""
        return self._session.run(self.inputs, out=self.outputs)
