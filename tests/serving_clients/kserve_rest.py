"""The server by HTTP, asked with kserve's client: JSON and binary tensors, and wrong requests."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest
from asked import ARRAYS, HTTP, WRONG, Wrong, equal_bits, sample, zeros
from kserve import InferenceRESTClient, InferInput, InferRequest, InferResponse, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

#: kserve has no name for bfloat16.
KNOWN = sorted(ARRAYS.keys() - {"BF16"})


def asked(ask: Any) -> Any:
    """Ask a client of its own in an event loop of its own."""

    async def run() -> Any:
        client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
        try:
            return await ask(client)
        finally:
            await client.close()

    return asyncio.run(run())


def infer(model: str, inputs: list[InferInput], outputs: list[RequestedOutput] | None = None) -> InferResponse:
    request = InferRequest(model, inputs, request_id="seven", request_outputs=outputs)
    return asked(lambda client: client.infer(HTTP, request, model_name=model))


def tensor(name: str, datatype: str, array: np.ndarray[Any, Any], *, binary: bool = True) -> InferInput:
    made = InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("datatype", KNOWN)
def test_binary_tensors(datatype: str, rows: int) -> None:
    array = sample(datatype, rows)
    wanted = [RequestedOutput("y", parameters={"binary_data": True})]
    answer = infer(f"echo_{datatype.lower()}", [tensor("x", datatype, array)], wanted)
    assert answer.id == "seven"
    (output,) = answer.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("y", datatype, list(array.shape))
    if rows and datatype == "BYTES":  # it returns texts
        assert [text.encode() for text in output.as_numpy().flat] == array.flatten().tolist()
    elif rows:
        assert equal_bits(output.as_numpy(), array)


@pytest.mark.parametrize("datatype", sorted(set(KNOWN) - {"FP16"}))
def test_json_tensors(datatype: str) -> None:
    array = sample(datatype)
    (output,) = infer(f"echo_{datatype.lower()}", [tensor("x", datatype, array, binary=False)]).outputs
    assert output.datatype == datatype
    if datatype == "BYTES":
        assert [text.encode() for text in output.data] == array.flatten().tolist()
        return
    found = np.array(output.data, array.dtype).reshape(output.shape)  # null is NaN, as kserve writes it
    finite = np.isfinite(array)
    assert np.array_equal(found[finite], array[finite])
    if array.dtype.kind == "f":
        assert np.array_equal(np.isfinite(found), finite)


def test_the_server_and_a_model() -> None:
    assert asked(lambda client: client.is_server_live(HTTP)) is True
    assert asked(lambda client: client.is_server_ready(HTTP)) is True
    assert asked(lambda client: client.is_model_ready(HTTP, "sum")) is True
    assert asked(lambda client: client.is_model_ready(HTTP, "nothing")) is False


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("wrong", [one for one in WRONG.values() if not one.version], ids=lambda one: one.named)
def test_wrong(wrong: Wrong, binary: bool) -> None:
    inputs = [tensor(name, datatype, zeros(datatype, shape), binary=binary) for name, datatype, shape in wrong.inputs]
    outputs = [RequestedOutput(wrong.output)] if wrong.output else None
    with pytest.raises(httpx.HTTPStatusError) as refused:
        infer(wrong.model, inputs, outputs)
    assert refused.value.response.status_code == (400 if wrong.found else 404)
    assert wrong.named in refused.value.response.json()["error"]
    assert wrong.named in str(refused.value)
