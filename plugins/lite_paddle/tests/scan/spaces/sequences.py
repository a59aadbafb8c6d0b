"""Spaces of operators on sequences (LoD), and of recurrent networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from scan.drawing import Array, Case, Draw, space


def _rows(draw: Draw, *inner: int) -> tuple[Array, list[list[int]]]:
    offsets = draw.offsets()
    return draw.floats([offsets[-1], *inner]), [offsets]


@space("sequence_pool")
def sequence_pool(draw: Draw) -> Case:
    x, lod = _rows(draw, 3)
    kinds = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")
    return draw.case({"X": x}, {"pooltype": draw.one(*kinds), "pad_value": 0.5, "is_test": True}, lod={"X": lod})


@space("sequence_softmax")
def sequence_softmax(draw: Draw) -> Case:
    x, lod = _rows(draw, *draw.one([], [1]))
    return draw.case({"X": x}, lod={"X": lod})


@space("sequence_reverse")
def sequence_reverse(draw: Draw) -> Case:
    x, lod = _rows(draw, 2)
    return draw.case({"X": x}, outputs=["Y"], lod={"X": lod})


@space("sequence_conv")
def sequence_conv(draw: Draw) -> Case:
    x, lod = _rows(draw, 3)
    length = draw.integer(1, 4)
    attrs = {"contextLength": length, "contextStart": draw.integer(-length + 1, 0), "contextStride": 1}
    inputs = {"X": x, "Filter": draw.floats([3 * length, 2])}
    return draw.case(inputs, attrs, lod={"X": lod}, parameters=("Filter",))


@space("row_conv")
def row_conv(draw: Draw) -> Case:
    x, lod = _rows(draw, 3)
    return draw.case({"X": x, "Filter": draw.floats([draw.integer(1, 3), 3])}, lod={"X": lod}, parameters=("Filter",))


@space("sequence_expand")
def sequence_expand(draw: Draw) -> Case:
    y, lod = _rows(draw, 2)
    return draw.case({"X": draw.floats([len(lod[0]) - 1, 3]), "Y": y}, {"ref_level": draw.one(0, -1)}, lod={"Y": lod})


@space("sequence_expand_as")
def sequence_expand_as(draw: Draw) -> Case:
    y, lod = _rows(draw, 2)
    return draw.case({"X": draw.floats([len(lod[0]) - 1, 3]), "Y": y}, lod={"Y": lod})


@space("sequence_concat")
def sequence_concat(draw: Draw) -> Case:
    x, lod = _rows(draw, 2)
    return draw.case({"X": [x, draw.floats(x.shape)]}, lod={"X": lod})


@space("sequence_pad")
def sequence_pad(draw: Draw) -> Case:
    x, lod = _rows(draw, 2)
    inputs = {"X": x, "PadValue": draw.floats([1])}
    return draw.case(inputs, {"padded_length": draw.one(-1, 6)}, ["Out", "Length"], lod={"X": lod})


@space("sequence_unpad")
def sequence_unpad(draw: Draw) -> Case:
    rows, longest = draw.integer(1, 4), draw.integer(2, 4)
    return draw.case({"X": draw.floats([rows, longest, 2]), "Length": draw.integers([rows], 1, longest)})


@space("sequence_reshape")
def sequence_reshape(draw: Draw) -> Case:
    x, lod = _rows(draw, 4)
    return draw.case({"X": x}, {"new_dim": draw.one(2, 1, 4)}, lod={"X": lod})


@space("sequence_enumerate")
def sequence_enumerate(draw: Draw) -> Case:
    offsets = draw.offsets()
    ids = draw.integers([offsets[-1], 1], 0, 9)
    return draw.case({"X": ids}, {"win_size": draw.integer(2, 3), "pad_value": 0}, lod={"X": [offsets]})


@space("sequence_erase")
def sequence_erase(draw: Draw) -> Case:
    offsets = draw.offsets()
    ids = draw.integers([offsets[-1], 1], 0, 4, draw.one("int32", "int64"))
    return draw.case({"X": ids}, {"tokens": [1, 3]}, lod={"X": [offsets]})


@space("sequence_slice")
def sequence_slice(draw: Draw) -> Case:
    x, lod = _rows(draw, 2)
    count = len(lod[0]) - 1
    inputs = {"X": x, "Offset": np.zeros([count, 1], "int64"), "Length": np.ones([count, 1], "int64")}
    return draw.case(inputs, lod={"X": lod})


@space("sequence_scatter")
def sequence_scatter(draw: Draw) -> Case:
    offsets = draw.offsets()
    ids = np.concatenate([np.arange(n) for n in np.diff(offsets)]).reshape(-1, 1)
    inputs = {
        "X": draw.floats([len(offsets) - 1, 4]), "Ids": ids.astype("int64"), "Updates": draw.floats([offsets[-1], 1])
    }  # fmt: skip
    return draw.case(inputs, lod={"Ids": [offsets], "Updates": [offsets]})


@space("var_conv_2d")
def var_conv_2d(draw: Draw) -> Case:
    rows, columns, channels = draw.integer(2, 4), draw.integer(2, 4), draw.integer(1, 2)
    k = draw.one(1, 3)
    inputs = {
        "X": draw.floats([channels * rows * columns, 1]), "ROW": draw.floats([rows, 2]),
        "COLUMN": draw.floats([columns, 2]), "W": draw.floats([2, channels * k * k]),
    }  # fmt: skip
    attrs = {
        "InputChannel": channels, "OutputChannel": 2, "StrideH": draw.integer(1, 2), "StrideW": 1,
        "KernelH": k, "KernelW": k
    }  # fmt: skip
    lod = {"X": [[0, channels * rows * columns]], "ROW": [[0, rows]], "COLUMN": [[0, columns]]}
    return draw.case(inputs, attrs, lod=lod, parameters=("W",))


@space("match_matrix_tensor")
def match_matrix(draw: Draw) -> Case:
    (x, lod_x), (y, lod_y) = _rows(draw, 3), _rows(draw, 3)
    count = min(len(lod_x[0]), len(lod_y[0]))
    lod_x, lod_y = [lod_x[0][:count]], [lod_y[0][:count]]
    channels = draw.integer(1, 2)
    inputs = {"X": x[: lod_x[0][-1]], "Y": y[: lod_y[0][-1]], "W": draw.floats([3, channels, 3])}
    return draw.case(inputs, {"dim_t": channels}, lod={"X": lod_x, "Y": lod_y}, parameters=("W",))


@space("lod_reset")
def lod_reset(draw: Draw) -> Case:
    x, lod = _rows(draw, 2)
    middle = draw.integer(0, lod[0][-1])
    return draw.case({"X": x}, {"target_lod": [0, middle, lod[0][-1]]}, lod={"X": lod})


@space("gru")
def gru(draw: Draw) -> Case:
    hidden = draw.integer(1, 3)
    x, lod = _rows(draw, 3 * hidden)
    inputs = {"Input": x, "Weight": draw.floats([hidden, 3 * hidden])}
    if draw.chance(0.7):
        inputs["Bias"] = draw.floats([1, 3 * hidden])
    if draw.chance(0.3):
        inputs["H0"] = draw.floats([len(lod[0]) - 1, hidden])
    attrs = {
        "is_reverse": draw.chance(), "origin_mode": draw.chance(), "activation": draw.one("tanh", "relu"),
        "gate_activation": "sigmoid", "is_test": True,
    }  # fmt: skip
    parameters = tuple(slot for slot in ("Weight", "Bias") if slot in inputs)
    return draw.case(inputs, attrs, ["Hidden"], lod={"Input": lod}, parameters=parameters)


@space("gru_unit")
def gru_unit(draw: Draw) -> Case:
    rows, hidden = draw.integer(1, 3), draw.integer(1, 3)
    inputs = {"Input": [rows, 3 * hidden], "HiddenPrev": [rows, hidden], "Weight": [hidden, 3 * hidden]}
    if draw.chance(0.7):
        inputs["Bias"] = [1, 3 * hidden]
    attrs = {"activation": draw.one(2, 3), "gate_activation": 1, "origin_mode": draw.chance()}
    arrays = {slot: draw.floats(shape) for slot, shape in inputs.items()}
    parameters = tuple(slot for slot in ("Weight", "Bias") if slot in inputs)
    return draw.case(arrays, attrs, ["Hidden"], parameters=parameters)


@space("lstm")
def lstm(draw: Draw) -> Case:
    hidden = draw.integer(1, 3)
    x, lod = _rows(draw, 4 * hidden)
    peepholes = draw.chance()
    inputs = {"Input": x, "Weight": draw.floats([hidden, 4 * hidden])}
    inputs["Bias"] = draw.floats([1, (7 if peepholes else 4) * hidden])
    if draw.chance(0.3):
        inputs |= {slot: draw.floats([len(lod[0]) - 1, hidden]) for slot in ("H0", "C0")}
    attrs = {
        "use_peepholes": peepholes, "is_reverse": draw.chance(), "gate_activation": "sigmoid",
        "cell_activation": "tanh",
        "candidate_activation": draw.one("tanh", "relu"), "is_test": True,
    }  # fmt: skip
    return draw.case(inputs, attrs, ["Hidden", "Cell"], lod={"Input": lod}, parameters=("Weight", "Bias"))


@space("rnn")
def rnn(draw: Draw) -> Case:
    mode = draw.one("LSTM", "GRU", "RNN_TANH", "RNN_RELU")
    gates = {"LSTM": 4, "GRU": 3}.get(mode, 1)
    steps, batch, size, hidden, layers = *draw.integers_of(4, 1, 3), draw.integer(1, 2)
    directions = draw.integer(1, 2)
    matrices, biases = [], []
    for layer in range(layers):
        width = size if layer == 0 else hidden * directions
        for _ in range(directions):
            matrices += [draw.floats([gates * hidden, width]), draw.floats([gates * hidden, hidden])]
            biases += [draw.floats([gates * hidden]), draw.floats([gates * hidden])]
    states = [draw.floats([layers * directions, batch, hidden]) for _ in range(2 if mode == "LSTM" else 1)]
    inputs: dict[str, Any] = {"Input": draw.floats([steps, batch, size]), "PreState": states}
    inputs["WeightList"] = matrices + biases
    if draw.chance(0.3):
        inputs["SequenceLength"] = draw.integers([batch], 1, steps, "int32")
    attrs = {
        "mode": mode, "is_bidirec": directions == 2, "input_size": size, "hidden_size": hidden, "num_layers": layers,
        "is_test": True, "dropout_prob": 0.0,
    }  # fmt: skip
    return draw.case(inputs, attrs, {"Out": 1, "State": len(states)}, parameters=("WeightList",))


@space("crf_decoding")
def crf_decoding(draw: Draw) -> Case:
    tags = draw.integer(2, 4)
    x, lod = _rows(draw, tags)
    inputs = {"Emission": x, "Transition": draw.floats([tags + 2, tags])}
    return draw.case(inputs, outputs=["ViterbiPath"], lod={"Emission": lod}, parameters=("Transition",))


@space("viterbi_decode")
def viterbi_decode(draw: Draw) -> Case:
    batch, steps, tags = draw.integer(1, 3), draw.integer(2, 4), draw.integer(3, 5)
    inputs = {
        "Input": draw.floats([batch, steps, tags]), "Transition": draw.floats([tags, tags]),
        "Length": draw.integers([batch], 1, steps),
    }  # fmt: skip
    return draw.case(inputs, {"include_bos_eos_tag": draw.chance()}, ["Scores", "Path"])


@space("ctc_align")
def ctc_align(draw: Draw) -> Case:
    attrs: dict[str, Any] = {"blank": 0, "merge_repeated": draw.chance(0.7)}
    if draw.chance():
        offsets = draw.offsets()
        ids = draw.integers([offsets[-1], 1], 0, 3, "int32")
        return draw.case({"Input": ids}, attrs, ["Output"], lod={"Input": [offsets]})
    rows, steps = draw.integer(1, 3), draw.integer(2, 5)
    inputs = {
        "Input": draw.integers([rows, steps], 0, 3, "int32"),
        "InputLength": draw.integers([rows, 1], 1, steps, "int32"),
    }
    return draw.case(inputs, {**attrs, "padding_value": 0}, ["Output", "OutputLength"])


@space("split_lod_tensor")
def split_lod_tensor(draw: Draw) -> Case:
    rows = draw.integer(2, 5)
    mask = draw.numbers([rows, 1], "bool")
    return draw.case({"X": draw.floats([rows, 2]), "Mask": mask}, {"level": 0}, ["OutTrue", "OutFalse"])


@space("merge_lod_tensor", "merge_lod_tensor_infer")
def merge_lod_tensor(draw: Draw) -> Case:
    mask = draw.numbers([draw.integer(2, 5), 1], "bool")
    mask[:2, 0] = [True, False]
    true, false = int(mask.sum()), int((~mask).sum())
    inputs = {"X": draw.floats([len(mask), 2]), "Mask": mask, "InTrue": draw.floats([true, 2])}
    return draw.case({**inputs, "InFalse": draw.floats([false, 2])}, {"level": 0})
