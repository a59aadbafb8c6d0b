"""Errors and lines of the log, each provoked as a user meets it: the messages that docs/troubleshooting.md quotes.

``PROVOKED`` has for each section of the page, in the order of its messages, a function that is called in an empty
working folder with pytest's ``monkeypatch``. It raises the error of the section's name or, in other sections, returns
the line.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from installed_plugins import install, plugins_of
from test_convert import Toy
from test_trust import WithoutCompiler

import lite_core as lite
from lite_conformance.cases.case import Settings
from lite_conformance.cases.op_cases import OpCase
from lite_conformance.cases.op_runner import example_of
from lite_conformance.cases.plugins import brought
from lite_conformance.cases.plugins.operators import _fail
from lite_conformance.judge.tolerances import EXACT
from lite_conformance.mutate.campaign import Campaign
from lite_conformance.mutate.plan import Plan
from lite_conformance.run.pool import Worker
from lite_conformance.submission.archive import read_archive
from lite_core.passes import run_passes
from lite_core.plugins import available_backends, plugins_with
from lite_cpu.machine_code import remote
from lite_onnx.format import OnnxFormat
from lite_opencl.device.errors import buffer_too_large
from lite_tools.cli.group import lite as command_group
from lite_tools.commands.braces import expand_braces
from lite_tools.pictures import layout
from lite_tools.pictures.from_graph import picture_of_graph
from lite_tools.writing import write_model

__all__ = ["PROVOKED"]

Provoke = Callable[[pytest.MonkeyPatch], Any]
IMAGE = np.zeros((1, 3, 8, 8), np.float32)


def network() -> lite.Graph:
    """Return a network with the input ``image`` float32[1, 3, 8, 8] and the output ``scores``."""
    b = lite.GraphBuilder("small")
    b.output(b.add("Softmax", [b.add("Relu", [b.input("image", "float32", IMAGE.shape)], name="hidden")]), "scores")
    return b.build()


def loop() -> lite.Graph:
    """Return a loop that does not end by itself."""
    body = lite.GraphBuilder("body")
    body.input("iteration", "int64", [])
    body.input("condition", "bool", [])
    x = body.input("value", "float32", [])
    body.output(body.constant(np.array(True), "always"), "goes_on")
    body.output(body.add("Add", [x, x]), "doubled")
    b = lite.GraphBuilder("endless")
    start = [None, b.constant(np.array(True)), b.input("x", "float32", [])]
    b.output(b.add("Loop", start, {"body": body.build()}, name="loop"), "y")
    return b.build()


class Failing:
    """A plugin's pass that raises an exception."""

    name = "my_pass"

    def __call__(self, graph: lite.Graph) -> Any:
        raise KeyError("axis")


def failing_kernel() -> Any:
    backend = lite.KernelBackend("toy")

    @backend.kernel("Relu", dtypes=["float32"])
    def relu(x: Any, *, out: Any) -> None:
        raise ValueError("bad stride")

    return plugins_with(backend)


def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    session = lite.load(network(), backend="host")
    session.close()
    session.run(image=IMAGE)


def saved(name: str, content: bytes) -> str:
    Path(name).write_bytes(content)
    return name


def lite_file(first: int | None = None, damaged_at: int = 0) -> str:
    """Write a .lite file, cut off or with a changed byte."""
    write_model("model.lite", network())
    content = bytearray(Path("model.lite").read_bytes()[:first])
    content[damaged_at] ^= 1 if damaged_at else 0
    return saved("model.lite", bytes(content))


def foreign_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    node = onnx.helper.make_node("Swirl", ["x"], ["y"], "swirl_1", domain="acme.far")
    graph = onnx.helper.make_graph([node], "g", [value], [onnx.helper.make_tensor_value_info("y", 1, [2])])
    onnx.save(onnx.helper.make_model(graph), "custom.onnx")
    lite.load("custom.onnx")


def cut_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    OnnxFormat().write(network(), Path("model.onnx"))
    lite.load(saved("model.onnx", Path("model.onnx").read_bytes()[:100]))


def untrusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CONFIG_DIR", "mine")
    lite.convert(network(), "model.lite", "toy", plugins=plugins_with(Toy()))
    monkeypatch.setenv("LITE_CONFIG_DIR", "theirs")
    lite.load("model.lite", backend="toy", fallback="never", plugins=plugins_with(WithoutCompiler()))


def left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "host")
    lite.load(network(), backend="x86")


def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    install(Path.cwd(), "chip", "import not_installed")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    available_backends(plugins_of(Path.cwd()))


def without_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    write_model("model.lite", network())
    command_group(["run", "model.lite", "-i", saved("picture.png", b"\x89PNG\r\n\x1a\n")], standalone_mode=False)


def without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "has_layout", lambda: False)
    layout.lay_out(picture_of_graph(network()))


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_COMPILE_COMMAND", "no-such-compiler")
    remote.build(dict, "1")  # type: ignore[arg-type]


def too_large_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    raise buffer_too_large("gfx1100", "step 12 needs 3221225472 bytes", 2147483648)


def broken_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value, dist = "cases", "acme.cases", None

        def load(self) -> Any:
            raise ImportError("No module named 'acme.cases'")

    (broken,) = brought.import_cases(plugins_with(), [Entry()])  # type: ignore[list-item]
    brought._imported.clear()
    _fail(None, broken)  # type: ignore[arg-type]


def failing_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(Plan(ops=("Relu",)), Path("results"))
    monkeypatch.setattr(sys, "executable", "false")
    campaign.run()


