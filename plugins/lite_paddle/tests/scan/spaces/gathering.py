"""Spaces of operators that read or write elements at given places."""

from __future__ import annotations

from typing import Any

import numpy as np

from scan.drawing import Case, Draw, space

_TYPES = ("float32", "float32", "int32", "int64")


@space("gather")
def gather(draw: Draw) -> Case:
    array = draw.numbers(draw.shape(1, 4), draw.one(*_TYPES))
    axis = draw.one(0, 0, draw.integer(0, array.ndim - 1))
    index = draw.integers([draw.integer(1, 5)], 0, array.shape[axis] - 1, draw.one("int32", "int64"))
    inputs: dict[str, Any] = {"X": array, "Index": index}
    if draw.chance(0.3):
        inputs["Axis"] = np.array([axis], "int32")
        return draw.case(inputs, {"axis": 0}, parameters=("Axis",))
    return draw.case(inputs, {"axis": axis})


@space("gather_nd")
def gather_nd(draw: Draw) -> Case:
    array = draw.numbers(draw.shape(1, 4), draw.one(*_TYPES))
    depth = draw.integer(1, array.ndim)
    lead = draw.shape(1, 2)
    parts = [draw.integers([*lead, 1], 0, size - 1) for size in array.shape[:depth]]
    return draw.case({"X": array, "Index": np.concatenate(parts, -1)})


@space("index_select", "index_sample", "take_along_axis", "put_along_axis", "index_add", "index_put")
def indexing(draw: Draw) -> Case:
    array = draw.numbers(draw.shape(2, 2) if draw.op == "index_sample" else draw.shape(1, 3), draw.one(*_TYPES))
    axis = draw.integer(0, array.ndim - 1)
    size = array.shape[axis]
    if draw.op == "index_select":
        return draw.case({"X": array, "Index": draw.integers([draw.integer(1, 4)], 0, size - 1)}, {"dim": axis})
    if draw.op == "index_sample":
        index = draw.integers([array.shape[0], draw.integer(1, 4)], 0, array.shape[1] - 1)
        return draw.case({"X": array, "Index": index})
    if draw.op == "index_add":
        shape = list(array.shape)
        shape[axis] = 3
        index = draw.integers([3], 0, size - 1)
        return draw.case(
            {"X": array, "Index": index, "AddValue": draw.numbers(shape, array.dtype.name)}, {"axis": axis}
        )
    if draw.op == "index_put":
        index = draw.integers([2], 0, array.shape[0] - 1)
        index[1] = index[0] if array.shape[0] == 1 else (index[0] + 1) % array.shape[0]
        # Without accumulation, the order of writes to one place is undefined.
        accumulate = draw.chance() or index[0] == index[1]
        value = draw.numbers([2, *array.shape[1:]], array.dtype.name)
        return draw.case({"x": array, "indices": [index], "value": value}, {"accumulate": bool(accumulate)}, ["out"])
    shape = list(array.shape)
    shape[axis] = draw.integer(1, size)
    if draw.op == "take_along_axis":
        inputs = {"Input": array, "Index": draw.integers(shape, 0, size - 1)}
        return draw.case(inputs, {"Axis": axis}, ["Result"])
    # No row twice: the order of writes to one element is undefined.
    rows = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    index = np.ascontiguousarray(np.broadcast_to(rows, shape)).astype("int64")
    inputs = {"Input": array, "Index": index, "Value": draw.numbers(shape, array.dtype.name)}
    return draw.case(inputs, {"Axis": axis, "Reduce": draw.one("assign", "add", "mul")}, ["Result"])


@space("scatter")
def scatter(draw: Draw) -> Case:
    rows, inner = draw.integer(2, 6), draw.shape(0, 2)
    count = draw.integer(1, rows)
    overwrite = draw.chance()
    # The same row twice is overwritten in an undefined order.
    index = draw.distinct([rows], "int64")[:count] if overwrite else draw.integers([count], 0, rows - 1)
    inputs = {"X": draw.floats([rows, *inner]), "Ids": index, "Updates": draw.floats([count, *inner])}
    return draw.case(inputs, {"overwrite": overwrite})


