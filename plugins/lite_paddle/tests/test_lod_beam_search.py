"""Beam search in programs of Paddle 1.x (beam_search and beam_search_decode, mostly in a loop), against Paddle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lod_cases import Array, Operator, Program, check, export

RNG = np.random.default_rng(23)
#: The word that ends a sentence.
END = 1
WORDS, WIDTH, HIDDEN = 30, 12, 16


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def one(type_: str, x: str, out: str, **attrs: Any) -> Operator:
    return (type_, {"X": [x]}, {"Out": [out]}, attrs)


def two(type_: str, x: str, y: str, out: str, **attrs: Any) -> Operator:
    return (type_, {"X": [x], "Y": [y]}, {"Out": [out]}, attrs)


def number(out: str, value: int) -> Operator:
    return ("fill_constant", {}, {"Out": [out]}, {"shape": [1], "dtype": 3, "value": float(value)})


def read(array: str, out: str) -> Operator:
    return ("read_from_array", {"X": [array], "I": ["step"]}, {"Out": [out]}, {})


def write(value: str, array: str) -> Operator:
    return ("write_to_array", {"X": [value], "I": ["step"]}, {"Out": [array]}, {})


def search(ids: str, scores: str, beams: int, **attrs: Any) -> Operator:
    inputs = {"pre_ids": ["pre_ids"], "pre_scores": ["pre_scores"], "ids": [ids], "scores": [scores]}
    outputs = {"selected_ids": ["ids"], "selected_scores": ["scores"], "parent_idx": ["parents"]}
    settings = {"beam_size": beams, "end_id": END, "level": 0, "is_accumulated": True, **attrs}
    return ("beam_search", inputs, outputs, settings)


def decode(beams: int) -> Operator:
    outputs = {"SentenceIds": ["sentences"], "SentenceScores": ["sentence_scores"]}
    return ("beam_search_decode", {"Ids": ["id_array"], "Scores": ["score_array"]}, outputs, settings_of(beams))


def settings_of(beams: int) -> dict[str, Any]:
    return {"beam_size": beams, "end_id": END}


def loop(body: list[Operator], reads: list[str], writes: list[str]) -> Operator:
    slots = {"X": reads, "Condition": ["going"]}
    return ("while", slots, {"Out": writes, "StepScopes": ["scopes"]}, {"body": body, "is_test": True})


def continuing(steps: str) -> list[Operator]:
    """Set the loop's condition: fewer than the greatest number of steps, and a hypothesis that is not complete."""
    return [
        two("less_than", "step", steps, "shorter"),
        one("is_empty", "ids", "empty"),
        one("logical_not", "empty", "some"),
        two("logical_and", "shorter", "some", "going"),
    ]


SHARED = {
    **dict.fromkeys(("step", "most", "pre_ids", "ids", "id_array", "candidates", "sentences", "words"), "int64"),
    **dict.fromkeys(("shorter", "empty", "some", "going"), "bool"),
    "parents": "int32",
}
ARRAYS = ("id_array", "score_array", "state_array")


def starts(sources: int) -> dict[str, tuple[Array, list[list[int]]]]:
    offsets = list(range(sources + 1))
    ids = np.zeros((sources, 1), np.int64)
    return {"pre_ids0": (ids, [offsets, offsets]), "pre_scores0": (ids.astype(np.float32), [offsets, offsets])}