def dying_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    saved("dies.py", b"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    Worker(Settings("dies.py:backend"))


def logged(logger: str, provoke: Callable[[], object], containing: str) -> str:
    """Return the first line of a logger that contains a text, as LITE_LOG=debug prints it."""
    lines: list[str] = []
    handler = logging.Handler()
    pattern = logging.Formatter("%(levelname).1s %(relativeCreated)7.0f ms %(name)s: %(message)s")
    handler.emit = lambda record: lines.append(pattern.format(record))  # type: ignore[method-assign]
    found = logging.getLogger(logger)
    level = found.level
    found.addHandler(handler)
    found.setLevel(logging.DEBUG)
    try:
        provoke()
    finally:
        found.removeHandler(handler)
        found.setLevel(level)
    return next(line for line in lines if containing in line)


def run_toy() -> None:
    backend = lite.KernelBackend("toy")
    backend.kernel("Relu", dtypes=["float32"])(lambda x, *, out: np.maximum(x, 0, out=out))
    lite.load(network(), backend="toy", plugins=plugins_with(backend)).run(image=IMAGE)


def log_of_refusal(monkeypatch: pytest.MonkeyPatch) -> str:
    return logged("lite.schedule", run_toy, "not toy")


def log_of_step(monkeypatch: pytest.MonkeyPatch) -> str:
    return logged("lite.run", run_toy, "run ")


def log_of_plugin(monkeypatch: pytest.MonkeyPatch) -> str:
    install(Path.cwd(), "chip", "import not_installed")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    return logged("lite.plugins", lambda: available_backends(plugins_of(Path.cwd())), "ignored")


def log_of_configuration(monkeypatch: pytest.MonkeyPatch) -> str:
    from lite_core import storage

    monkeypatch.setenv("LITE_CONFIG_DIR", str(Path.cwd()))
    Path.cwd().chmod(0o700)
    saved("config.json", b"{")
    return logged("lite", storage.configuration, "ignored")


def note_of_host(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LITE_BACKENDS", "")
    return lite.load(network()).notes[0]


def note_of_some(monkeypatch: pytest.MonkeyPatch) -> str:
    backend = lite.KernelBackend("toy")
    backend.kernel("Relu", dtypes=["float32"])(lambda x, *, out: np.maximum(x, 0, out=out))
    session = lite.load(network(), backend="toy", plugins=plugins_with(backend))
    return session.notes[0]


PROVOKED: Mapping[str, Sequence[Provoke]] = {
    "ModelFormatError": (
        lambda m: lite.load(saved("notes.txt", b"hello\n")),
        lambda m: (Path("folder").mkdir(), lite.load("folder")),
        lambda m: lite.load(lite_file(first=300)),
        lambda m: lite.load(lite_file(damaged_at=200)),
        cut_onnx,
    ),
    "UntrustedCodeError": (untrusted,),
    "UnsupportedOperatorError": (
        foreign_operator,
        lambda m: lite.load(network(), backend="toy", fallback="never", plugins=plugins_with(Toy(refuses="Relu"))),
    ),
    "InputError": (
        lambda m: lite.load("no_model.onnx"),
        lambda m: lite.load(network(), backend="host").run(image=IMAGE[:, :, :4, :4]),
        lambda m: lite.load(network(), backend="host").run(image=IMAGE.astype(np.float64)),
        lambda m: lite.load(network(), backend="host").run(picture=IMAGE),
        lambda m: lite.load(network(), backend="x86", backend_options={"x86": {"mkll": "never"}}),
        lambda m: lite.load(network(), backend="host", taps=["conv_9"]),
    ),
    "UnavailableError": (without_images,),
    "BracesError": (lambda m: expand_braces("1x{3x64"),),
    "BackendUnavailableError": (
        lambda m: lite.load(network(), backend="openvino"),
        lambda m: lite.load(network(), backend="toy", plugins=plugins_with(Toy(absent=True))),
        left_out,
    ),
    "CompileError": (
        lambda m: lite.load(network(), backend="toy", plugins=plugins_with(Toy(fails="compile"))).run(image=IMAGE),
    ),
    "KernelCompileError": (without_compiler,),
    "ExecutionError": (lambda m: lite.load(network(), backend="toy", plugins=failing_kernel()).run(image=IMAGE),),
    "OpenClError": (too_large_for_a_device,),
    "RunTimeoutError": (lambda m: lite.load(loop(), backend="host").run(x=np.float32(1), timeout=0.05),),
    "SessionClosedError": (closed,),
    "ConversionError": (lambda m: lite.convert(network(), "m.lite", "toy", plugins=plugins_with(Toy(refuses="Relu"))),),
    "DisagreementError": (lambda m: lite.convert(network(), "m.lite", "toy", plugins=plugins_with(Toy(offset=1.0))),),
    "GraphError": (lambda m: lite.GraphBuilder("g").add("Relux", []),),
    "PassError": (lambda m: run_passes(network(), [Failing()]),),
    "PluginError": (strict,),
    "LayoutError": (without_graphviz,),
    "WorkerDiedError": (dying_worker,),
    "PackageCasesError": (broken_cases,),
    "CaseBuildError": (lambda m: example_of(OpCase("Relu", "", "one", (), {}, 1, EXACT), lite.DType("float32"), 0),),
    "ArchiveError": (lambda m: read_archive(saved("submission.zip", b"hello")),),
    "CampaignError": (failing_campaign,),
    "Notes": (note_of_host, note_of_some),
    "Lines of the log": (log_of_refusal, log_of_step, log_of_plugin, log_of_configuration),
}
