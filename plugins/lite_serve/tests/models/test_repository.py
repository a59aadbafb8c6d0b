"""The repository: answers, wrong requests, loading and unloading while requests run, and the end."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served_models import SLOW, ask, serving, sleeper, state_of, times, until, written

import lite_core as lite
from lite_core.errors import InputError
from lite_serve.models.metrics import Metrics
from lite_serve.models.settings import ModelSettings
from lite_serve.protocol.errors import (
    DeadlineError,
    FailedModelError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    ProtocolError,
    UnavailableModelError,
)
from lite_serve.protocol.messages import InferRequest, RequestedOutput, TensorMetadata

ONES = np.ones((2, 3), np.float32)


def test_a_model_answers(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(times(tmp_path / "double.lite")) as repository:
            answer = await ask(repository, "double", x=ONES)
            assert (answer.model, answer.version, answer.id) == ("double", "1", "")
            np.testing.assert_array_equal(answer.outputs["y"], ONES * 2)
            assert answer.parameters == {"batch_size": 2, "batch_requests": 1}
            metadata = repository.metadata("double")
            assert (metadata.name, metadata.versions, metadata.platform) == ("double", ("1",), "lite_lite")
            assert metadata.inputs == (TensorMetadata("x", "FP32", (-1, 3)),)
            assert metadata.outputs == (TensorMetadata("y", "FP32", (-1, 3)),)
            assert f"{metadata.properties['devices']}: " in metadata.properties["selection"]
            assert repository.index() == [("double", "1", "READY", "")]
            assert repository.is_ready("double")
            assert repository.is_ready("double", "1")

    asyncio.run(main())


def everything(b: lite.GraphBuilder) -> None:
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64", "string"):
        b.output(b.add("Identity", [b.input(f"in_{dtype}", dtype, ["n", 2])]), f"out_{dtype}")


def test_element_types_and_empty_arrays_come_back_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path / "all.lite", everything)

    async def main(rows: int) -> None:
        async with serving(path) as repository:
            types = {tensor.name: tensor.datatype for tensor in repository.metadata("all").inputs}
            assert list(types.values()) == ["BOOL", "INT8", "UINT16", "INT64", "FP16", "BF16", "FP64", "BYTES"]
            given: dict[str, Any] = {}
            for name in types:
                dtype = lite.DType.of(name.removeprefix("in_"))
                values = [["a", "ü"], ["", "b"]] if dtype is lite.DType.STRING else [[0, 1], [1, 0]]
                given[name] = np.array(values, dtype.numpy)[:rows]
            given["in_float64"] = np.array([[np.nan, -0.0], [np.inf, 5e-324]])[:rows]
            answer = await ask(repository, "all", **given)
            for name, array in given.items():
                output = answer.outputs[name.replace("in_", "out_")]
                assert (output.dtype, output.shape) == (array.dtype, array.shape)
                assert (
                    output.tolist() == array.tolist() if array.dtype.hasobject else output.tobytes() == array.tobytes()
                )

    asyncio.run(main(2))
    asyncio.run(main(0))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, ["'x'", "missing"]),
        ({"x": ONES, "z": ONES}, ["'z'", "inputs are: x"]),
        ({"x": ONES.astype(np.float64)}, ["'x'", "FP32", "FP64"]),
        ({"x": ONES.astype(np.int64)}, ["'x'", "FP32", "INT64"]),
        ({"x": np.array([["1", "2", "3"]], object)}, ["'x'", "FP32", "BYTES"]),
        ({"x": np.ones((2, 4), np.float32)}, ["'x'", "[2, 4]"]),
        ({"x": np.ones(3, np.float32)}, ["'x'", "[3]"]),
        ({"x": np.ones((0, 1 << 40), np.float32)}, ["'x'", str(1 << 40)]),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_are_named(tmp_path: Path, inputs: dict[str, Any], words: list[str]) -> None:
    async def main() -> None:
        async with serving(times(tmp_path / "double.lite")) as repository:
            with pytest.raises(InvalidRequestError) as caught:
                await ask(repository, "double", **inputs)
            for word in words:
                assert word in str(caught.value)
            np.testing.assert_array_equal((await ask(repository, "double", x=ONES)).outputs["y"], ONES * 2)

    asyncio.run(main())


def several(b: lite.GraphBuilder) -> None:
    x = b.input("x", "float32", ["n", 3])
    for op in ("Neg", "Abs", "Relu"):
        b.output(b.add(op, [x]), op.lower())


def test_only_requested_outputs_are_returned_in_the_order_of_the_request(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(written(tmp_path / "several.lite", several)) as repository:
            request = InferRequest("several", inputs={"x": -ONES})
            assert list((await repository.infer(request)).outputs) == ["neg", "abs", "relu"]
            request.outputs = (RequestedOutput("relu"), RequestedOutput("neg"))
            answer = await repository.infer(request)
            assert list(answer.outputs) == ["relu", "neg"]
            np.testing.assert_array_equal(answer.outputs["relu"], ONES * 0)
            request.outputs = (RequestedOutput("sigmoid"),)
            with pytest.raises(InvalidRequestError, match=r"'sigmoid'.*neg, abs, relu"):
                await repository.infer(request)
            request.outputs = (RequestedOutput("neg"), RequestedOutput("neg"))
            with pytest.raises(InvalidRequestError, match="twice"):
                await repository.infer(request)

    asyncio.run(main())


def test_elements_that_the_model_refuses_are_a_fault_of_the_request(tmp_path: Path) -> None:
    def build(b: lite.GraphBuilder) -> None:
        b.output(b.add("Gather", [b.constant(np.arange(4, dtype=np.float32)), b.input("i", "int64", ["n"])]), "y")

    async def main() -> None:
        async with serving(written(tmp_path / "table.lite", build), backend="host") as repository:
            with pytest.raises(InvalidRequestError, match="index 100 is out of range"):
                await ask(repository, "table", i=np.array([1, 100]))
            assert (await ask(repository, "table", i=np.array([1, 3]))).outputs["y"].tolist() == [1, 3]

    asyncio.run(main())


def test_a_failing_model_is_no_fault_of_the_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def build(b: lite.GraphBuilder) -> None:
        b.output(b.add("Expand", [b.input("x", "float32", [1]), b.input("shape", "int64", [1])]), "y")

    async def main() -> None:
        async with serving(written(tmp_path / "wide.lite", build), backend="host") as repository:
            one = np.ones(1, np.float32)
            with pytest.raises(InvalidRequestError, match="memory"):
                await ask(repository, "wide", x=one, shape=np.array([1 << 44]))
            request = InferRequest("wide", id="request-7", inputs={"x": one, "shape": np.array([1 << 62])})
            with pytest.raises(FailedModelError, match="request-7") as caught:
                await repository.infer(request)
            assert "Traceback" not in str(caught.value)
            assert "array is too big" not in str(caught.value)
            assert (await ask(repository, "wide", x=one, shape=np.array([2]))).outputs["y"].tolist() == [1, 1]

    with caplog.at_level(logging.ERROR, "lite.serve.models"):
        asyncio.run(main())
    assert "request-7" in caplog.text
    assert "array is too big" in caplog.text


def test_unknown_names_are_not_found(tmp_path: Path) -> None:
    times(tmp_path / "secret.lite")
    times(tmp_path / "models" / "double" / "1" / "model.lite")
    hostile = ["", ".", "..", "../secret", "../secret.lite", "double/1", "double\0", "/", str(tmp_path / "secret.lite")]

    async def main() -> None:
        async with serving(tmp_path / "models") as repository:
            for name in ["triple", *hostile]:
                for question in (repository.is_ready, repository.metadata):
                    with pytest.raises(NotFoundError, match="double"):
                        question(name)
                for task in (ask(repository, name, x=ONES), repository.load(name), repository.unload(name)):
                    with pytest.raises(NotFoundError, match="double"):
                        await task
            for version in ("2", "../1", "01", "latest"):
                with pytest.raises(NotFoundError, match="versions are: 1"):
                    await ask(repository, "double", version=version, x=ONES)

    asyncio.run(main())


def test_a_model_that_does_not_load_is_listed_and_does_not_stop_the_others(tmp_path: Path) -> None:
    times(tmp_path / "good.lite")
    damaged = times(tmp_path / "bad.lite")
    damaged.write_bytes(damaged.read_bytes()[:-100])

    def build(b: lite.GraphBuilder) -> None:
        b.output(b.add("Cast", [b.input("x", "float32", ["n"])], {"to": lite.DType.FLOAT8E4M3FN}), "y")

    written(tmp_path / "narrow.lite", build)

    async def main() -> None:
        async with serving(tmp_path) as repository:
            index = {entry.name: entry for entry in repository.index()}
            assert (index["good"].state, index["good"].reason) == ("READY", "")
            assert index["bad"].state == index["narrow"].state == "UNAVAILABLE"
            assert "bad.lite" in index["bad"].reason
            assert str(tmp_path) not in index["bad"].reason
            assert "output 'y' is float8e4m3fn" in index["narrow"].reason
            assert any("narrow" in note and "float8e4m3fn" in note for note in repository.notes)
            with pytest.raises(UnavailableModelError, match="float8e4m3fn"):
                await ask(repository, "narrow", x=ONES)
            assert not repository.is_ready("bad")
            assert (await ask(repository, "good", x=ONES)).outputs["y"].tolist() == (ONES * 2).tolist()

    asyncio.run(main())


def test_the_newest_version_answers_and_older_ones_by_name(tmp_path: Path) -> None:
    for version in (1, 2, 10):
        times(tmp_path / "scale" / str(version) / "model.lite", version)

    async def main() -> None:
        metrics = Metrics()
        async with serving(tmp_path, metrics) as repository:
            assert [(e.version, e.state) for e in repository.index()] == [
                ("10", "READY"),
                ("2", "UNAVAILABLE"),
                ("1", "UNAVAILABLE"),
            ]
            assert state_of(metrics, "lite_model_loaded") == 1
            assert repository.metadata("scale").versions == ("1", "2", "10")
            assert (await ask(repository, "scale", x=ONES)).version == "10"
            answers = await asyncio.gather(*(ask(repository, "scale", version="2", x=ONES) for _ in range(4)))
            assert [(a.version, float(a.outputs["y"][0, 0])) for a in answers] == [("2", 2.0)] * 4
            assert state_of(metrics, "lite_model_loaded") == 2
            assert repository.is_ready("scale", "2")
            assert not repository.is_ready("scale", "1")
            assert (await ask(repository, "scale", x=ONES)).version == "10"
            await repository.load("scale")  # older versions make room
            assert [e.version for e in repository.index() if e.state == "READY"] == ["10"]
        async with serving(tmp_path, versions="all") as repository:
            assert {e.state for e in repository.index()} == {"READY"}
            assert float((await ask(repository, "scale", version="1", x=ONES)).outputs["y"][0, 0]) == 1

    asyncio.run(main())


def test_the_next_older_version_takes_the_place_of_one_that_does_not_load(tmp_path: Path) -> None:
    times(tmp_path / "scale" / "1" / "model.lite", 1)
    broken = tmp_path / "scale" / "2" / "model.lite"
    broken.parent.mkdir()
    broken.write_bytes(b"LITE")

    async def main() -> None:
        async with serving(tmp_path) as repository:
            assert [(e.version, e.state) for e in repository.index()] == [("2", "UNAVAILABLE"), ("1", "READY")]
            assert (await ask(repository, "scale", x=ONES)).version == "1"
            with pytest.raises(UnavailableModelError, match="version 2"):
                await ask(repository, "scale", version="2", x=ONES)
            with pytest.raises(UnavailableModelError, match="version 2"):
                await repository.load("scale")
            assert repository.is_ready("scale")
            times(broken, 2)
            await repository.load("scale")
            assert (await ask(repository, "scale", x=ONES)).version == "2"

    asyncio.run(main())


def test_unloading_and_loading(tmp_path: Path) -> None:
    times(tmp_path / "double.lite")

    async def main() -> None:
        async with serving(tmp_path) as repository:
            await repository.unload("double")
            assert repository.index() == [("double", "1", "UNAVAILABLE", "it was unloaded")]
            assert not repository.is_ready("double")
            for version in ("", "1"):
                with pytest.raises(UnavailableModelError, match="unloaded"):
                    await ask(repository, "double", version=version, x=ONES)
            with pytest.raises(UnavailableModelError, match="unloaded"):
                repository.metadata("double")
            await repository.load("double")
            assert (await ask(repository, "double", x=ONES)).version == "1"
            times(tmp_path / "triple.lite", 3)  # added while the server runs
            with pytest.raises(NotFoundError):
                await ask(repository, "triple", x=ONES)
            await repository.load("triple")
            assert float((await ask(repository, "triple", x=ONES)).outputs["y"][0, 0]) == 3
            (tmp_path / "triple.lite").unlink()
            with pytest.raises(NotFoundError, match="no longer there"):
                await repository.load("triple")
            assert [entry.name for entry in repository.index()] == ["double"]

    asyncio.run(main())


def test_no_request_is_lost_while_a_model_is_replaced(tmp_path: Path) -> None:
    path = times(tmp_path / "models" / "scale.lite", 1)
    others = [times(tmp_path / f"{factor}.lite", factor) for factor in (2, 3)]

    async def main() -> None:
        async with serving(tmp_path / "models", most_queued=100) as repository:
            seen: set[float] = set()
            is_done = False

            async def client() -> None:
                while not is_done:
                    values = (await ask(repository, "scale", x=ONES)).outputs["y"]
                    assert len(set(values.ravel().tolist())) == 1
                    seen.add(float(values[0, 0]))

            clients = [asyncio.create_task(client()) for _ in range(8)]
            for factor, other in enumerate(others, 1):
                await until(lambda factor=factor: factor in seen)
                shutil.copy(other, tmp_path / "new")
                (tmp_path / "new").replace(path)
                await repository.load("scale")
                assert float((await ask(repository, "scale", x=ONES)).outputs["y"][0, 0]) == factor + 1
            (tmp_path / "new").write_bytes(b"not a model")
            (tmp_path / "new").replace(path)
            with pytest.raises(UnavailableModelError):
                await repository.load("scale")
            assert repository.is_ready("scale")  # what was loaded still answers
            assert repository.index()[0].reason
            assert float((await ask(repository, "scale", x=ONES)).outputs["y"][0, 0]) == 3
            is_done = True
            await asyncio.gather(*clients)
            assert seen == {1.0, 2.0, 3.0}

    asyncio.run(main())


def test_a_load_without_changes_keeps_the_session(tmp_path: Path) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with serving(times(tmp_path / "double.lite"), metrics) as repository:
            await ask(repository, "double", x=ONES)
            hits = state_of(metrics, "lite_plan_cache_hits_total")
            await repository.load("double")
            assert state_of(metrics, "lite_plan_cache_hits_total") == hits > 0

    asyncio.run(main())


def test_a_full_queue_refuses_and_a_time_that_is_over_frees_it(tmp_path: Path) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with serving(sleeper(tmp_path / "sleeper.lite"), metrics, instances=1, most_queued=2) as repository:

            async def outcome(timeout: float, n: Any = SLOW) -> object:
                try:
                    return (await ask(repository, "sleeper", timeout=timeout, n=n)).outputs["count"]
                except ProtocolError as error:
                    return error

            running = asyncio.create_task(outcome(1.5))
            await until(lambda: state_of(metrics, "lite_requests_running") == 1)
            queued = [asyncio.create_task(outcome(0.3)), asyncio.create_task(outcome(60, np.array([7])))]
            await until(lambda: state_of(metrics, "lite_queue_length") == 2)
            refused = await outcome(60)
            assert isinstance(refused, OverloadedError)
            expired = await queued[0]
            assert isinstance(expired, DeadlineError)
            assert "in the queue" in str(expired)
            stopped = await running
            assert isinstance(stopped, DeadlineError)
            assert "ran" in str(stopped)
            assert await queued[1] == 7
            assert isinstance(await outcome(0), DeadlineError)
            assert await outcome(60, np.array([5])) == 5

    asyncio.run(main())


def test_a_cancelled_request_leaves_the_queue(tmp_path: Path) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with serving(sleeper(tmp_path / "sleeper.lite"), metrics, instances=1, most_queued=1) as repository:
            running = asyncio.ensure_future(ask(repository, "sleeper", timeout=1, n=SLOW))
            await until(lambda: state_of(metrics, "lite_requests_running") == 1)
            queued = asyncio.ensure_future(ask(repository, "sleeper", n=SLOW, timeout=None))
            await until(lambda: state_of(metrics, "lite_queue_length") == 1)
            queued.cancel()
            with pytest.raises(asyncio.CancelledError):
                await queued
            assert state_of(metrics, "lite_queue_length") == 0
            following = ask(repository, "sleeper", n=np.array([3]))
            assert (await following).outputs["count"] == 3
            with pytest.raises(DeadlineError):
                await running

    asyncio.run(main())


@pytest.mark.parametrize("end", ["unload", "close"])
def test_what_was_accepted_is_finished(tmp_path: Path, end: str) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with serving(sleeper(tmp_path / "sleeper.lite"), metrics, instances=2, backend="host") as repository:
            counts = [6_000, 3_000, 1, 1_000, 10, 500]
            accepted = [asyncio.ensure_future(ask(repository, "sleeper", n=np.array([n]))) for n in counts]
            await until(lambda: state_of(metrics, "lite_requests_running") == 2)
            ending = asyncio.ensure_future(repository.unload("sleeper") if end == "unload" else repository.close())
            await asyncio.sleep(0)
            with pytest.raises(UnavailableModelError):
                await ask(repository, "sleeper", n=np.array([1]))
            assert [int((await answer).outputs["count"]) for answer in accepted] == counts
            await ending
            assert state_of(metrics, "lite_model_loaded") == 0
            assert not repository.is_ready("sleeper")

    asyncio.run(main())


def test_what_an_untrusted_file_may_not_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lite_x86")
    builder = lite.GraphBuilder("net")
    x = builder.input("x", "float32", ["n", 8])
    builder.output(
        builder.add("Relu", [builder.add("MatMul", [x, builder.constant(np.eye(8, dtype=np.float32))])]), "y"
    )
    lite.convert(builder.build(), tmp_path / "net.lite", targets=["x86"], shapes={"x": (1, 8)})
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path / "of another user"))

    async def main() -> None:
        async with serving(tmp_path / "net.lite", backend="x86") as repository:
            assert any("net: " in note and "lite trust" in note for note in repository.notes)
            eight = np.ones((1, 8), np.float32)
            np.testing.assert_array_equal((await ask(repository, "net", x=eight)).outputs["y"], eight)
        async with serving(tmp_path / "net.lite", backend="x86", saved="trust") as repository:
            assert not any("lite trust" in note for note in repository.notes)

    asyncio.run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        {"instances": 0},
        {"threads": True},
        {"most_queued": "many"},
        {"batching": "always"},
        {"versions": "2"},
        {"batch_delay": -1},
        {"batch_delay": float("nan")},
    ],
    ids=str,
)
def test_wrong_settings_are_errors_that_name_them(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        ModelSettings(**wrong)
