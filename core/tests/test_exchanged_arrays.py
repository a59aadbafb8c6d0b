"""Arrays of other libraries as inputs, by DLPack and the buffer protocol; outputs that other libraries take over."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.plugins import plugins_with
from lite_core.session import Session, load

CPU, CPU_PINNED, CUDA = 1, 3, 2


class Tensor:
    """An array of another library, which offers nothing but DLPack."""

    def __init__(self, values: Any, device: int = CPU) -> None:
        self.values, self.device = np.asarray(values, np.float32), device

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def session_of(op: str = "Neg", shape: Any = ("n",)) -> Session:
    b = GraphBuilder("net")
    b.output(b.add(op, [b.input("x", "float32", shape)]), "y")
    return load(b.build(), plugins=plugins_with())


def test_inputs_by_dlpack_and_by_the_buffer_protocol() -> None:
    session = session_of()
    for given in (Tensor([1, 2]), array.array("f", [1, 2]), memoryview(np.array([1, 2], np.float32))):
        assert session.run({"x": given})["y"].tolist() == [-1, -2]


def test_an_input_by_dlpack_is_not_copied() -> None:
    session, given = session_of(shape=[2]), Tensor([1, 2])
    taken: list[Any] = []
    run = session.plan().run
    session.plan().run = lambda arrays, *more: (taken.append(arrays[0]), run(arrays, *more))[1]  # type: ignore[method-assign]
    session.run({"x": given})
    assert np.shares_memory(taken[0], given.values)


def test_arrays_by_dlpack_must_have_the_models_element_type() -> None:
    given = Tensor([1, 2])
    given.values = given.values.astype(np.float64)
    with pytest.raises(InputError, match="input 'x' must be float32, is float64"):
        session_of().run({"x": given})


@pytest.mark.parametrize("device", [CUDA, 8, 14])
def test_arrays_of_devices_are_refused_with_what_to_do(device: int) -> None:
    with pytest.raises(InputError, match=r"input 'x' is in the memory of a device; copy it.*x\.cpu\(\) in torch"):
        session_of().run({"x": Tensor([1, 2], device)})


def test_outputs_export_dlpack_and_the_buffer_protocol_and_belong_to_the_caller() -> None:
    session, x = session_of(), np.array([1, 2], np.float32)
    first = session.run({"x": x})["y"]
    taken, view = np.from_dlpack(first), memoryview(first)
    assert np.shares_memory(taken, first)
    assert not view.readonly
    view[0] = 9.0
    session.run({"x": x + 1})
    session.close()
    assert taken.tolist() == [9, -2]
