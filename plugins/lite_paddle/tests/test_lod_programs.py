"""Programs of Paddle 1.x on several sequences (LoD), against Paddle's predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lod_cases import Array, Operator, Program, check, export

RNG = np.random.default_rng(5)
OFFSETS = [0, 7, 8, 8, 19]


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def fc(x: str, weight: str, bias: str, out: str) -> list[Operator]:
    product: Operator = ("mul", {"X": [x], "Y": [weight]}, {"Out": [f"{out}.product"]}, {})
    return [product, ("elementwise_add", {"X": [f"{out}.product"], "Y": [bias]}, {"Out": [out]}, {"axis": 1})]


def gru(x: str, weight: str, out: str, **attrs: Any) -> Operator:
    unused = {slot: [f"{out}.{slot}"] for slot in ("BatchGate", "BatchResetHiddenPrev", "BatchHidden")}
    defaults = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": False, "origin_mode": False}
    return ("gru", {"Input": [x], "Weight": [weight]}, {"Hidden": [out], **unused}, {**defaults, **attrs})


def lstm(x: str, weight: str, bias: str, out: str, **attrs: Any) -> Operator:
    unused = {slot: [f"{out}.{slot}"] for slot in ("Cell", "BatchGate", "BatchCellPreAct")}
    names = {"gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "tanh"}
    inputs = {"Input": [x], "Weight": [weight], "Bias": [bias]}
    return ("lstm", inputs, {"Hidden": [out], **unused}, {"use_peepholes": True, "is_reverse": False, **names, **attrs})


def pooled(x: str, out: str, pooltype: str) -> Operator:
    attrs = {"pooltype": pooltype, "pad_value": 0.5}
    return ("sequence_pool", {"X": [x]}, {"Out": [out], "MaxIndex": [f"{out}.index"]}, attrs)


def tagger() -> Program:
    """A tagger of words: embedding, GRUs in both directions with weights of real size, and a CRF."""
    h, tags = 48, 23
    parameters = {
        "table": floats(100, 32), "w0": floats(32, 3 * h) * 0.2, "b0": floats(3 * h), "w1": floats(32, 3 * h) * 0.2,
        "b1": floats(3 * h), "g0": floats(h, 3 * h) * 0.2, "g1": floats(h, 3 * h) * 0.2,
        "w2": floats(2 * h, tags) * 0.2, "b2": floats(tags), "crf": floats(tags + 2, tags),
    }  # fmt: skip
    ops: list[Operator] = [("lookup_table", {"W": ["table"], "Ids": ["words"]}, {"Out": ["e"]}, {"padding_idx": -1})]
    ops += [*fc("e", "w0", "b0", "x0"), gru("x0", "g0", "h0"), *fc("e", "w1", "b1", "x1")]
    ops += [gru("x1", "g1", "h1", is_reverse=True, origin_mode=True)]
    ops += [("concat", {"X": ["h0", "h1"]}, {"Out": ["h"]}, {"axis": 1}), *fc("h", "w2", "b2", "emission")]
    inputs = {"Emission": ["emission"], "Transition": ["crf"]}
    ops += [("crf_decoding", inputs, {"ViterbiPath": ["tags"]}, {})]
    feeds = {"words": (RNG.integers(0, 100, (19, 1)), [OFFSETS])}
    return Program("tagger", feeds, parameters, ops, ["tags", "emission"], {"tags": "int64"})


def classifier() -> Program:
    """A classifier of texts: convolution over the words, an LSTM with peepholes, and all kinds of pooling."""
    h = 40
    parameters = {
        "filter": floats(48, 4 * h) * 0.2, "w": floats(h, 4 * h) * 0.2, "b": floats(1, 7 * h), "fc": floats(2 * h, 5)
    }  # fmt: skip
    attrs = {"contextLength": 3, "contextStart": -1, "contextStride": 1}
    ops: list[Operator] = [("sequence_conv", {"X": ["x"], "Filter": ["filter"]}, {"Out": ["c"]}, attrs)]
    ops += [lstm("c", "w", "b", "h", is_reverse=True), pooled("h", "most", "MAX"), pooled("h", "last", "LAST")]
    ops += [("concat", {"X": ["most", "last"]}, {"Out": ["p"]}, {"axis": 1})]
    ops += [("mul", {"X": ["p"], "Y": ["fc"]}, {"Out": ["y"]}, {})]
    kinds = ("AVERAGE", "SUM", "SQRT", "FIRST")
    ops += [pooled("h", kind, kind) for kind in kinds]
    types = {f"{out}.index": "int32" for out in ("most", "last", *kinds)}
    return Program("classifier", {"x": (floats(19, 16), [OFFSETS])}, parameters, ops, ["y", "h.Cell", *kinds], types)


def attention() -> Program:
    """Attention of a state of each sequence to its steps: expand, softmax within sequences, weighted sum."""
    ops: list[Operator] = [
        ("sequence_expand", {"X": ["state"], "Y": ["x"]}, {"Out": ["states"]}, {"ref_level": 0}),
        ("elementwise_mul", {"X": ["x"], "Y": ["states"]}, {"Out": ["products"]}, {"axis": -1}),
        ("mul", {"X": ["products"], "Y": ["v"]}, {"Out": ["scores"]}, {}),
        ("sequence_softmax", {"X": ["scores"]}, {"Out": ["weights"]}, {}),
        ("elementwise_mul", {"X": ["x"], "Y": ["weights"]}, {"Out": ["weighted"]}, {"axis": 0}),
        pooled("weighted", "y", "SUM"),
    ]
    offsets = [0, 7, 8, 19]
    feeds = {"x": (floats(19, 16), [offsets]), "state": (floats(3, 16), [])}
    types = {"y.index": "int32"}
    return Program("attention", feeds, {"v": floats(16, 1)}, ops, ["y", "weights"], types, open=True)


def line_reader() -> Program:
    """A reader of lines of text: convolution, the columns of each image as a sequence, a GRU, and CTC."""
    h, labels = 32, 7
    parameters = {
        "k": floats(8, 1, 3, 3), "w0": floats(8 * 6, 3 * h) * 0.1, "b0": floats(3 * h), "g": floats(h, 3 * h) * 0.2,
        "w1": floats(h, labels), "b1": floats(labels),
    }  # fmt: skip
    conv = {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1], "groups": 1, "data_format": "NCHW"}
    columns = {"kernels": [6, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0], "out_stride": [1, 1]}
    ops: list[Operator] = [("conv2d", {"Input": ["image"], "Filter": ["k"]}, {"Output": ["c"]}, conv)]
    ops += [("im2sequence", {"X": ["c"]}, {"Out": ["s"]}, columns), *fc("s", "w0", "b0", "x"), gru("x", "g", "h")]
    ops += [*fc("h", "w1", "b1", "y"), ("top_k", {"X": ["y"]}, {"Out": ["v"], "Indices": ["i"]}, {"k": 1})]
    ops += [("ctc_align", {"Input": ["i"]}, {"Output": ["labels"]}, {"blank": labels - 1, "merge_repeated": True})]
    feeds = {"image": (floats(3, 1, 6, 20), [])}
    types = {"i": "int64", "labels": "int64"}
    return Program("line_reader", feeds, parameters, ops, ["labels", "y"], types, open=True)


def batch_of_states() -> Program:
    """A state for each sequence: zeros for as many as there are sequences, expanded to their levels; offsets reset."""
    boot = {"shape": [-1, 3], "value": 0.5, "dtype": 5, "input_dim_idx": 0, "output_dim_idx": 0}
    ops: list[Operator] = [
        ("fill_constant_batch_size_like", {"Input": ["y"]}, {"Out": ["boot"]}, boot),
        ("sequence_expand", {"X": ["x"], "Y": ["y"]}, {"Out": ["copies"]}, {"ref_level": 0}),
        ("lod_reset", {"X": ["copies"], "Y": ["z"]}, {"Out": ["reset"]}, {"append": False}),
        ("sequence_softmax", {"X": ["z"]}, {"Out": ["soft"]}, {}),
    ]
    feeds = {
        "x": (floats(4, 2), [[0, 1, 3, 4]]),
        "y": (floats(6, 1), [[0, 2, 2, 3], [0, 2, 4, 6]]),
        "z": (floats(3, 1), [[0, 1, 3]]),
    }
    return Program("batch_of_states", feeds, {}, ops, ["boot", "copies", "reset", "soft"])


def decoders() -> Program:
    """The decoders of padded batches: viterbi_decode, crf_decoding with lengths, gather_tree."""
    viterbi = {"Input": ["x"], "Transition": ["moves"], "Length": ["n"]}
    crf = {"Emission": ["x"], "Transition": ["crf"], "Length": ["n"]}
    ops: list[Operator] = [
        ("viterbi_decode", viterbi, {"Scores": ["s0"], "Path": ["p0"]}, {"include_bos_eos_tag": True}),
        ("viterbi_decode", viterbi, {"Scores": ["s1"], "Path": ["p1"]}, {"include_bos_eos_tag": False}),
        ("crf_decoding", crf, {"ViterbiPath": ["p2"]}, {}),
        ("gather_tree", {"Ids": ["ids"], "Parents": ["parents"]}, {"Out": ["beams"]}, {}),
    ]
    feeds = {
        "x": (floats(3, 6, 20), []),
        "n": (np.array([5, 1, 3]), []),
        "ids": (RNG.integers(0, 9, (5, 2, 4)), []),
        "parents": (RNG.integers(0, 4, (5, 2, 4)), []),
    }
    types = dict.fromkeys(("p0", "p1", "p2", "beams"), "int64")
    parameters = {"moves": floats(20, 20), "crf": floats(22, 20)}
    return Program("decoders", feeds, parameters, ops, ["s0", "p0", "s1", "p1", "p2", "beams"], types, open=True)


def further_level() -> Program:
    """Offsets that become a further level: each row a sequence, in an attribute and in a tensor."""
    target = {"target_lod": list(range(6)), "append": True}
    ops: list[Operator] = [
        ("lod_reset", {"X": ["x"]}, {"Out": ["y"]}, target),
        ("lod_reset", {"X": ["x"], "Y": ["offsets"]}, {"Out": ["z"]}, {"append": True}),
        ("sequence_pool", {"X": ["y"]}, {"Out": ["p"], "MaxIndex": ["p.index"]}, {"pooltype": "SUM"}),
    ]
    feeds = {"x": (floats(5, 2), [[0, 2, 5]]), "offsets": (np.arange(6, dtype=np.int32), [])}
    return Program("further_level", feeds, {}, ops, ["y", "z", "p"], {"p.index": "int32"})


def packed_table() -> Program:
    """A table of words with 8 bits for each number: rows of their least and greatest number, and the bytes."""
    bounds = np.sort(floats(20, 2), axis=1)
    table = np.concatenate([bounds, RNG.integers(0, 256, (20, 24)).astype(np.uint8).view(np.float32)], axis=1)
    inputs = {"W": ["table"], "Ids": ["words"]}
    ops: list[Operator] = [
        ("lookup_table_dequant", inputs, {"Out": ["e"]}, {"padding_idx": -1}),
        ("lookup_table_dequant", inputs, {"Out": ["padded"]}, {"padding_idx": 3}),
    ]
    words = np.concatenate([np.array([[3]]), RNG.integers(0, 20, (18, 1))])
    return Program("packed_table", {"words": (words, [OFFSETS])}, {"table": table}, ops, ["e", "padded"])


PROGRAMS = [
    further_level(),
    packed_table(),
    tagger(),
    classifier(),
    attention(),
    line_reader(),
    batch_of_states(),
    decoders(),
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(PROGRAMS, tmp_path_factory.mktemp("lod"))


@pytest.mark.full("models")
@pytest.mark.parametrize("backend", ["host", "x86"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program_computes_what_paddle_computes(program: Program, backend: str, exported: Path) -> None:
    check(program, exported, backend)
