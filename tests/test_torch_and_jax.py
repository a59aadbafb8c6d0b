"""Arrays of PyTorch and JAX as inputs and outputs, as docs/python.md describes them. Skipped where they are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core.plugins import plugins_with

pytestmark = pytest.mark.full("examples")


def session_of(dtype: str = "float32") -> lite.Session:
    b = lite.GraphBuilder("net")
    b.output(b.add("Neg", [b.input("x", dtype, ["n", 2])]), "y")
    return lite.load(b.build(), plugins=plugins_with())


def addresses_read(session: lite.Session, given: Any) -> list[int]:
    """Return the addresses of the arrays that a run reads."""
    plan, read = session.plan({"x": (1, 2)}), []
    run = plan.run

    def watched(arrays: Any, *more: Any) -> Any:
        read.extend(array.ctypes.data for array in arrays)
        return run(arrays, *more)

    plan.run = watched  # type: ignore[method-assign]
    session.run({"x": given})
    return read


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed; make test-full installs it")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int8"])
def test_a_tensor_of_torch_is_read_in_place_and_an_output_taken_over(dtype: str, torch: Any) -> None:
    session, given = session_of(dtype), torch.ones((1, 2), dtype=getattr(torch, dtype))
    assert addresses_read(session, given) == [given.data_ptr()]
    output = session.run({"x": given})["y"]
    taken = torch.from_dlpack(output)
    assert (taken.data_ptr(), taken.dtype) == (output.ctypes.data, given.dtype)
    taken[0, 0] = 7
    session.run({"x": given + 1})
    session.close()
    assert output.tolist() == taken.tolist()
    assert output[0, 0] == 7


def test_torch_writes_to_and_reads_from_bound_arrays(torch: Any) -> None:
    given, received = torch.ones(1, 2), torch.empty(1, 2)
    binding = session_of().bind({"x": given.numpy()}, {"y": received.numpy()})
    for number in (1, 2, 3):
        given.fill_(number)
        binding.run()
        assert received.tolist() == [[-number, -number]]


def test_bfloat16_of_torch_travels_as_bytes(torch: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    session, given = session_of("bfloat16"), torch.tensor([[1.5, 2]], dtype=torch.bfloat16)
    with pytest.raises(lite.InputError, match="input 'x' must be bfloat16.*BFloat16"):
        session.run({"x": given})
    array = given.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    assert array.ctypes.data == given.data_ptr()
    output = session.run({"x": array})["y"]
    taken = torch.from_numpy(output.view(np.uint16)).view(torch.bfloat16)
    assert taken.tolist() == [[-1.5, -2]]
    assert taken.data_ptr() == output.ctypes.data


def test_tensors_that_cannot_be_read_say_what_to_do(torch: Any) -> None:
    session = session_of()
    with pytest.raises(lite.InputError, match=r"tensor\.detach\(\)"):
        session.run({"x": torch.ones((1, 2), requires_grad=True)})
    with pytest.raises(lite.InputError, match="input 'x' must be float32, is float64"):
        session.run({"x": torch.ones((1, 2), dtype=torch.float64)})
    if torch.cuda.is_available():
        with pytest.raises(lite.InputError, match=r"in the memory of a device; copy it.*x\.cpu\(\)"):
            session.run({"x": torch.ones((1, 2), device="cuda")})


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_an_array_of_jax_is_read_in_place_and_an_output_taken_over(dtype: str, jax: Any) -> None:
    session, given = session_of(dtype), jax.numpy.ones((1, 2), dtype)
    assert addresses_read(session, given) == [given.unsafe_buffer_pointer()]
    output = session.run({"x": given})["y"]
    assert jax.numpy.asarray(output).tolist() == [[-1, -1]]
    if dtype != "bfloat16":  # NumPy has no such type, and exports none
        assert jax.dlpack.from_dlpack(output).tolist() == [[-1, -1]]
