"""Decoding of the records of targets from JSON.

The document is a list of :class:`~lite_core.container.records.TargetRecord`. A record is an object with the names of
its fields as keys, a tuple is a list, and a type is encoded as in :mod:`lite_core.container.types_decoder`. A field
that has a default may be missing.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from lite_core.container.records import PartitionRecord, PlanRecord, TargetRecord
from lite_core.container.types_decoder import decode_type
from lite_core.ir import TensorType

__all__ = ["decode_targets"]

_RECORDS = (TargetRecord, PlanRecord, PartitionRecord)


def decode_targets(
    document: Any, graph: Any, sections: Container[str], names: Mapping[str, str]
) -> tuple[TargetRecord, ...]:
    """Decode records from JSON, and check them against the file.

    Args:
        document: the JSON.
        graph: the JSON of the graph, to whose nodes and values the records refer.
        sections: names of the sections that saved state may be in.
        names: the name in this process of each symbol.

    Raises:
        LookupError, TypeError, ValueError: the JSON is not a list of records, or does not fit the file.
    """
    targets: tuple[TargetRecord, ...] = _decode(tuple[TargetRecord, ...], document, names)
    count = len(graph["nodes"])
    values = {v[0] for values in (graph["inputs"], *(n["out"] for n in graph["nodes"])) for v in values if v}
    for target in targets:
        if not len(target.devices) == len(target.refusals) == count:
            raise ValueError(f"target {target.backend!r} lists {len(target.devices)} nodes, the graph has {count}")
        for plan in target.plans:
            if not plan.threads:
                raise ValueError(f"the plan for {dict(plan.shapes)} is for 0 threads")
            if sorted(number for p in plan.partitions for number in p.nodes) != [*range(count)]:
                raise ValueError(f"the plan for {dict(plan.shapes)} does not run every node of the graph once")
        for partition in (*target.kernels, *(part for plan in target.plans for part in plan.partitions)):
            _check_partition(partition, values, sections)
    return targets


def _check_partition(partition: PartitionRecord, values: Collection[str], sections: Container[str]) -> None:
    if [*partition.nodes] != sorted(partition.nodes):
        raise ValueError(f"the nodes of partition {partition.name!r} are not in the graph's order")
    unknown = {*partition.inputs, *(name for name, _ in partition.outputs)}.difference(values)
    if unknown:
        raise ValueError(f"partition {partition.name!r} names values that the graph lacks: {sorted(unknown)}")
    missing = [name for name in partition.sections if name not in sections]
    if missing:
        raise ValueError(f"partition {partition.name!r} names missing sections: {missing}")


_hints_of = cache(get_type_hints)


def _decode(wanted: Any, data: Any, names: Mapping[str, str]) -> Any:
    """Decode data to the type of an annotation."""
    if wanted is TensorType:
        return decode_type(data, names)
    if wanted in _RECORDS:
        fields = [(n, hint) for n, hint in _hints_of(wanted).items() if n in data or n not in wanted._field_defaults]
        return wanted(**{name: _decode(hint, data[name], names) for name, hint in fields})
    kind, items = get_origin(wanted), get_args(wanted)
    found = {tuple: list, Mapping: dict}.get(kind, wanted)
    if type(data) is not found or (found is int and data < 0):
        raise TypeError(f"{wanted} is expected, found {data!r:.200}")
    if kind is Mapping:
        return {key: _decode(items[1], item, names) for key, item in data.items()}
    if kind is tuple:
        if items == (str, Ellipsis) and {*map(type, data)} <= {str}:  # fast path for section names, most of the data
            return tuple(data)
        hints = items[:1] * len(data) if items[-1] is Ellipsis else items
        return tuple([_decode(hint, item, names) for hint, item in zip(hints, data, strict=True)])
    return data
