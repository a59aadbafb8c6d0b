"""Batches: which models have them, that answers are those of single requests, and what is said if they are not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from served_models import ask, serving, state_of, times, written

import lite_core as lite
from lite_serve.models.batching import Batching, joined, parts_of
from lite_serve.models.metrics import Metrics
from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.messages import InferResponse

Build = Callable[[lite.GraphBuilder], None]
#: Long enough for any number of requests to meet: a batch that is full starts at once.
MINUTE = 60.0


def session_of(build: Build) -> lite.Session:
    builder = lite.GraphBuilder("model")
    build(builder)
    return lite.load(builder.build(), "host", 1)


def elementwise(b: lite.GraphBuilder) -> None:
    b.output(b.add("Sigmoid", [b.input("x", "float32", ["n", 3])]), "y")


def nearly_exact(b: lite.GraphBuilder) -> None:
    """Add a millionth of the mean of all rows: what rounding might do, and always happens."""
    x = b.input("x", "float32", ["n", 3])
    mean = b.add("ReduceMean", [x, b.ints(0)])
    b.output(b.add("Add", [x, b.add("Mul", [mean, b.constant(np.float32(1e-6))])]), "y")


def dependent(b: lite.GraphBuilder) -> None:
    b.output(b.add("Softmax", [b.input("x", "float32", ["n", 3])], {"axis": 0}), "y")


def free_width(b: lite.GraphBuilder) -> None:
    b.output(b.add("Sigmoid", [b.input("x", "float32", ["n", "width"])]), "y")


def looked_up(b: lite.GraphBuilder) -> None:
    """Look up a row of a table of one row, for which most random indices are not valid."""
    b.output(b.add("Gather", [b.constant(np.ones((1, 2), np.float32)), b.input("i", "int64", ["n", 2])]), "y")


def fixed_rows(b: lite.GraphBuilder) -> None:
    b.output(b.add("Relu", [b.input("x", "float32", [1, 3])]), "y")


def turned(b: lite.GraphBuilder) -> None:
    b.output(b.add("Transpose", [b.input("x", "float32", ["n", 3])]), "y")


def reduced(b: lite.GraphBuilder) -> None:
    b.output(b.add("ReduceSum", [b.input("x", "float32", ["n"])], {"keepdims": 0}), "y")


def other_rows(b: lite.GraphBuilder) -> None:
    b.output(b.add("Relu", [b.input("x", "float32", ["n", 3])]), "y")
    b.output(b.add("Relu", [b.input("z", "float32", ["m", 3])]), "w")


def squared(b: lite.GraphBuilder) -> None:
    x = b.input("x", "float32", ["n", 3])
    b.output(b.add("MatMul", [x, b.add("Transpose", [x])]), "y")


def shared(b: lite.GraphBuilder) -> None:
    b.output(b.add("Add", [b.input("x", "float32", ["n", 3]), b.input("bias", "float32", [3])]), "y")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (fixed_rows, ["input 'x'", "always 1"]),
        (turned, ["output 'y'", "always 3"]),
        (reduced, ["output 'y'", "does not exist"]),
        (other_rows, ["input 'z' is m", "is n"]),
        (squared, ["output 'y'", "depend on its dimension 0"]),
        (shared, ["input 'bias'", "always 3"]),
    ],
)
def test_models_without_one_batch_symbol_are_not_batched(build: Build, words: list[str]) -> None:
    batching = Batching(session_of(build), "fast", 8)
    assert not batching.is_possible
    for word in words:
        assert word in batching.note
    assert batching.properties["batching"] == "off"


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_rows_that_depend_on_each_other_are_never_batched(mode: str) -> None:
    batching = Batching(session_of(dependent), mode, 8)
    assert batching.choose(((3,),), [1] * 8) == 1
    assert "depend on each other" in batching.note


def test_answers_that_would_change_by_rounding_are_batched_only_in_fast_mode() -> None:
    exact, fast = (Batching(session_of(nearly_exact), mode, 8) for mode in ("exact", "fast"))
    assert exact.size_for(((3,),), 8) is None
    assert "'fast' allows that" in exact.note
    assert exact.properties["batch_sizes"] == "1"
    assert fast.size_for(((3,),), 8) == 8
    assert "not bit-equal" in fast.note
    assert fast.properties["batch_answers"] == "not bit-equal"
    assert exact.properties["batch_answers"] == "bit-equal"


def test_sizes_are_powers_of_two_or_those_that_the_file_is_prepared_for(tmp_path: Path) -> None:
    assert Batching(session_of(elementwise), "exact", 20).sizes == (2, 4, 8, 16)
    builder = lite.GraphBuilder("model")
    free_width(builder)
    pytest.importorskip("lite_x86")
    shapes = [{"x": (rows, 5)} for rows in (1, 3, 12)]
    lite.convert(builder.build(), tmp_path / "model.lite", targets=["x86"], shapes=shapes)
    batching = Batching(lite.load(tmp_path / "model.lite", "x86"), "exact", 8)
    assert batching.sizes == (3,)
    assert batching.size_for(((5,),), 2) == 3
    assert "Nx5" in batching.note


def test_a_file_that_is_prepared_for_one_row_is_not_compiled_for_more(tmp_path: Path) -> None:
    pytest.importorskip("lite_x86")
    builder = lite.GraphBuilder("model")
    elementwise(builder)
    lite.convert(builder.build(), tmp_path / "model.lite", targets=["x86"], shapes={"x": (1, 3)})
    session = lite.load(tmp_path / "model.lite", "x86")
    batching = Batching(session, "exact", 8)
    assert not batching.is_possible
    assert "--input-shape" in batching.note
    assert session.plan_statistics.plans == 0
    assert Batching(session, "fast", 8).size_for(((3,),), 8) == 8


def test_rows_of_requests_are_joined_filled_up_and_divided() -> None:
    requests = [{"x": np.full((rows, 2), rows, np.float32)} for rows in (1, 3, 2)]
    batch = joined(requests, 8)
    assert batch["x"][:, 0].tolist() == [1, 3, 3, 3, 2, 2, 1, 1]
    assert [part["x"].tolist() for part in parts_of(batch, [1, 3, 2])] == [r["x"].tolist() for r in requests]


def rows_of(count: int, width: int = 3) -> list[np.ndarray[Any, Any]]:
    return list(np.random.default_rng(1).standard_normal((count, 1, width)).astype(np.float32))


async def together(repository: Any, model: str, inputs: list[np.ndarray[Any, Any]]) -> list[InferResponse]:
    return list(await asyncio.gather(*(ask(repository, model, x=x, timeout=None) for x in inputs)))


def test_requests_share_a_run_and_answers_have_the_bits_of_single_requests(tmp_path: Path) -> None:
    path = written(tmp_path / "net.lite", elementwise)
    inputs = rows_of(8)

    async def main() -> None:
        metrics = Metrics()
        async with serving(path, metrics, backend="host", batch_delay=MINUTE, instances=2) as repository:
            answers = await together(repository, "net", inputs)
            assert {(a.parameters["batch_size"], a.parameters["batch_requests"]) for a in answers} == {(8, 8)}
            single = lite.load(path, "host")
            for x, answer in zip(inputs, answers):
                assert answer.outputs["y"].tobytes() == single.run({"x": x})["y"].tobytes()
            assert state_of(metrics, "lite_batch_requests_sum") == 8
            assert state_of(metrics, "lite_run_seconds_count") == 1
            assert "bit-equal" in repository.metadata("net").properties["batch_answers"]

    asyncio.run(main())


def test_requests_of_several_rows_share_a_run(tmp_path: Path) -> None:
    inputs = [np.concatenate(rows_of(rows)) for rows in (4, 2, 1, 1)]

    async def main() -> None:
        async with serving(times(tmp_path / "double.lite"), backend="host", batch_delay=MINUTE) as repository:
            answers = await together(repository, "double", inputs)
            assert [a.parameters["batch_requests"] for a in answers] == [4] * 4
            for x, answer in zip(inputs, answers):
                np.testing.assert_array_equal(answer.outputs["y"], x * 2)
            large = np.concatenate(rows_of(9))  # larger than a batch: alone, and at once
            np.testing.assert_array_equal((await ask(repository, "double", x=large)).outputs["y"], large * 2)
            empty = np.zeros((0, 3), np.float32)
            assert (await ask(repository, "double", x=empty)).outputs["y"].shape == (0, 3)

    asyncio.run(main())


def test_requests_of_other_shapes_do_not_share_a_run(tmp_path: Path) -> None:
    async def main() -> None:
        path = written(tmp_path / "net.lite", free_width)
        async with serving(path, backend="host", batching="fast", largest_batch=2) as repository:
            for _ in range(20):  # shapes are checked when requests have met
                answers = await together(repository, "net", [*rows_of(4, 3), *rows_of(4, 5)])
                assert [a.outputs["y"].shape[1] for a in answers] == [3] * 4 + [5] * 4
            assert {"Nx3", "Nx5"} & set(repository.notes[-1].replace(":", " ").split())

    asyncio.run(main())


def test_a_request_that_fails_fails_alone(tmp_path: Path) -> None:
    def build(b: lite.GraphBuilder) -> None:
        b.output(b.add("Gather", [b.constant(np.arange(4, dtype=np.float32)), b.input("i", "int64", ["n", 1])]), "y")

    async def main() -> None:
        path = written(tmp_path / "table.lite", build)
        async with serving(path, backend="host", batch_delay=MINUTE, largest_batch=4) as repository:
            tasks = [ask(repository, "table", i=np.array([[i]])) for i in (3, 99, 1, 0)]
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(results[1], InvalidRequestError)
            assert "index 99" in str(results[1])
            answers = [r.outputs["y"].tolist() for r in results if isinstance(r, InferResponse)]
            assert answers == [[[3.0]], [[1.0]], [[0.0]]]

    asyncio.run(main())


def test_indices_are_checked_with_those_of_a_request() -> None:
    batching = Batching(session_of(looked_up), "exact", 4)
    assert "could not be checked" in batching.note
    batching = Batching(session_of(looked_up), "fast", 4)
    batching._keys.clear()
    batching.check(((2,),), {"i": np.zeros((1, 2), np.int64)})
    assert batching.size_for(((2,),), 4) == 4


def test_batching_off(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(times(tmp_path / "double.lite"), batching="off", batch_delay=MINUTE) as repository:
            answers = await together(repository, "double", rows_of(8))
            assert [a.parameters["batch_requests"] for a in answers] == [1] * 8
            assert repository.metadata("double").properties["batching"] == "off"

    asyncio.run(main())


@pytest.mark.full("serving")
def test_a_real_model_answers_many_clients_as_it_answers_one() -> None:
    files = catalog.ensure("pp_ocrv4_cls")
    (name, picture), *_ = catalog.example_input("pp_ocrv4_cls").items()
    pictures = [np.ascontiguousarray(np.roll(picture[:1], n, axis=3)) for n in range(8)]

    async def main() -> None:
        single = lite.load(files.model, threads=1)
        expected = [next(iter(single.run({name: x}).values())) for x in pictures]
        async with serving(files.model.parent, name="direction", instances=2, batching="exact") as repository:
            for _ in range(4):
                answers = await asyncio.gather(*(ask(repository, "direction", **{name: x}) for x in pictures))
                for answer, wanted in zip(answers, expected):
                    assert next(iter(answer.outputs.values())).tobytes() == wanted.tobytes()
        async with serving(files.model.parent, name="direction", batching="fast", batch_delay=0.05) as repository:
            for _ in range(4):
                answers = await asyncio.gather(*(ask(repository, "direction", **{name: x}) for x in pictures))
                for answer, wanted in zip(answers, expected):
                    # Probabilities of two classes, from sums of a few thousand float32 numbers in another order.
                    np.testing.assert_allclose(next(iter(answer.outputs.values())), wanted, atol=1e-5)

    asyncio.run(main())