def translator(
    name: str,
    offsets: list[int],
    *,
    beams: int = 4,
    candidates: int = 0,
    steps: int = 12,
    ending: float = 2.5,
    by_parents: bool = False,
) -> Program:
    """A translator: the last state of a recurrent encoder of words, and a decoder that searches with beams.

    The greater ``ending`` is, the sooner hypotheses end. Each has as many ``candidates`` as ``beams`` by default.
    States follow their hypotheses by ``sequence_expand``, or by the parents that beam_search returns (then tensors, not
    arrays, carry them).
    """
    parameters = {
        "table": floats(WORDS, WIDTH), "w0": floats(WIDTH, 3 * HIDDEN), "b0": floats(3 * HIDDEN),
        "g0": floats(HIDDEN, 3 * HIDDEN) * 0.3, "targets": floats(WORDS, WIDTH), "ws": floats(HIDDEN, HIDDEN) * 0.5,
        "we": floats(WIDTH, HIDDEN) * 0.5, "bs": floats(HIDDEN), "wo": floats(HIDDEN, WORDS),
        "bo": floats(WORDS) + (np.arange(WORDS) == END) * ending,
    }  # fmt: skip
    parameters = {key: value.astype(np.float32) for key, value in parameters.items()}
    unused = {slot: [f"gru.{slot}"] for slot in ("BatchGate", "BatchResetHiddenPrev", "BatchHidden")}
    gru = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": False, "origin_mode": False}
    ops: list[Operator] = [
        ("lookup_table", {"W": ["table"], "Ids": ["words"]}, {"Out": ["e0"]}, {"padding_idx": -1}),
        two("mul", "e0", "w0", "p0"),
        two("elementwise_add", "p0", "b0", "x0", axis=1),
        ("gru", {"Input": ["x0"], "Weight": ["g0"]}, {"Hidden": ["h0"], **unused}, gru),
        ("sequence_pool", {"X": ["h0"]}, {"Out": ["boot"], "MaxIndex": ["boot.index"]}, {"pooltype": "LAST"}),
        number("step", 0),
        number("most", steps),
        write("pre_ids0", "id_array"),
        write("pre_scores0", "score_array"),
        *([one("assign", "boot", "state")] if by_parents else [write("boot", "state_array")]),
        two("less_than", "step", "most", "going"),
    ]
    fetch_state = [one("assign", "state", "expanded")] if by_parents else [read("state_array", "old_state")]
    if not by_parents:
        fetch_state.append(two("sequence_expand", "old_state", "pre_scores", "expanded", ref_level=-1))
    body: list[Operator] = [
        read("id_array", "pre_ids"),
        read("score_array", "pre_scores"),
        *fetch_state,
        ("lookup_table", {"W": ["targets"], "Ids": ["pre_ids"]}, {"Out": ["e"]}, {"padding_idx": -1}),
        two("mul", "expanded", "ws", "ps"),
        two("mul", "e", "we", "pe"),
        ("sum", {"X": ["ps", "pe"]}, {"Out": ["total"]}, {}),
        two("elementwise_add", "total", "bs", "biased", axis=1),
        one("tanh", "biased", "new_state"),
        two("lod_reset", "new_state", "pre_scores", "new_state_of_beams", append=False),
        two("mul", "new_state_of_beams", "wo", "po"),
        two("elementwise_add", "po", "bo", "logits", axis=1),
        one("softmax", "logits", "chances", axis=-1),
        ("top_k", {"X": ["chances"]}, {"Out": ["best"], "Indices": ["candidates"]}, {"k": candidates or beams}),
        one("log", "best", "logs"),
        ("reshape2", {"X": ["pre_scores"]}, {"Out": ["flat"], "XShape": ["flat.shape"]}, {"shape": [-1]}),
        two("elementwise_add", "logs", "flat", "sums", axis=0),
        search("candidates", "sums", beams),
        ("increment", {"X": ["step"]}, {"Out": ["step"]}, {"step": 1.0}),
        *([] if by_parents else [write("new_state", "state_array")]),
        write("ids", "id_array"),
        write("scores", "score_array"),
        *([("gather", {"X": ["new_state"], "Index": ["parents"]}, {"Out": ["state"]}, {})] if by_parents else []),
        *continuing("most"),
    ]
    carried = ["step", "id_array", "score_array", "state" if by_parents else "state_array"]
    ops += [loop(body, [*carried, "most", "targets", "ws", "we", "bs", "wo", "bo"], [*carried, "going"]), decode(beams)]
    feeds = {"words": (RNG.integers(0, WORDS, (offsets[-1], 1)), [offsets]), **starts(len(offsets) - 1)}
    types = {**SHARED, "boot.index": "int32"}
    arrays = ARRAYS[:2] if by_parents else ARRAYS
    return Program(name, feeds, parameters, ops, ["sentences", "sentence_scores"], types, arrays=arrays)


