"""The session: a loaded model with cached plans."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import get_ident
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from lite_core.backend import Options
from lite_core.checks import require
from lite_core.collector import collector_paused
from lite_core.container import ModelFile
from lite_core.container.trust import saved_setting
from lite_core.deadline import run_in_thread, run_within
from lite_core.errors import GraphError, InputError, SessionClosedError
from lite_core.ir import Array, Graph, TensorType
from lite_core.memory import ScratchPool
from lite_core.notebooks import Shown, signature_text
from lite_core.observing import Observer
from lite_core.ops.infer import have_sizes, infer_graph
from lite_core.plugins import PluginManager, backend_sources, default_plugins
from lite_core.plugins.installed import tool
from lite_core.processors import useful_threads
from lite_core.schedule import CompileError, NodeAssignment, Plan, PlanStatistics, RunProfile, select_devices
from lite_core.schedule.plan import copy_into
from lite_core.schedule.plan_cache import PlanCache, Signature
from lite_core.schedule.planner import Planner
from lite_core.schedule.precision import Precision
from lite_core.session.arguments import check_out, check_shapes, overlapping, ready_arrays, to_arrays
from lite_core.session.binding import Binding
from lite_core.session.opening import OpenedModel
from lite_core.session.prepared import Prepared, place_without_code
from lite_core.session.ready import make_ready
from lite_core.session.shortfalls import shortfalls

__all__ = ["MOST_PLANS", "STORED_TAPS", "Session", "Taps"]

logger = logging.getLogger("lite.session")

#: Patterns of values to return, or a mapping of patterns to functions that receive a ``lite_tools.taps.Tap``.
Taps = Sequence[str] | Mapping[str, Callable[[Any], None] | None]

#: Default number of plans that a session caches.
MOST_PLANS = 16
#: What is left of a session that was closed.
_KEPT = {"closed", "inputs", "last_profile", "name", "outputs", "_bindings", "_freed", "_threads"}
#: Key of the metadata of a .lite file: patterns, one a line, of the values that every run of the model prints.
STORED_TAPS = "taps"


class Session(Shown):
    """A model ready to run. Thread-safe: many threads may run one session at once.

    Create one with :func:`lite_core.load`. ``inputs`` and ``outputs`` map names to types, in the model's order.

    Args:
        model: the opened model; the session takes ownership of its graph unless the graph belongs to the caller.
        backend: this and all others are those of :func:`lite_core.load`.
    """

    def __init__(
        self,
        model: OpenedModel,
        *,
        backend: str | Sequence[str],
        fallback: str,
        placement: Mapping[str, str] | None,
        backend_options: Mapping[str, Mapping[str, Any]] | None,
        plugins: PluginManager | None,
        threads: int | None,
        precision: str | Mapping[str, str] | None,
        exact: bool,
        tune: bool,
        optimize: bool,
        plans: int,
        saved: str | None,
        taps: Taps | None,
    ) -> None:
        for name, number in (("threads", 1 if threads is None else threads), ("plans", plans)):
            require(type(number) is int and number >= 1, name, "a whole number, at least 1", number)
        for name, flag in (("exact", exact), ("tune", tune), ("optimize", optimize)):
            require(isinstance(flag, bool), name, "True or False", flag)
        is_pins = isinstance(placement, Mapping) and {type(t) for pin in placement.items() for t in pin} <= {str}
        require(is_pins or placement is None, "placement", "a mapping of node name patterns to devices", placement)
        require(isinstance(plugins, (PluginManager, type(None))), "plugins", "a PluginManager", plugins)
        plugins, file = plugins or default_plugins(), model.file
        if precision is None:
            precision = file.targets[0].precision if file and file.targets else "float32"
        by_node = Precision.of(precision)
        #: The .lite file of the model, else None.
        self.file: ModelFile | None = file
        self._options = Options(threads or useful_threads(), by_node.default, exact, tune)
        named = model.graph.metadata.get("targets", "").split()
        made_for = {record.backend: record.plugin for record in file.targets} if file else dict.fromkeys(named, "")
        #: The backends that the model's file was made for, the preferred one first.
        self.targets = tuple(made_for)
        self._selection = select_devices(
            backend, plugins, fallback=fallback, targets=made_for, backend_options=backend_options
        )
        candidates = self._selection.candidates
        self._notes = list(self._selection.notes)
        self._pins = dict(placement or {})
        self._prepared: Prepared | None = None
        use = saved_setting(saved)
        if file is not None:
            if not self._pins:
                sources = backend_sources(plugins)
                self._prepared = Prepared.find(file, candidates, self._options, by_node, sources, use, self._notes)
            if self._prepared is None or any(node.domain not in ("", "lite") for node in model.graph.nodes):
                from lite_core.ops.missing import check_operators  # not at the top: prepared plans need no operators

                check_operators(model.graph, file.path, file.producer)
            if self._prepared is None:
                file.verify_constants(model.graph.every_constant())
        if self._prepared:
            self.graph = model.graph
            self._selection = self._prepared.selection(self._selection)
            self._placement = self._prepared.placement(self.graph)
        else:
            self.graph = make_ready(
                model.graph, plugins, run_passes=optimize and not model.optimized, copy=model.is_callers
            ).graph
            by_node.check(self.graph)
            self._placement = place_without_code(file, self.graph, candidates, self._pins, use, self._notes)
        self._latest = self._placement
        self._latest_plan: Plan | None = None
        self._plans: PlanCache[Plan] = PlanCache(plans)
        #: Makes the plans, and has the options that they are compiled with.
        self.planner = Planner(self._selection, self._pins, self._options, ScratchPool(), self._notes, by_node)
        self.inputs: Mapping[str, TensorType] = MappingProxyType({v.name: v.type for v in self.graph.inputs})
        self.outputs: Mapping[str, TensorType] = MappingProxyType({v.name: v.type for v in self.graph.outputs})
        self._wanted = [(v.name, v.dtype.numpy) for v in self.graph.inputs]
        self._output_names = [v.name for v in self.graph.outputs]  # a value may be listed twice
        #: The model's name.
        self.name = self.graph.name
        #: The threads with runs in flight, each as often as it has some.
        self._threads: list[int] = []
        self._freed = {"_wanted"}
        #: True once :meth:`close` was called.
        self.closed = False
        self._bindings: WeakSet[Binding] = WeakSet()
        #: The profile of the last run with ``profile=``, in any thread.
        self.last_profile: RunProfile | None = None
        stored = taps is None and file is not None and STORED_TAPS in file.metadata
        self._tapped = self._tapped_runs(taps) if taps or stored else None
        self._has_taps = self._tapped is not None

    # **** running ****

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Sequence[str] | None = None,
        out: Mapping[str, Array] | None = None,
        profile: RunProfile | bool | None = None,
        timeout: float | None = None,
        **named: Any,
    ) -> dict[str, Array]:
        """Run the model.

        Args:
            inputs: an array, or anything NumPy converts to an array, for each input, by name.
            outputs: the values to return, instead of the model's outputs and those of ``taps``: names of values or
                nodes, or patterns; see :mod:`lite_tools.taps`.
            out: arrays to write outputs into, by name; contiguous and of the right type. An array for a cache may be
                in the place of the past cache among the inputs: then only new positions are written, if the device
                can do that.
            profile: receives the time of each partition and kernel; ``True`` creates a profile, available as
                :attr:`last_profile`.
            timeout: seconds after which the run stops. This is tested before each step of the plan and each iteration
                of a loop: one partition, or one operator of a backend, always runs to its end.
            named: inputs may be given as keywords, if their names are identifiers other than those above.

        Returns:
            Output name to array, in the model's order. The caller owns the arrays: no later run and no other thread
            changes them, and they outlive the session. For a value inside a loop or branch that ``outputs`` or taps
            name, a list with an array for each time that it was computed.

        Raises:
            InputError: an input is missing, unknown, given twice, or of a wrong shape or element type.
            RunTimeoutError: the time is over; the session can run again.
        """
        if timeout is not None:
            return run_within(timeout, lambda: self.run(inputs, outputs=outputs, out=out, profile=profile, **named))
        given = inputs if not named else named if inputs is None else None
        thread = get_ident()
        self._threads.append(thread)
        try:
            arrays = ready_arrays(self._wanted, given)
            # A cached plan implies that the shapes were checked when it was made.
            shapes = () if arrays is None else tuple([array.shape for array in arrays])
            plan = None if arrays is None else self._plans.find(shapes)
            if arrays is None or (plan is None and not have_sizes(self.graph.inputs, shapes)):
                arrays = list(to_arrays(self.graph.name, self.graph.inputs, inputs, named).values())
            if plan is None:
                plan = self._plans.get(tuple([array.shape for array in arrays]), self._make_plan)
            if self._has_taps or outputs is not None:
                self._tapped = self._tapped or self._tapped_runs(())
                run = partial(self._run_watched, plan, arrays, out, profile)
                return self._tapped.run(plan, arrays, outputs, run)  # type: ignore[no-any-return]
            if profile or out is not None:
                return self._run_watched(plan, arrays, out, profile)
            return dict(zip(self._output_names, plan.run(arrays)))
        finally:
            self._threads.remove(thread)

    async def run_async(self, inputs: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Array]:
        """Run the model in a thread of the event loop's executor: ``outputs = await session.run_async(inputs)``.

        Several runs may be awaited at once; see :meth:`run` for the arguments, results and errors. If the awaiting task
        is cancelled, the run ends before its next step, as by ``timeout``, and the task is resumed after that: nothing
        reads the inputs or writes to ``out`` any more.
        """
        return await run_in_thread(partial(self.run, inputs, **options))

    def prepare(self, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """Plan and compile for input shapes before the first run.

        Args:
            shapes: a shape for each input with symbolic dimensions; it may be omitted for the other inputs.

        Raises:
            InputError: a shape is missing or does not fit.
        """
        self.plan(shapes)

    def plan(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Plan:
        """Return the plan for input shapes. ``print`` shows its partitions, copies and arenas.

        Args:
            shapes: see :meth:`prepare`.
        """
        signature = tuple(check_shapes(self.graph.name, self.graph.inputs, shapes or {}).values())
        return self._plans.get(signature, self._make_plan)

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> Binding:
        """Bind arrays to inputs and outputs, to run repeatedly without copies.

        Args:
            inputs: arrays that the caller writes before each run.
            outputs: arrays that receive the outputs; if omitted, allocated by a first run. See ``out`` of :meth:`run`.
        """
        for name, given in (("inputs", inputs), ("outputs", {} if outputs is None else outputs)):
            require(isinstance(given, Mapping), name, "a mapping of names to arrays", given)
        run = partial(self.run, outputs=list(self.outputs)) if self._has_taps else self.run
        binding = Binding(run, self._bound, inputs, outputs, self._threads)
        self._bindings.add(binding)
        return binding

    def close(self) -> None:
        """Free compiled code, memory of devices and the mapped file, after the runs in flight have ended.

        Later runs, of bindings too, raise a :class:`~lite_core.errors.SessionClosedError`; closing again does nothing.
        Arrays that runs have returned stay valid. The end of a ``with`` block closes a session, too:
        ``with lite.load(path) as session``.

        Raises:
            SessionClosedError: it is called inside a run of this session, such as by a function of ``taps``.
        """
        if get_ident() in self._threads:
            raise SessionClosedError(f"the session of model {self.name!r} cannot be closed inside its own run")
        self.closed = True
        vars(self).pop("_wanted", None)  # which every run needs: no other begins
        is_in_use = True
        while is_in_use:
            for binding in self._bindings:
                binding.release()
            # A forked child lacks the threads of its parent.
            if is_in_use := bool({*self._threads} & sys._current_frames().keys()):
                time.sleep(0.001)
        freed = vars(self).keys() - _KEPT
        self._freed |= freed
        for name in freed:
            vars(self).pop(name, None)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # type checkers would no longer find misspelt attributes

        def __getattr__(self, name: str) -> Any:
            if name in vars(self).get("_freed", ()):
                raise SessionClosedError(f"the session of model {self.name!r} is closed; load the model again")
            raise AttributeError(f"Session has no attribute {name!r}")

    # **** inspection ****

    def assignment(self) -> tuple[NodeAssignment, ...]:
        """Return the device of each node, and why preferred devices do not run it, for the most recent plan.

        Before the first plan: the placement without considering the cost of copies.
        """
        return self._latest.all_assignments

    @property
    def selection_log(self) -> tuple[str, ...]:
        """One line for each backend that was considered, followed by the :attr:`notes`."""
        return tuple(dict.fromkeys((*self._selection.log, *self.notes)))

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each prepared part of a file that was not used, failed compilation, and reason for host only.

        The :attr:`shortfalls` follow.
        """
        return tuple(dict.fromkeys((*self._notes, *self.shortfalls)))

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """One line if nodes run on ``host`` that others refuse, and for a precision that devices do not compute in.

        Like :meth:`assignment` they are about the most recent plan.
        """
        return tuple(shortfalls(self.graph, self._latest, self.planner.precision))

    @property
    def computes(self) -> tuple[str, ...]:
        """One line for each partition of the most recent plan whose backend says which types it computes in."""
        return () if self._latest_plan is None else tuple(self._latest_plan.computes)

    @property
    def plan_statistics(self) -> PlanStatistics:
        """Hits, misses and evictions of the plan cache."""
        return self._plans.statistics

    @property
    def devices(self) -> tuple[str, ...]:
        """Labels of the devices that run at least one node, most nodes first."""
        return tuple(label for label, _ in self._counts().most_common())

    def _counts(self) -> Counter[str]:
        """Return the number of nodes on each device."""
        return Counter(a.device for a in self.assignment())

    def describe(self) -> str:
        """Return a description: inputs, outputs, the number of nodes on each device, and the reasons of refusals.

        After the first plan it also has the types that each partition computes in; see :attr:`computes`.
        """
        lines = [self._source_text()]
        lines += [f"  input  {name}: {type_}" for name, type_ in self.inputs.items()]
        lines += [f"  output {name}: {type_}" for name, type_ in self.outputs.items()]
        lines += [f"  {count} node(s) on {label}" for label, count in self._counts().items()]
        lines += [f"  {line}" for line in self.computes]
        refused = Counter((a.device, label, why) for a in self.assignment() for label, why in a.refusals)
        lines += [f"  {n} node(s) on {device}, not {label}: {why}" for (device, label, why), n in refused.items()]
        lines += [f"  {line}" for line in self.selection_log]
        return "\n".join(lines)

    def __repr__(self) -> str:
        if self.closed:
            return f"<Session of model {self.name}, closed>"
        lines = [self._source_text(), signature_text(self.inputs, self.outputs)]
        lines += ["nodes: " + ", ".join(f"{count} on {label}" for label, count in self._counts().most_common())]
        return "Session of " + "\n  ".join([*lines, *self.notes])

    # **** internals ****

    def _source_text(self) -> str:
        source = f", from {self.file.path}" if self.file else ""
        return f"model {self.graph.name}: {len(self.graph.nodes)} nodes{source}"

    def _tapped_runs(self, taps: Taps | None) -> Any:
        """Return lite-tools' part that reads values inside the model; None if a file's taps cannot be printed."""
        if make := tool("taps"):
            return make(self.graph, taps, self.planner, self._notes, self.file)
        cure = "to read values inside models: pip install 'lite-core[tools]'"
        if taps is not None:
            raise InputError(f"this needs a package that is not installed; {cure}")
        self._notes.append(f"the values that the model's taps name are not printed; {cure}")
        return None

    def _run_watched(
        self,
        plan: Plan,
        arrays: Sequence[Array],
        out: Mapping[str, Array] | None,
        profile: RunProfile | bool | None,
        observer: Observer | None = None,
    ) -> dict[str, Array]:
        """Run with given arrays for outputs, a profile or an observer.

        An array for an output that shares memory with an input is written last, unless the plan updates it in place.
        """
        recorded = RunProfile() if profile is True else profile or None
        if recorded is not None:
            require(isinstance(recorded, RunProfile), "profile", "a RunProfile, True or None", recorded)
            recorded.clear()
        start = time.perf_counter()
        check_out(self.outputs, out, plan.in_place)
        out = out or {}
        late = overlapping(out, dict(zip(self.inputs, arrays)), plan.in_place)
        direct = {name: array for name, array in out.items() if name not in late}
        outputs = dict(zip(self._output_names, plan.run(arrays, direct, recorded, observer)))
        for name in late:
            outputs[name] = copy_into(out[name], outputs[name], name)
        if recorded is not None:
            recorded.seconds = time.perf_counter() - start
            self.last_profile = recorded
        return outputs

    def _bound(self, inputs: dict[str, Array], outputs: dict[str, Array]) -> Callable[[], object] | None:
        """Return a function that runs on arrays of an earlier run without checks; None if some must be copied."""
        arrays = ready_arrays(self._wanted, inputs)
        plan = None if arrays is None else self._plans.find(tuple([array.shape for array in arrays]))
        if arrays is None or plan is None or len(outputs) < len(self.outputs) or self._has_taps:
            return None
        late = overlapping(outputs, dict(zip(self.inputs, arrays)), plan.in_place)
        views = {name: array.view() for name, array in outputs.items()}  # valid if the shape of an array is changed
        return None if late else partial(plan.run, [array.view() for array in arrays], views)

    def _make_plan(self, signature: Signature) -> Plan:
        start, known = time.perf_counter(), len(self._notes)
        advice = self._prepared.advice(dict(zip(self.inputs, signature))) if self._prepared else []
        try:
            with collector_paused():
                plan = self._restored_plan(signature) or self._new_plan(signature)
        except CompileError as error:
            notes = [note for note in dict.fromkeys(self._notes) if error.reason not in note]
            raise CompileError(error.placed, "; ".join([error.reason, *notes, *advice])) from error
        self._notes += advice if len(self._notes) > known else ()
        self._latest, self._latest_plan = plan.placement, plan
        logger.debug("planned for %s in %.1f ms\n%s", list(signature), (time.perf_counter() - start) * 1e3, plan)
        return plan

    def _restored_plan(self, signature: Signature) -> Plan | None:
        """Restore the plan that the model's file contains for these shapes, or return None."""
        shapes, prepared = dict(zip(self.inputs, signature)), self._prepared
        record = None if prepared is None else prepared.plan_record(shapes, self._options.threads)
        if prepared is None or record is None:
            return None
        graph = self.graph.copy()
        for value, shape in zip(graph.inputs, signature):
            value.type = value.type.with_shape(shape)
        try:
            return prepared.restore(record, graph, lambda: self._infer(graph, signature), self.planner, self._notes)
        except CompileError as error:
            self._notes.append(str(error))
            return None

    def _new_plan(self, signature: Signature) -> Plan:
        # A branch that the latest sizes decided may not be that of other sizes.
        latest = None if self._has_bodies else self._latest_plan
        if latest is not None and (resized := latest.resized(signature)) is not None:
            return resized
        graph = self.graph.copy()
        if self._prepared or not self._is_inferred_for(signature):
            self._infer(graph, signature)
        return self.planner.plan_decided(graph) or self.planner.plan(graph, self._placement)

    def _is_inferred_for(self, signature: Signature) -> bool:
        """Return True if the graph's types were already inferred from these shapes."""
        # A graph with branches is always inferred again: a branch that does not fit the given shapes keeps its types.
        return tuple([type.shape for type in self.inputs.values()]) == signature and not self._has_bodies

    @cached_property
    def _has_bodies(self) -> bool:
        return any(any(node.subgraphs) for node in self.graph.nodes)

    def _infer(self, graph: Graph, signature: Signature) -> None:
        if self._prepared and self.file:  # its graph was used as read: not verified, and types not inferred
            self.file.verify_constants(graph.every_constant())
        try:
            infer_graph(graph, {n: t.with_shape(shape) for (n, t), shape in zip(self.inputs.items(), signature)})
        except GraphError as error:
            listed = ", ".join(f"{n}={list(shape)}" for n, shape in zip(self.inputs, signature))
            raise InputError(f"the model does not accept the input shapes {listed}: {error}") from None
