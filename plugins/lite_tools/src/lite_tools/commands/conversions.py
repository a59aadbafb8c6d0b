"""Display of a conversion's report as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_tools.commands.printing import console, table
from lite_tools.commands.quantization_tables import accuracy_row, print_quantization
from lite_tools.conversion import Check, ConversionReport, TargetReport

__all__ = ["ConversionReport", "print_report", "size_text"]

_MAX_WEIGHTS_SHOWN = 8


def print_report(report: ConversionReport) -> None:
    """Print a conversion as tables."""
    before, after = report.before, report.after
    console.print(f"{report.model}\n", markup=False)
    sides = [("read", before), ("written", after)]
    table(
        ("graph", "nodes", "operators", "weights"),
        [(w, s.nodes, len(s.operators), size_text(s.weight_bytes)) for w, s in sides],
    )
    names = dict.fromkeys([*after.operators, *before.operators])
    counts = [(name, before.operators.get(name, 0), after.operators.get(name, 0)) for name in names]
    console.print()
    if changed := [row for row in counts if row[1] != row[2]]:
        table(("operator", "read", "written"), changed)
    console.print(f"passes: {', '.join(report.passes) or 'none changed anything'}\n", markup=False)
    heads = ("target", "nodes", "plans", "threads", "saved", "verified")
    table(heads, [_target_row(target, report.checks) for target in report.targets])
    _print_refusals(report.targets)
    _print_accuracy(report)
    if report.quantization is not None:
        console.print()
        print_quantization(report.quantization)
    if report.checks:
        console.print()
        rows = [
            (c.target, str(c.threads or "-"), _shapes(c.shapes), c.data, _outcome(c), _used(c)) for c in report.checks
        ]
        heads = ("verified on", "threads", "input shapes", "inputs", "largest difference", "prepared plan used")
        table(heads, rows, title="differences are shares of the output's range")
    console.print()
    for warning in report.warnings:
        console.print(f"warning: {warning}", markup=False)
    for note in (*(note for target in report.targets for note in target.notes), *report.notes):
        console.print(f"note: {note}", markup=False)
    parts = ", ".join(f"{name} {size_text(size)}" for name, size in report.split.items() if size)
    console.print(f"written: {report.output} ({size_text(report.size)}: {parts})", markup=False)


def _target_row(target: TargetReport, checks: Sequence[Check]) -> tuple[str, ...]:
    nodes = ", ".join(f"{count} on {name}" for name, count in target.nodes.items()) or "not asked"
    plans = "; ".join(map(_shapes, target.plans)) or "none"
    threads = ", ".join(map(str, target.threads)) or "-"
    own = [check.agrees for check in checks if check.target == target.name]
    verified = ("yes" if all(own) else "DISAGREES") if own else "no device" if target.absent else "no"
    name = " ".join(filter(None, (target.name, target.level)))
    return f"{name} ({target.plugin})", nodes, plans, threads, size_text(target.saved_bytes), verified


def _print_refusals(targets: Sequence[TargetReport]) -> None:
    rows: dict[tuple[str, str, str], int] = {}
    for target in targets:
        for refusal in target.refusals:
            key = (refusal.op, target.name, refusal.reason)
            rows[key] = rows.get(key, 0) + 1
    if rows:
        console.print()
        table(("operator", "refused by", "nodes", "reason"), [(op, on, n, why) for (op, on, why), n in rows.items()])


def _print_accuracy(report: ConversionReport) -> None:
    if not report.weights:
        return
    stored = [w for w in report.weights if not w.kept]
    types = " and ".join(sorted({w.stored_as for w in stored})) or report.stored_as
    console.print(f"\n{len(stored)} of {len(report.weights)} weights are stored as {types}")
    worst = sorted(stored, key=lambda w: -w.relative_rms_error)[:_MAX_WEIGHTS_SHOWN]
    kept = [w for w in report.weights if w.kept]
    if worst:
        table(
            ("weight", "operator", "shape", "stored as", "largest error", "RMS error"),
            [
                (w.name, w.op, _dims(w.shape), w.stored_as, f"{w.max_error:.3g}", f"{w.relative_rms_error:.2%}")
                for w in worst
            ],
            title="the largest relative RMS errors",
        )
    for weight in kept:
        console.print(f"{weight.name} is not changed: {weight.kept}", markup=False)
    console.print()
    table(
        ("output", "largest difference", "signal/noise", "same top class"),
        map(accuracy_row, report.accuracy),
        title="differences are shares of the output's range",
    )


def _outcome(check: Check) -> str:
    if check.problem:
        return check.problem
    return f"{check.worst:.3g}, {'within' if check.agrees else 'BEYOND'} {check.limit:.3g}"


def _used(check: Check) -> str:
    return "-" if check.prepared is None else "yes" if check.prepared else "no, see the warning"


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name}={_dims(shape)}" for name, shape in shapes.items())


def _dims(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def size_text(size: int) -> str:
    """Format a number of bytes."""
    return f"{size / 1e6:.2f} MB" if size >= 10_000 else f"{size} bytes"