def step(seed: int) -> Program:
    """A single beam_search, whose attributes and inputs are drawn: few different scores, so that many are equal."""
    draw = np.random.default_rng(seed)
    sources, candidates = int(draw.integers(1, 5)), int(draw.integers(1, 6))
    inner = [0, *np.cumsum(draw.integers(0, 4, sources) + (draw.integers(0, 4, sources) > 0)).tolist()]
    outer = list(range(sources + 1))
    level = int(draw.integers(0, 2))
    if level == 0 and sources > 2:
        outer = [0, 2, *range(3, sources + 1)]
    accumulated, rows = bool(draw.integers(0, 2)), inner[-1]
    scores = (
        draw.integers(-4, 0, (rows, candidates)) / 2 if accumulated else draw.integers(1, 5, (rows, candidates)) / 4
    )
    feeds = {
        "pre_ids": (draw.integers(0, 3, (rows, 1)), [outer, inner]),
        "pre_scores": ((draw.integers(-4, 0, (rows, 1)) / 2).astype(np.float32), [outer, inner]),
        "candidates": (draw.integers(0, 4, (rows, candidates)), [outer, inner]),
        "sums": (scores.astype(np.float32), [outer, inner]),
    }
    settings = {"level": level, "is_accumulated": accumulated}
    ops = [search("candidates", "sums", int(draw.integers(1, 6)), **settings)]
    return Program(f"step{seed}", feeds, {}, ops, ["ids", "scores", "parents"], SHARED)


def decoding(seed: int) -> Program:
    """A single beam_search_decode: drawn results of several steps, in which sources are dropped at different times."""
    draw = np.random.default_rng(seed)
    sources, steps, beams = (int(draw.integers(*bounds)) for bounds in ((1, 5), (1, 8), (1, 5)))
    last = draw.integers(0, steps, sources)  # the last step of each source
    rows = np.ones(sources, np.int64)  # the hypotheses of each source
    feeds: dict[str, tuple[Array, list[list[int]]]] = {}
    ops: list[Operator] = []
    for step in range(max(last) + 1):
        inner = [0]
        outer = [0, *np.cumsum(rows).tolist()]
        for source in range(sources):
            count = beams if step == last[source] else int(draw.integers(1, beams + 1)) if step < last[source] else 0
            chosen = draw.integers(0, max(rows[source], 1), count)  # the hypothesis that each result continues
            for row in range(rows[source]):
                inner.append(inner[-1] + int((chosen == row).sum()))
            rows[source] = count
        total = inner[-1]
        words, scores = draw.integers(0, 4, (total, 1)), draw.permutation(total).astype(np.float32)[:, None]
        feeds |= {f"ids{step}": (words, [outer, inner]), f"scores{step}": (scores, [outer, inner])}
        ops += [number("step", step), write(f"ids{step}", "id_array"), write(f"scores{step}", "score_array")]
    outputs = ["sentences", "sentence_scores"]
    return Program(f"decoding{seed}", feeds, {}, [*ops, decode(beams)], outputs, SHARED, arrays=ARRAYS[:2])


STEPS = [*(step(seed) for seed in range(24)), *(decoding(seed) for seed in range(16))]
ONE_SOURCE = translator("one_source", [0, 6])
TRANSLATORS = [
    translator("all_end_early", [0, 3, 9, 19], ending=5.0),
    translator("few_candidates", [0, 3, 7], candidates=2, beams=3),
    translator("one_beam", [0, 4, 8], beams=1),
    translator("translator", [0, 7, 9, 19]),
    translator("translator_by_parents", [0, 5, 11, 12], by_parents=True),
    ONE_SOURCE,
]
PROGRAMS = [*STEPS, *TRANSLATORS]

pytestmark = pytest.mark.full("models")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(PROGRAMS, tmp_path_factory.mktemp("beams"))


@pytest.mark.parametrize("program", STEPS, ids=lambda program: program.name)
def test_operator_computes_what_paddle_computes(program: Program, exported: Path) -> None:
    check(program, exported, "host")


@pytest.mark.parametrize("backend", ["host", "x86"])
@pytest.mark.parametrize("program", TRANSLATORS, ids=lambda program: program.name)
def test_program_computes_what_paddle_computes(program: Program, backend: str, exported: Path) -> None:
    check(program, exported, backend)


@pytest.mark.parametrize("backend", ["host", "x86"])
def test_one_source_without_offsets(backend: str, exported: Path) -> None:
    check(ONE_SOURCE, exported, backend, lod=False)