@space("scatter_nd_add")
def scatter_nd_add(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    depth, lead = draw.integer(1, len(shape)), draw.shape(1, 2)
    parts = [draw.integers([*lead, 1], 0, size - 1) for size in shape[:depth]]
    updates = draw.floats([*lead, *shape[depth:]])
    return draw.case({"X": draw.floats(shape), "Index": np.concatenate(parts, -1), "Updates": updates})


@space("lookup_table", "lookup_table_v2")
def lookup_table(draw: Draw) -> Case:
    rows = draw.integer(2, 6)
    ids = draw.integers([*draw.shape(1, 2), *([1] if draw.op == "lookup_table" else [])], 0, rows - 1)
    inputs = {"W": draw.floats([rows, draw.integer(1, 4)]), "Ids": ids}
    return draw.case(inputs, {"padding_idx": draw.one(-1, 0, 1)}, parameters=("W",))


@space("lookup_table_dequant")
def lookup_table_dequant(draw: Draw) -> Case:
    rows = draw.integer(2, 5)
    # A row has its smallest and largest number, then four elements of 8 bits in each float.
    codes = draw.integers([rows, 4 * draw.integer(1, 2)], 1, 100, "uint8").view("float32")
    limits = np.stack([draw.floats([rows], -2, -1), draw.floats([rows], 1, 2)], 1)
    weights = np.concatenate([limits, codes], 1)
    inputs = {"W": weights, "Ids": draw.integers([3, 1], 0, rows - 1)}
    return draw.case(inputs, {"padding_idx": -1}, parameters=("W",))


@space("one_hot_v2")
def one_hot(draw: Draw) -> Case:
    ids = draw.integers(draw.shape(1, 3), 0, 4, draw.one("int32", "int64"))
    return draw.case({"X": ids}, {"depth": 5, "dtype": "float32", "allow_out_of_range": False})


@space("where", "where_index", "masked_select", "masked_fill", "multiplex")
def selecting(draw: Draw) -> Case:
    shape, dtype = draw.shape(1, 3), draw.one(*_TYPES)
    mask, x = draw.numbers(shape, "bool"), draw.numbers(shape, dtype)
    if draw.op == "where":
        return draw.case({"Condition": mask, "X": x, "Y": draw.numbers(shape, dtype)})
    if draw.op == "where_index":
        return draw.case({"Condition": mask})
    if draw.op == "masked_select":
        return draw.case({"X": x, "Mask": mask}, outputs=["Y"])
    if draw.op == "masked_fill":
        return draw.case({"x": x, "mask": mask, "value": draw.numbers([1], dtype)}, outputs=["out"])
    rows, columns = draw.integers_of(2, 1, 4)
    arrays = [draw.floats([rows, columns]) for _ in range(3)]
    return draw.case({"X": arrays, "Ids": draw.integers([rows, 1], 0, 2, "int32")})


@space("searchsorted", "shard_index", "sequence_mask", "gather_tree", "segment_pool")
def integers(draw: Draw) -> Case:
    if draw.op == "searchsorted":
        inputs = {"SortedSequence": np.sort(draw.floats([2, 5]), -1), "Values": draw.floats([2, 3])}
        return draw.case(inputs, {"right": draw.chance(), "out_int32": draw.chance()})
    if draw.op == "shard_index":
        attrs = {"index_num": 12, "nshards": draw.integer(2, 3), "shard_id": draw.integer(0, 1), "ignore_value": -1}
        return draw.case({"X": draw.integers([5, 1], 0, 11)}, attrs)
    if draw.op == "sequence_mask":
        attrs = {"maxlen": draw.one(5, -1), "out_dtype": draw.one("float32", "int64", "bool")}
        return draw.case({"X": draw.integers(draw.shape(1, 2), 1, 5, draw.one("int64", "int32"))}, attrs, ["Y"])
    if draw.op == "segment_pool":
        inputs = {"X": draw.floats([6, 2]), "SegmentIds": np.sort(draw.integers([6], 0, 3))}
        return draw.case(inputs, {"pooltype": draw.one("SUM", "MEAN", "MAX", "MIN")})
    shape = [draw.integer(1, 4), 2, 3]
    return draw.case({"Ids": draw.integers(shape, 0, 9), "Parents": draw.integers(shape, 0, 2)})


@space("graph_send_recv", "graph_send_ue_recv", "graph_send_uv")
def graphs(draw: Draw) -> Case:
    nodes, edges = 4, draw.integer(2, 6)
    x, source = draw.floats([nodes, 2]), draw.integers([edges], 0, nodes - 1)
    target = draw.integers([edges], 0, nodes - 1)
    message, reduce = draw.one("ADD", "MUL"), draw.one("SUM", "MEAN", "MAX", "MIN")
    if draw.op == "graph_send_recv":
        return draw.case({"X": x, "Src_index": source, "Dst_index": target}, {"reduce_op": reduce, "out_size": [0]})
    if draw.op == "graph_send_uv":
        inputs = {"x": x, "y": draw.floats([nodes, 2]), "src_index": source, "dst_index": target}
        return draw.case(inputs, {"message_op": message}, ["out"])
    inputs = {"X": x, "Y": draw.floats([edges, 2]), "Src_index": source, "Dst_index": target}
    return draw.case(inputs, {"message_op": message, "reduce_op": reduce, "out_size": [0]})
