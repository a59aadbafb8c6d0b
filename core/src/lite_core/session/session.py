"""Loading a model and running it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lite_core.backend import Options
from lite_core.collector import collector_paused
from lite_core.container import LITE_FORMAT, ModelFile
from lite_core.errors import GraphError, InputError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Graph, TensorType
from lite_core.memory.scratch import ScratchPool
from lite_core.plugins import PluginHost, available_backends, backend_sources, default_host, left_out_backends
from lite_core.schedule import (
    CompileError,
    NodeAssignment,
    Plan,
    RunProfile,
    place,
    select_devices,
)
from lite_core.schedule.plan import copy_into
from lite_core.schedule.planner import Planner
from lite_core.session.arguments import check_out, check_shapes, overlapping, ready_arrays, to_arrays
from lite_core.session.prepared import Prepared

__all__ = ["Binding", "PlanStatistics", "RunProfile", "Session", "load"]

logger = logging.getLogger("lite.session")

Array = np.ndarray[Any, Any]
_Signature = tuple[tuple[int, ...], ...]  # the shape of each input, in order
_PRECISIONS = ("float32", "float16", "bfloat16")
_MOST_PLANS = 16


def load(
    model: str | os.PathLike[str] | Graph,
    backend: str | Sequence[str] = "auto",
    threads: int | None = None,
    precision: str = "float32",
    *,
    exact: bool = False,
    tune: bool = False,
    fallback: str = "host",
    placement: Mapping[str, str] | None = None,
    optimize: bool = True,
    plans: int = _MOST_PLANS,
    plugins: PluginHost | None = None,
    **options: Any,
) -> Session:
    """Load a model and prepare it for running.

    Args:
        model: a .lite file, a file or folder that an installed plugin reads, or a graph.
        backend: ``"auto"`` takes the best device for each node, or those that a .lite file was made for, in its order;
            a name such as ``"x86"`` or ``"opencl:1"``, or several in order of preference, uses these only (and
            ``host`` for what they cannot run). From outside, ``LITE_BACKEND`` overrides it, and ``LITE_BACKENDS``
            names the backends that may be used at all.
        threads: how many threads the backends may use; all processors when omitted.
        precision: ``"float32"``, or ``"float16"`` / ``"bfloat16"`` to let backends compute in that type.
        exact: forbid algorithms that trade accuracy for speed, such as Winograd's convolution.
        tune: let backends measure which of their kernels are fastest on this machine, the first time that they meet a
            layer, and keep that for later sessions. ``opencl`` does; it takes seconds to minutes. ``x86`` and ``host``
            have nothing to measure and ignore it.
        fallback: ``"never"`` forbids ``host`` to run what the named backends cannot.
        placement: node name pattern to backend, for nodes that must run there.
        optimize: run the graph passes first; those of a .lite file were run when it was made.
        plans: how many plans, one for each set of input shapes, are kept at most.
        plugins: the plugins to use instead of the installed ones, for tests.
        options: passed to the reader of the file, for example ``params=``.

    Raises:
        ModelFormatError: the file is not a model that can be read here, or is damaged.
        UnsupportedOperatorError: operators cannot be lowered or run; all are listed.
        BackendUnavailableError: a backend asked for by name cannot be used.
    """
    if not isinstance(model, (Graph, str, os.PathLike)):
        raise InputError(f"model must be a path or a Graph, is {type(model).__name__}")
    if isinstance(model, Graph) and options:
        raise InputError(f"a graph takes no reader options, given: {', '.join(options)}")
    with collector_paused():
        file = None
        if isinstance(model, Graph):
            graph = model
        elif LITE_FORMAT.sniff(Path(model)) and not options:
            file = ModelFile.open(model)
            graph = file.graph(verify=False)  # what a file has prepared may not need the constants
        else:
            from lite_core.formats import read_model  # not at the top: a .lite file needs no readers

            graph = read_model(model, host=plugins, **options)
        return Session(
            graph,
            backend=backend,
            threads=threads,
            precision=precision,
            exact=exact,
            tune=tune,
            fallback=fallback,
            placement=placement,
            run_passes=optimize and not (file is not None and file.optimized),
            plans=plans,
            plugins=plugins,
            file=file,
        )


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
        exact: bool = False,
        tune: bool = False,
        fallback: str = "host",
        placement: Mapping[str, str] | None = None,
        run_passes: bool = True,
        plans: int = _MOST_PLANS,
        plugins: PluginHost | None = None,
        file: ModelFile | None = None,
    ) -> None:
        if precision not in _PRECISIONS:
            raise InputError(f"precision must be one of {', '.join(_PRECISIONS)}, is {precision!r}")
        for name, number in (("threads", threads), ("plans", plans)):
            if number is not None and (not isinstance(number, int) or number < 1):
                raise InputError(f"{name} must be a whole number, at least 1, is {number!r}")
        host = plugins or default_host()
        self._options = Options(threads or os.cpu_count() or 1, precision, exact, tune)
        self._selection = select_devices(
            backend,
            available_backends(host),
            fallback=fallback,
            left_out=left_out_backends(host),
            targets=[] if file is None else [record.backend for record in file.targets],
        )
        candidates = self._selection.candidates
        self._notes: list[str] = []
        self._pins = dict(placement or {})
        self._from_file: Prepared | None = None
        if file is not None:
            if not self._pins:
                self._from_file = Prepared.find(file, candidates, self._options, backend_sources(host), self._notes)
            if self._from_file is None:
                _check_operators(graph, file)
                file.verify_constants(graph.every_constant())
        self.graph = graph if self._from_file else self._ready(graph, host, run_passes, file is None)
        self._placement = (
            self._from_file.placement(self.graph) if self._from_file else place(self.graph, candidates, self._pins)
        )
        self._latest = self._placement
        self._plans: OrderedDict[_Signature, _PlanSlot] = OrderedDict()
        self._most_plans = plans
        self._hits = self._misses = self._evictions = 0
        self._lock = threading.Lock()
        self._planner = Planner(self._selection, self._pins, self._options, ScratchPool(), self._notes)
        self.inputs: Mapping[str, TensorType] = MappingProxyType({v.name: v.type for v in self.graph.inputs})
        self.outputs: Mapping[str, TensorType] = MappingProxyType({v.name: v.type for v in self.graph.outputs})
        self._wanted = [(v.name, v.dtype.numpy) for v in self.graph.inputs]
        self._output_names = [v.name for v in self.graph.outputs]  # a value may be given out twice
        #: The profile of the last run with ``profile=``, whichever thread it was on.
        self.last_profile: RunProfile | None = None

    @staticmethod
    def _ready(graph: Graph, host: PluginHost, run_passes: bool, copy: bool) -> Graph:
        """The graph checked, optimized where that is wanted, every type inferred."""
        from lite_core import ops, passes  # not at the top: what a file has prepared needs neither
        from lite_core.ops.infer import infer_graph

        ops.verify(graph)
        if run_passes:
            graph = passes.optimize(graph, extra=[item for _, item in host.ask("lite_passes")])[0]
        elif copy:
            graph = graph.copy()
        graph.align_constants()  # after the passes: most weights are new arrays by then and need no copy
        infer_graph(graph)
        return graph

    # **** running ****

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        out: Mapping[str, Array] | None = None,
        profile: RunProfile | bool | None = None,
        **named: Any,
    ) -> dict[str, Array]:
        """Run the model.

        Args:
            inputs: an array (or what NumPy makes one of) for each input, by name.
            out: arrays to write outputs into, by name, contiguous and of the right type.
            profile: filled with the time of each partition and kernel; ``True`` makes one, which is then
                :attr:`last_profile`.
            named: inputs whose names are identifiers may be given as keywords.

        Returns:
            Output name to array, in the model's order. The arrays are the caller's own: no later run,
            no other thread and not even the end of the session changes them.

        Raises:
            InputError: an input is missing, unknown, or does not fit in shape or element type.
        """
        if profile:
            return self._run_profiled(inputs, out, RunProfile() if profile is True else profile, named)
        arrays, plan = self._prepared(inputs, named)
        return self._run(plan, arrays, out, None)

    def prepare(self, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """Compile everything for input shapes before the first run.

        Args:
            shapes: a shape for each input with unknown dimensions; the others have their own.

        Raises:
            InputError: a shape is missing or does not fit.
        """
        self.plan(shapes)

    def plan(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Plan:
        """The plan for input shapes, made if need be: as text it lists the partitions, the copies and the arenas.

        Args:
            shapes: as for :meth:`prepare`.
        """
        return self._plan(tuple(check_shapes(self.graph.name, self.graph.inputs, shapes or {}).values()))

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> Binding:
        """Tie arrays to inputs and outputs once, to run without copies again and again.

        Args:
            inputs: arrays the caller fills before each run.
            outputs: arrays that receive the outputs; allocated by a first run when omitted.
        """
        return Binding(self, inputs, outputs)

    # **** looking ****

    def assignment(self) -> tuple[NodeAssignment, ...]:
        """Which node runs where, and why not on a preferred device: of the plan that was made last.

        Before there is one, where the nodes would go if copies cost nothing.
        """
        return self._latest.everywhere

    @property
    def selection_log(self) -> tuple[str, ...]:
        """One line for each backend that was considered, and then the :attr:`notes`."""
        return (*self._selection.log, *self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for all that a model file has prepared and that could not be used, and for what failed to compile."""
        return tuple(dict.fromkeys(self._notes))

    @property
    def plan_statistics(self) -> PlanStatistics:
        """How often a run found a plan for its input shapes."""
        with self._lock:
            return PlanStatistics(self._hits, self._misses, self._evictions, len(self._plans), self._most_plans)

    @property
    def devices(self) -> tuple[str, ...]:
        """Labels of the devices that run at least one node, most nodes first."""
        return tuple(label for label, _ in self._counts().most_common())

    def _counts(self) -> Counter[str]:
        """How many nodes each device runs."""
        return Counter(a.device for a in self.assignment())

    def describe(self) -> str:
        """The session in words: inputs, outputs, devices and how many nodes each runs, and why."""
        lines = [f"model {self.graph.name}: {len(self.graph.nodes)} nodes"]
        lines += [f"  input  {name}: {type_}" for name, type_ in self.inputs.items()]
        lines += [f"  output {name}: {type_}" for name, type_ in self.outputs.items()]
        lines += [f"  {count} node(s) on {label}" for label, count in self._counts().items()]
        refused = Counter((a.device, label, why) for a in self.assignment() for label, why in a.refusals)
        lines += [
            f"  {count} node(s) on {device}, not {label}: {why}" for (device, label, why), count in refused.items()
        ]
        lines += [f"  {line}" for line in self.selection_log]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Session {self.graph.name} on {', '.join(self.devices) or 'no device'}>"

    # **** inside ****

    def _prepared(self, inputs: Mapping[str, Any] | None, named: Mapping[str, Any]) -> tuple[list[Array], Plan]:
        """An array for every input, in order, and the plan for their shapes."""
        given = inputs if not named else named if inputs is None else None
        arrays = ready_arrays(self._wanted, given)
        if arrays is not None:
            # A plan is there only for shapes that fitted when it was made, so there is nothing left to check.
            plan = self._known_plan(tuple([array.shape for array in arrays]))
            if plan is not None:
                return arrays, plan
        arrays = list(to_arrays(self.graph.name, self.graph.inputs, inputs, named).values())
        return arrays, self._plan(tuple(array.shape for array in arrays))

    def _run(
        self, plan: Plan, arrays: Sequence[Array], out: Mapping[str, Array] | None, profile: RunProfile | None
    ) -> dict[str, Array]:
        if not out:
            return dict(zip(self._output_names, plan.run(arrays, None, profile)))
        check_out(self.outputs, out)
        late = overlapping(out, arrays)
        direct = {name: array for name, array in out.items() if name not in late}
        outputs = dict(zip(self._output_names, plan.run(arrays, direct, profile)))
        for name in late:
            outputs[name] = copy_into(out[name], outputs[name], name)
        return outputs

    def _run_profiled(
        self,
        inputs: Mapping[str, Any] | None,
        out: Mapping[str, Array] | None,
        profile: RunProfile,
        named: Mapping[str, Any],
    ) -> dict[str, Array]:
        arrays, plan = self._prepared(inputs, named)
        profile.clear()
        start = time.perf_counter()
        outputs = self._run(plan, arrays, out, profile)
        profile.seconds = time.perf_counter() - start
        self.last_profile = profile
        return outputs

    def _known_plan(self, signature: _Signature) -> Plan | None:
        """The plan for a signature where there is one already."""
        with self._lock:
            slot = self._plans.get(signature)
            if slot is None or slot.plan is None:
                return None
            self._plans.move_to_end(signature)
            self._hits += 1
        return slot.plan

    def _plan(self, signature: _Signature) -> Plan:
        """The plan for these input shapes, made when it is first needed and kept while it is in use.

        Threads that need the same new plan wait for it; those whose plan is there do not.
        """
        with self._lock:
            slot = self._plans.setdefault(signature, _PlanSlot())
            self._plans.move_to_end(signature)
            while len(self._plans) > self._most_plans:
                self._plans.popitem(last=False)
                self._evictions += 1
        with slot.lock:
            found = slot.plan is not None
            if slot.plan is None:
                slot.plan = self._make_plan(signature)
            with self._lock:
                self._hits += found
                self._misses += not found
            return slot.plan

    def _make_plan(self, signature: _Signature) -> Plan:
        start = time.perf_counter()
        with collector_paused():
            plan = self._restored_plan(signature) or self._new_plan(signature)
        self._latest = plan.placement
        logger.debug("planned for %s in %.1f ms\n%s", list(signature), (time.perf_counter() - start) * 1e3, plan)
        return plan

    def _restored_plan(self, signature: _Signature) -> Plan | None:
        """The plan that the model's file has for these shapes."""
        if self._from_file is None:
            return None
        record = self._from_file.plan_record(dict(zip(self.inputs, signature)), self._options.threads)
        if record is None:
            return None
        graph = self.graph.copy()
        for value, shape in zip(graph.inputs, signature):
            value.type = value.type.with_shape(shape)
        try:
            return self._from_file.restore(
                record, graph, lambda: self._infer(graph, signature), self._planner, self._options, self._notes
            )
        except CompileError as error:
            self._notes.append(str(error))
            return None

    def _new_plan(self, signature: _Signature) -> Plan:
        graph = self.graph.copy()
        self._infer(graph, signature)
        return self._planner.plan_decided(graph) or self._planner.plan(graph, self._placement)

    def _infer(self, graph: Graph, signature: _Signature) -> None:
        from lite_core.ops.infer import infer_graph

        try:
            infer_graph(graph, {n: t.with_shape(shape) for (n, t), shape in zip(self.inputs.items(), signature)})
        except GraphError as error:
            listed = ", ".join(f"{n}={list(shape)}" for n, shape in zip(self.inputs, signature))
            raise InputError(f"the model does not accept the input shapes {listed}: {error}") from None


class PlanStatistics(NamedTuple):
    """How a session's plans were used.

    Attributes:
        hits: runs that found a plan for the shapes of their inputs.
        misses: plans that had to be made.
        evictions: plans that made way for others.
        plans: how many there are now.
        capacity: how many there are at most.
    """

    hits: int
    misses: int
    evictions: int
    plans: int
    capacity: int


def _check_operators(graph: Graph, file: ModelFile) -> None:
    """Say at once which operators of a model file this version does not have.

    Raises:
        UnsupportedOperatorError: there are some.
    """
    from lite_core import __version__, ops

    unknown: dict[str, list[str]] = {}
    for scope in graph.walk():
        for node in scope.nodes:
            if ops.find(node.op, node.domain) is None:
                unknown.setdefault(node.qualified_op, []).append(node.name)
    if unknown:
        why = f"the file was written by {file.producer}; lite-core {__version__} has no such operator"
        cure = "pip install --upgrade lite-core, and the plugin that brings the operator, if one does"
        raise UnsupportedOperatorError(
            f"model {str(file.path)!r}", [OperatorProblem(op, why, tuple(nodes), cure) for op, nodes in unknown.items()]
        )


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
