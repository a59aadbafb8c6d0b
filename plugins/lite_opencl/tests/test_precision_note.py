"""Notes about a precision that a device does not compute in, and the types that a session computes in."""

from __future__ import annotations

from dataclasses import replace

from lite_core.builder import GraphBuilder
from lite_core.session import load
from lite_opencl.device.devices import describe, find_devices


def test_stated_precisions() -> None:
    found = find_devices()
    assert isinstance(found, list)
    with_half = replace(found[0], extensions=found[0].extensions | {"cl_khr_fp16"})
    without = replace(found[0], extensions=found[0].extensions - {"cl_khr_fp16"})
    assert describe(with_half, "opencl", 0).details["float16"].startswith("float16")
    assert "cl_khr_fp16" in describe(without, "opencl", 0).details["float16"]
    assert describe(with_half, "opencl", 0).details["bfloat16"].startswith("float32")


def test_notes_of_a_session() -> None:
    b = GraphBuilder("exp")
    b.output(b.add("Exp", [b.input("x", "float32", [4])]), "y")
    graph = b.build()
    found = find_devices()
    assert isinstance(found, list)
    notes = load(graph, "opencl", precision="float16").notes
    assert len(notes) == (0 if found[0].half else 1)
    assert all("float32: it has no cl_khr_fp16" in note for note in notes)
    (note,) = load(graph, "opencl", precision="bfloat16").notes
    assert "OpenCL has no bfloat16" in note
    assert load(graph, "opencl").notes == ()


def test_types_that_a_model_computes_in() -> None:
    """16-bit floats are told of only where the model has any."""
    for dtype, told in (("float32", "types of the model"), ("float16", "16-bit floats in float32")):
        b = GraphBuilder("exp")
        b.output(b.add("Exp", [b.input("x", dtype, [4])]), "y")
        session = load(b.build(), "opencl")
        session.plan({"x": (4,)})
        (line,) = session.computes
        assert line.endswith(told)
