"""The HTML of each kind of object that a notebook shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

from lite_core.ir import Graph, TensorType
from lite_core.schedule import NodeAssignment, Plan
from lite_core.session import Binding, RunProfile, Session
from lite_tools.commands.conversions import size_text
from lite_tools.commands.profile_rows import unaccounted_seconds
from lite_tools.conversion import Check, ConversionReport, TargetReport
from lite_tools.notebook.parts import Bar, Number, card, folded, listed, table
from lite_tools.quantization.schemes import stored_bytes

__all__ = ["html"]

#: Operators that a line names.
_MOST_OPERATORS = 5


@singledispatch
def html(shown: object) -> str | None:
    """Return an object as HTML for a notebook: safe for any names in a model, without scripts or external resources.

    Args:
        shown: a session, plan, profile, binding, graph or report of a conversion; for others None is returned.
    """
    return None


@html.register
def _session(shown: Session) -> str:
    if shown.closed:
        return card("session of", shown.name, "closed")
    by_device: dict[str, list[NodeAssignment]] = {}
    for assignment in shown.assignment():
        by_device.setdefault(assignment.device, []).append(assignment)
    nodes = sum(map(len, by_device.values()))
    options = shown.planner.options
    source = f", from {shown.file.path}" if shown.file else ""
    devices = [
        (label, Number(str(len(own))), _operators(a.op for a in own))
        for label, own in sorted(by_device.items(), key=lambda item: -len(item[1]))
    ]
    refused = Counter((a.device, label, why) for own in by_device.values() for a in own for label, why in a.refusals)
    against = [(on, Number(str(n)), label, why) for (on, label, why), n in refused.most_common()]
    return card(
        "session of",
        shown.name,
        f"{_counted(nodes, 'node')}{source}; precision {shown.planner.precision.text}, threads: {options.threads}",
        _values(shown.inputs, shown.outputs),
        table(("runs on", "nodes", "operators"), devices),
        listed(shown.notes),
        table(("runs on", "nodes", "and not on", "because"), against, most=4),
        folded("devices that were considered, and what computes in which type", listed(_considered(shown))),
    )


def _considered(shown: Session) -> list[str]:
    return [*shown.computes, *(line for line in shown.selection_log if line not in shown.notes)]


@html.register
def _plan(shown: Plan) -> str:
    steps = [(Number(str(number)), step.describe()) for number, step in enumerate(shown.steps)]
    arenas = [(memory.space, Number(size_text(size))) for memory, size in shown.arenas]
    inputs = ", ".join(f"{value.name} {value.type}" for value in shown.graph.inputs[:_MOST_OPERATORS])
    more = f" and {len(shown.graph.inputs) - _MOST_OPERATORS} more" * (len(shown.graph.inputs) > _MOST_OPERATORS)
    on = ", ".join(dict.fromkeys(label for _, label in shown.partitions))
    return card(
        "plan for",
        inputs + more,
        f"{_counted(len(shown.graph.nodes), 'node')}, {_counted(len(steps), 'step')} on {on or 'no device'}",
        table(("", "step"), steps, most=20),
        table(("memory of a run in", "size"), arenas),
    )


@html.register
def _profile(shown: RunProfile) -> str:
    whole = shown.seconds
    parts = [_timed((p.partition, p.device, Number(str(p.nodes))), p.seconds, whole) for p in shown.partitions]
    copied = sum(copy.seconds for copy in shown.copies)
    parts += [_timed(("copies", "", Number("")), copied, whole)] if shown.copies else []
    parts += [_timed(("outside of partitions", "", Number("")), unaccounted_seconds(shown), whole)] if parts else []
    kernels = [
        (
            *_timed((k.kernel, k.op, _rate(k.flops, k.seconds), _rate(k.bytes, k.seconds)), k.seconds, whole),
            ", ".join(k.nodes),
        )
        for k in sorted(shown.kernels, key=lambda kernel: -kernel.seconds)
    ]
    by_op = [("other" if op == "-" else op, seconds) for op, seconds in shown.by_op().items()]
    measured = {kernel.partition for kernel in shown.kernels}
    by_op += [(f"all of {p.partition}", p.seconds) for p in shown.partitions if p.partition not in measured]
    operators = [_timed((op,), seconds, whole) for op, seconds in sorted(by_op, key=lambda item: -item[1])]
    copies = [
        (c.value, c.source, c.target, Number(size_text(c.bytes) if c.bytes else "zero copy"), _time(c.seconds))
        for c in shown.copies
    ]
    times = ("time", "of the run", "")
    return card(
        "profile of a run:",
        f"{whole * 1e3:.3f} ms" if parts else "nothing was recorded",
        ", ".join(f"{device} {seconds * 1e3:.3f} ms" for device, seconds in shown.by_device().items()),
        table(("partition", "device", "nodes", *times), parts),
        table(("operators", *times), operators, most=8),
        folded(
            _counted(len(kernels), "kernel"),
            table(("kernel", "operators", "GFLOP/s", "GB/s", *times, "nodes"), kernels, most=50),
        ),
        table(("copied", "from", "to", "size", "time"), copies),
        listed(f"{part.partition}: {note}" for part in shown.partitions for note in part.notes),
    )


@html.register
def _binding(shown: Binding) -> str:
    inputs, outputs = (
        {name: TensorType.of_array(array) for name, array in side.items()} for side in (shown.inputs, shown.outputs)
    )
    return card("binding of", "arrays", "each run reads and writes these", _values(inputs, outputs))


@html.register
def _graph(shown: Graph) -> str:
    weights = sum(stored_bytes(array) for array in shown.every_constant())
    counts = shown.op_counts()
    operators = [(op, Number(str(count))) for op, count in counts.items()]
    return card(
        "graph",
        shown.name,
        f"{sum(counts.values())} nodes, {len(counts)} operators, weights {size_text(weights)}",
        _values({v.name: v.type for v in shown.inputs}, {v.name: v.type for v in shown.outputs}),
        folded(f"{len(counts)} operators", table(("operator", "nodes"), operators, most=100)),
    )


@html.register
def _conversion(shown: ConversionReport) -> str:
    before, after = shown.before, shown.after
    sizes = [(name, Number(size_text(size))) for name, size in shown.split.items() if size]
    targets = [_target(target, shown.checks) for target in shown.targets]
    checks = [
        (c.target, str(c.threads or ""), _shapes(c.shapes), c.data, _result(c), Number(f"{c.limit:.3g}"))
        for c in shown.checks
    ]
    refusals = Counter(
        (refusal.op, target.name, refusal.reason) for target in shown.targets for refusal in target.refusals
    )
    refused = [(op, on, Number(str(count)), why) for (op, on, why), count in refusals.most_common()]
    notes = [*shown.warnings, *(note for target in shown.targets for note in target.notes), *shown.notes]
    agreed = "not verified" if not shown.checks else "verified" if shown.agrees else "its results DISAGREE"
    return card(
        "conversion of",
        shown.model,
        f"to {shown.output}, {size_text(shown.size)}; {before.nodes} nodes read, {after.nodes} written; {agreed}",
        table(("target", "plugin", "nodes", "plans", "saved", "verified"), targets),
        table(("operator", "refused by", "nodes", "because"), refused, most=4),
        listed(notes),
        folded("verification", table(("on", "threads", "shapes", "inputs", "difference", "limit"), checks)),
        folded("size of the file", table(("part", "size"), sizes)),
        folded("passes that changed the graph", listed(shown.passes)),
    )


def _values(inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType]) -> str:
    """Return a table of inputs and outputs: names, element types, shapes."""
    sides = (("input", inputs), ("output", outputs))
    rows = [(kind, name, str(t.dtype), _dims(t)) for kind, types in sides for name, t in types.items()]
    return table(("", "name", "element type", "shape"), rows)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _dims(type: TensorType) -> str:
    return "unknown" if type.shape is None else "[" + ", ".join(map(str, type.shape)) + "]"


def _operators(ops: Iterable[str]) -> str:
    counts = Counter(ops).most_common()
    more = [f"{len(counts) - _MOST_OPERATORS} more"] if len(counts) > _MOST_OPERATORS else []
    return ", ".join([*(f"{count} {op}" for op, count in counts[:_MOST_OPERATORS]), *more])


def _timed(row: tuple[Any, ...], seconds: float, whole: float) -> tuple[Any, ...]:
    """Return a row followed by a time, its share of the run, and a bar."""
    share = seconds / whole if whole else 0.0
    return (*row, _time(seconds), Number(f"{share:.1%}"), Bar(share))


def _time(seconds: float) -> Number:
    return Number(f"{seconds * 1e3:.3f} ms")


def _rate(amount: float, seconds: float) -> Number:
    return Number(f"{amount / seconds / 1e9:.1f}" if amount and seconds else "")


def _target(target: TargetReport, checks: Iterable[Check]) -> tuple[Any, ...]:
    own = [check.agrees for check in checks if check.target == target.name]
    verified = ("yes" if all(own) else "DISAGREES") if own else "no device here" if target.absent else "no"
    nodes = ", ".join(f"{count} on {name}" for name, count in target.nodes.items()) or "not asked"
    name = " ".join(filter(None, (target.name, target.level)))
    return name, target.plugin, nodes, Number(str(len(target.plans))), Number(size_text(target.saved_bytes)), verified


def _result(check: Check) -> str:
    return check.problem or f"{check.worst:.3g}, {'within' if check.agrees else 'BEYOND'} the limit"


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in shapes.items())
