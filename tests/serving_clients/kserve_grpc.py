"""The server by gRPC, asked with kserve's client: raw and typed contents, and wrong requests."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import numpy as np
import pytest
from asked import ARRAYS, GRPC, WRONG, Wrong, equal_bits, sample, zeros
from kserve import InferenceGRPCClient, InferInput, InferRequest, InferResponse
from kserve.protocol.infer_type import RequestedOutput

#: kserve has no name for bfloat16.
KNOWN = sorted(ARRAYS.keys() - {"BF16"})


def asked(ask: Any) -> Any:
    """Ask a client of its own in an event loop of its own."""

    async def run() -> Any:
        async with InferenceGRPCClient(GRPC, retries=0) as client:
            return await ask(client)

    return asyncio.run(run())


def infer(model: str, inputs: list[InferInput], outputs: list[RequestedOutput] | None = None) -> InferResponse:
    request = InferRequest(model, inputs, request_id="seven", request_outputs=outputs)
    return asked(lambda client: client.infer(request))


def raw(name: str, datatype: str, array: np.ndarray[Any, Any]) -> InferInput:
    made = InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=True)
    return made


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("datatype", KNOWN)
def test_raw_contents(datatype: str, rows: int) -> None:
    array = sample(datatype, rows)
    answer = infer(f"echo_{datatype.lower()}", [raw("x", datatype, array)])
    assert answer.id == "seven"
    (output,) = answer.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("y", datatype, list(array.shape))
    assert (
        output.as_numpy().tobytes() == array.tobytes() if datatype != "BYTES" else equal_bits(output.as_numpy(), array)
    )


@pytest.mark.parametrize("datatype", sorted(set(KNOWN) - {"FP16"}))
def test_typed_contents(datatype: str) -> None:
    array = sample(datatype)
    (output,) = infer(
        f"echo_{datatype.lower()}", [InferInput("x", list(array.shape), datatype, array.flatten().tolist())]
    ).outputs
    assert equal_bits(output.as_numpy(), array)


def test_the_server_and_a_model() -> None:
    assert asked(lambda client: client.is_server_live()) is True
    assert asked(lambda client: client.is_server_ready()) is True
    assert asked(lambda client: client.is_model_ready("sum")) is True


@pytest.mark.parametrize("wrong", [one for one in WRONG.values() if not one.version], ids=lambda one: one.named)
def test_wrong(wrong: Wrong) -> None:
    inputs = [raw(name, datatype, zeros(datatype, shape)) for name, datatype, shape in wrong.inputs]
    outputs = [RequestedOutput(wrong.output)] if wrong.output else None
    with pytest.raises(grpc.RpcError) as refused:
        infer(wrong.model, inputs, outputs)
    expected = grpc.StatusCode.INVALID_ARGUMENT if wrong.found else grpc.StatusCode.NOT_FOUND
    assert refused.value.code() == expected
    assert wrong.named in refused.value.details()
