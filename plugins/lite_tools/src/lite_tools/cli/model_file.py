"""What a ``.lite`` file holds, for whom it is prepared, and whether it is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lite_core.container import ModelFile, PlanRecord, TargetRecord
from lite_core.errors import ModelFormatError
from lite_core.session import OpenedModel, open_model
from lite_tools.commands.printing import console, table

__all__ = ["file_report", "open_whole", "prepared_shapes", "print_file_report", "print_targets"]


def open_whole(model: str, reader_options: Mapping[str, Any]) -> OpenedModel:
    """A model, all of whose constants are sound.

    Raises:
        ModelFormatError: it cannot be read; names the sections of a ``.lite`` file that are damaged.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
    """
    opened = open_model(model, reader_options=reader_options)
    if opened.file is not None:
        opened.file.verify_constants(opened.graph.every_constant())
    return opened


def prepared_shapes(file: ModelFile | None) -> Mapping[str, tuple[int, ...]]:
    """The input shapes of the first plan in a model file; none where there is no plan, or for other files (None)."""
    return {} if file is None else next((plan.shapes for target in file.targets for plan in target.plans), {})


def file_report(file: ModelFile) -> dict[str, Any]:
    """Header, targets and sections of a model file; reads all of it, to compare the checksums.

    Raises:
        ModelFormatError: the targets cannot be read; damage elsewhere is told section by section.
    """
    users: dict[str, list[str]] = {}
    for target in file.targets:
        for number, plan in enumerate(target.plans):
            for name in (name for part in plan.partitions for name in part.sections):
                users.setdefault(name, []).append(f"{target.backend}/{number}")
    return {
        "file": str(file.path),
        "format": file.format_version,
        "written_by": file.producer,
        "optimized": file.optimized,
        "metadata": dict(file.metadata),
        "targets": [_target(target) for target in file.targets],
        "sections": [
            {
                "name": section.name,
                "offset": section.offset,
                "bytes": section.size,
                "whole": _is_whole(file, section.name),
                "plans": list(dict.fromkeys(users.get(section.name, ()))),
            }
            for section in file.sections
        ],
    }


def _target(target: TargetRecord) -> dict[str, Any]:
    return {
        "backend": target.backend,
        "plugin": target.plugin,
        "precision": target.precision,
        "exact": target.exact,
        "nodes": dict(Counter(filter(None, target.devices))),
        "plans": [
            {
                "shapes": {name: list(shape) for name, shape in plan.shapes.items()},
                "threads": plan.threads,
                "partitions": [[part.name, part.backend, len(part.nodes)] for part in plan.partitions],
            }
            for plan in target.plans
        ],
    }


def _is_whole(file: ModelFile, section: str) -> bool:
    try:
        file.section(section)
    except ModelFormatError:
        return False
    return True


def print_file_report(report: dict[str, Any]) -> None:
    """Show a report: a line about the file, and a table of its sections."""
    console.print(
        f"{report['file']}: format {report['format']}, written by {report['written_by']}, "
        f"{'after' if report['optimized'] else 'before'} the optimization passes\n",
        markup=False,
    )
    table(
        ("section", "offset", "bytes", "checksums", "used by the plans"),
        [
            (s["name"], s["offset"], s["bytes"], "fit" if s["whole"] else "DO NOT FIT", ", ".join(s["plans"]))
            for s in report["sections"]
        ],
    )


def print_targets(file: ModelFile) -> None:
    """A line for each target: which plugin prepared it, where the nodes run, and for which shapes there are plans."""
    for target in file.targets:
        counts = Counter(filter(None, target.devices))
        nodes = ", ".join(f"{count} nodes on {name}" for name, count in counts.most_common()) or "no device was asked"
        settings = f"{target.precision}{', exact' if target.exact else ''}"
        console.print(f"for {target.backend}, by {target.plugin}, {settings}: {nodes}", markup=False)
        for plan in target.plans:
            console.print(f"  prepared for {_described(plan)}", markup=False)


def _described(plan: PlanRecord) -> str:
    shapes = ", ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in plan.shapes.items())
    return f"{shapes}, {plan.threads} thread{'s' if plan.threads > 1 else ''}"
