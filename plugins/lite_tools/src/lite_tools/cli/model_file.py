"""Contents of ``.lite`` files: sections with checksums, targets and prepared plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lite_core.container import ModelFile, PlanRecord, TargetRecord
from lite_core.errors import ModelFormatError
from lite_core.session import OpenedModel, open_model
from lite_tools.commands.printing import console, table

__all__ = ["file_report", "open_verified", "prepared_shapes", "print_file_report", "print_targets"]


def open_verified(model: str, reader_options: Mapping[str, Any]) -> OpenedModel:
    """Open a model and verify the checksums of all its constants.

    Raises:
        ModelFormatError: it cannot be read; for a ``.lite`` file, the message names damaged sections.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
    """
    opened = open_model(model, reader_options=reader_options)
    if opened.file is not None:
        opened.file.verify_constants(opened.graph.every_constant())
    return opened


def prepared_shapes(file: ModelFile | None) -> Mapping[str, tuple[int, ...]]:
    """Return the input shapes of the first plan in a model file; empty without a plan, or if the file is None."""
    return {} if file is None else next((plan.shapes for target in file.targets for plan in target.plans), {})


def file_report(file: ModelFile) -> dict[str, Any]:
    """Return header, targets and sections of a model file, whose content is read completely to verify checksums.

    Raises:
        ModelFormatError: the targets cannot be read; damage of other sections is in the report.
    """
    users: dict[str, list[str]] = {}
    for target in file.targets:
        for number, plan in enumerate(target.plans):
            for name in (name for part in plan.partitions for name in part.sections):
                users.setdefault(file.section_of(name), []).append(f"{target.backend}/{number}")
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
                "whole": _is_intact(file, section.name),
                "plans": list(dict.fromkeys(users.get(section.name, ()))),
            }
            for section in file.sections
        ],
    }


def _target(target: TargetRecord) -> dict[str, Any]:
    return {
        "backend": target.backend,
        "level": target.level,
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


def _is_intact(file: ModelFile, section: str) -> bool:
    try:
        file.section(section)
    except ModelFormatError:
        return False
    return True


def print_file_report(report: dict[str, Any]) -> None:
    """Print a report: a line about the file, and a table of its sections."""
    console.print(
        f"{report['file']}: format {report['format']}, written by {report['written_by']}, "
        f"{'after' if report['optimized'] else 'before'} the optimization passes\n",
        markup=False,
    )
    table(
        ("section", "offset", "bytes", "checksums", "used by plans"),
        [
            (s["name"], s["offset"], s["bytes"], "ok" if s["whole"] else "WRONG", ", ".join(s["plans"]))
            for s in report["sections"]
        ],
    )


def print_targets(file: ModelFile) -> None:
    """Print for each target the plugin that prepared it, the devices of the nodes, and the shapes of its plans."""
    for target in file.targets:
        counts = Counter(filter(None, target.devices))
        nodes = (
            ", ".join(f"{count} nodes on {name}" for name, count in counts.most_common()) or "no device was available"
        )
        settings = f"{target.precision}{', exact' if target.exact else ''}"
        name = " ".join(filter(None, (target.backend, target.level)))
        console.print(f"for {name}, by {target.plugin}, {settings}: {nodes}", markup=False)
        for plan in target.plans:
            console.print(f"  prepared for {_plan_text(plan)}", markup=False)


def _plan_text(plan: PlanRecord) -> str:
    shapes = ", ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in plan.shapes.items())
    return f"{shapes}, {plan.threads} thread{'s' if plan.threads > 1 else ''}"
