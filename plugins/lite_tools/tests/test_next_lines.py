"""Every `next:` line works as it is typed: failures and successes are provoked, and the lines that they print run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lite_conformance.cli.entry import run_command_line
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_tools.cli import main
from lite_tools.commands.next_commands import next_command_of, with_next_command, with_replaced_words
from lite_tools.writing import write_model

#: Command lines that end before a model is loaded, and the line that each one suggests.
QUICK = {
    "lite rum open.lite": "lite run open.lite",
    "lite run open.lite --repaet 2": "lite run open.lite --repeat 2",
    "lite run open.lite --repaet=2": "lite run open.lite --repeat=2",
    "lite run open.lite -b HOST": "lite run open.lite -b host",
    "lite run open.lite -b nul,hosst": "lite run open.lite -b null,hosst",
    "lite run open.lite --backend=hosst": "lite run open.lite --backend=host",
    "lite run open.lite -b host --require-backend hsot": "lite run open.lite -b host --require-backend host",
    "lite run open.lite --precision fp16": "lite run open.lite --precision float16",
    "lite run open.lite --precision 'r*=flaot32'": "lite run open.lite --precision 'r*=float32'",
    "lite run opne.lite": "lite run open.lite",
    "lite run open.lite -b host -s 3": "lite run open.lite -b host -s x=1x4",
    "lite run open.lite -b host -s y=1x4": "lite run open.lite -b host -s x=1x4",
    "lite run open.lite -b host -i googd.npz": "lite run open.lite -b host -i good.npz",
    "lite run open.lite -b host -i X=one.npz": "lite run open.lite -b host -i x=one.npz",
    "lite run open.lite -b host -i one.npz": "lite run open.lite -b host --input x=one.npz:image",
    "lite run open.lite -b host -i x=one.npz:imgae": "lite run open.lite -b host -i x=one.npz:image",
    "lite run two.lite -b host -i pair.npz": "lite run two.lite -b host --input a=pair.npz:A --input b=pair.npz:b",
    "lite run two.lite -b host -s 1x4": "lite run two.lite -b host -s a=1x4",
    "lite run two.lite -b host -o y.npy": "lite run two.lite -b host -o y.npz",
    "lite run open.lite -b host -o y.txt": "lite run open.lite -b host -o y.npz",
    "lite run sizes.lite -b host": "lite run sizes.lite -b host --shape x=1x3x224x224",
    "lite bench sizes.lite -b host -n 1": "lite bench sizes.lite -b host -n 1 --shape x=1x3x224x224",
    "lite inspect sizes.lite --memory -b host": "lite inspect sizes.lite --memory -b host --shape x=1x3x224x224",
    "lite convert open.lite -o c.tflite --targets host": "lite convert open.lite -o c.lite --targets host",
    "lite convert open.lite -o c.v2 --targets host": "lite convert open.lite -o c.v2.lite --targets host",
    "lite convert open.lite -o c.lite --targets HOST": "lite convert open.lite -o c.lite --targets host",
    "lite convert open.lite -o c.lite -t host": "lite convert open.lite -o c.lite --targets host",
    "lite convert open.lite -o c.lite -t host --targets host": "lite convert open.lite -o c.lite --targets host",
    "lite convert open.lite -o c.lite -t host --targets=null": "lite convert open.lite -o c.lite --targets null,host",
    "lite convert open.lite -o c.lite --targets host --weights flot16": (
        "lite convert open.lite -o c.lite --targets host --weights float16"
    ),
    "lite check open.lite --targets hots": "lite check open.lite --targets host",
    "lite compare open.lite --b host --a-precision fp16": "lite compare open.lite --b host --a-precision float16",
    "lite inspect open.lite --taget host": "lite inspect --help",
    "lite inspect damaged.lite": "lite inspect damaged.lite --sections",
    "lite run foreign.bin": "lite run --help",
    "lite trust foreign.bin": "lite trust --help",
    "lite run nowhere": "lite run --help",
    "lite run": "lite run --help",
    "lite run open.lite --backend": "lite run --help",
    "lite": None,
    "lite nonsense": "lite --help",
    "lite ops Cov": "lite ops Conv",
    "lite cache fil open.lite -b host": "lite cache fill open.lite -b host",
    "lite cache fill open.lite opne.lite -b host": "lite cache fill open.lite open.lite -b host",
    "lite cache fill sizes.lite -b host": "lite cache fill sizes.lite -b host --shape x=1x3x224x224",
    "lite cache fill nowhere -b host": "lite cache fill --help",
    "lite --json ops": "lite ops --json",
    "lite new-plugin kernal-backend toy": "lite new-plugin kernel-backend toy",
    "lite new-plugin backend Toy-1": "lite new-plugin backend toy_1",
    "lite new-backend chip": "lite new-plugin kernel-backend chip",
    "lite-conformance --bakend host --list": "lite-conformance --backend host --list",
    "lite-conformance rn --backend host --list": "lite-conformance run --backend host --list",
}

#: Command lines that take longer, and the beginning of the line that each one suggests.
SLOW = {
    "lite run det.lite -b x86 --require-backend x86": "lite check det.lite --backend x86 --no-fallback",
    "lite run open.lite -b host --require-backend x86": "lite run open.lite --require-backend x86 --backend x86",
    "lite check det.lite -b x86 --no-fallback": "lite check det.lite",
    "lite check det.lite --targets x86": "lite convert det.lite -o det.lite.lite --targets x86",
    "lite check unknown.onnx": "lite new-plugin operator my_op",
    "lite run unknown.onnx": "lite check unknown.onnx",
    "lite convert det.lite -o c.lite --targets x86": "lite check det.lite --targets x86",
    "lite convert exp.lite -o c.lite --targets x86 --limit 0 -s 1x999": "lite compare exp.lite --b x86",
    "lite run open.lite --tap nonsense": "lite inspect open.lite --optimized --origins",
    "lite run open.lite -O x86.mlk=never": "lite run open.lite -O x86.mkl=never",
    "lite run open.lite -O x86.mkl=nevr": "lite run open.lite -O x86.mkl=never",
    "lite run open.lite -b x86:7": "lite run open.lite -b x86",
    "lite bench exp.lite -b host -b x86 -n 1 --limit 0 -s 1x999": "lite compare exp.lite --a host --b x86",
    "lite compare open.lite --a host --save 'a b.npz'": "lite compare open.lite --load 'a b.npz'",
    "lite bisect exp.lite --by node --b x86": "lite bisect exp.lite --by node",
    "lite bisect exp.lite --by node --b x86 --limit 0 -s 1x999": "lite compare exp.lite --a host --b x86",
    "lite report open.lite -b host -o there.zip": "lite report open.lite -b host -o there.zip --force",
    "lite inspect exp.onnx --sections": "lite convert exp.onnx -o exp.lite",
    "lite ops --backend X86": "lite ops --backend x86",
    "lite plugins lite-tool": "lite plugins lite-tools",
    "lite trust open.lite": "lite trust --help",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, arrays and damaged files."""
    folder = tmp_path_factory.mktemp("models")

    def model(name: str, *inputs: tuple[str, str, list[int | str]], op: str = "Relu") -> None:
        b = GraphBuilder(name)
        values = [b.input(*each) for each in inputs]
        for value in values:
            b.output(b.add(op, [value]))
        write_model(folder / f"{name}.lite", b.build())

    model("open", ("x", "float32", ["n", 4]))
    model("exp", ("x", "float32", ["n", 999]), op="Exp")
    model("sizes", ("x", "float32", ["n", 3, "h", "w"]))
    model("two", ("a", "float32", ["n", 4]), ("b", "float32", ["n", 4]))
    model("det", ("x", "float32", [1, 3, 3]), op="Det")
    (folder / "damaged.lite").write_bytes((folder / "two.lite").read_bytes()[:-40])
    (folder / "foreign.bin").write_bytes(b"\1\2\3")
    (folder / "there.zip").touch()
    zeros = np.zeros((1, 4), np.float32)
    np.savez(folder / "good.npz", x=zeros)
    np.savez(folder / "one.npz", image=zeros)
    np.savez(folder / "pair.npz", A=zeros, b=zeros)
    return folder


@pytest.fixture
def type_line(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[int, str]]:
    """A function that runs a line in the folder of the models, and returns the exit code and what is printed."""
    monkeypatch.chdir(models)
    monkeypatch.delenv("LITE_BACKEND", raising=False)

    def run(line: str) -> tuple[int, str]:
        words = shlex.split(line)
        if words[0] == "python":
            done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr
        if words[0] == "lite-conformance":
            return run_command_line(words[1:]), "".join(capsys.readouterr())
        assert words[0] == "lite", line
        with pytest.raises(SystemExit) as end:
            main(words[1:])
        assert isinstance(end.value.code, int)
        return end.value.code, "".join(capsys.readouterr())

    return run


def next_lines(text: str) -> list[str]:
    """Return the commands of the lines `next: COMMAND`, or that of a JSON document."""
    if text.startswith("{"):
        return [json.loads(text)["next"]]
    return re.findall(r"^next(?:, on the other machine)?: (.+)$", text, re.MULTILINE)


def follow(type_line: Callable[[str], tuple[int, str]], typed: str, expected: str | None) -> None:
    """Type a line, check what it suggests, and type that."""
    code, shown = type_line(typed)
    assert "Traceback" not in shown, shown
    lines = next_lines(shown)
    assert code == 0 or len(lines) == 1, f"{typed}\n{shown}"
    if expected is not None:
        assert lines[0].startswith(expected), f"{typed}\n{shown}"
    for line in lines:
        code, shown = type_line(line)
        allowed = {0, 1, 6} if "--sections" in line else {0, 1}  # 1: the check or the comparison finds something
        assert code in allowed, f"{typed}\nnext: {line}\n{shown}"


@pytest.mark.parametrize("typed", [line for line, found in QUICK.items() if found is not None])
def test_lines_of_mistakes(type_line: Callable[[str], tuple[int, str]], typed: str) -> None:
    code, shown = type_line(typed)
    assert code in (2, 3, 6), shown
    assert next_lines(shown) == [QUICK[typed]], shown


@pytest.mark.full("commands")
@pytest.mark.parametrize("typed", QUICK)
def test_lines_of_mistakes_work_as_typed(type_line: Callable[[str], tuple[int, str]], typed: str) -> None:
    if typed == "lite run open.lite -b nul,hosst":  # two mistakes, of which the first is corrected
        typed = QUICK[typed] or ""
    follow(type_line, typed, QUICK.get(typed))


@pytest.mark.full("commands")
@pytest.mark.parametrize("typed", SLOW)
def test_lines_of_runs_work_as_typed(type_line: Callable[[str], tuple[int, str]], models: Path, typed: str) -> None:
    if ".onnx" in typed:
        onnx = pytest.importorskip("onnx")
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
        for name, op, domain in (("unknown", "MyOp", "acme"), ("exp", "Exp", "")):
            graph = onnx.helper.make_graph([onnx.helper.make_node(op, ["x"], ["y"], domain=domain)], "g", [x], [y])
            model = onnx.helper.make_model(
                graph, opset_imports=[onnx.helper.make_opsetid(d, 1 if d else 17) for d in ("", "acme")]
            )
            onnx.save(model, models / f"{name}.onnx")
    follow(type_line, typed, SLOW[typed])


def test_every_line_that_sources_print_is_in_one_piece() -> None:
    """A line such as `next: correct the errors, then: ...` cannot be copied."""
    sources = Path(main.__code__.co_filename).parents[1].rglob("*.py")
    written = [line for source in sources for line in re.findall(r'"next: ([^"{]*)', source.read_text("utf-8"))]
    assert written
    assert all(
        re.fullmatch(r"|(lite|lite-conformance|python|pip) .*", line.strip() + " ") or not line for line in written
    )


def test_words_are_replaced_where_they_stand() -> None:
    replaced = {"X86": "x86", "--repaet": "--repeat"}
    words = ["run", "-b", "X86,opencl", "--backend=X86", "--repaet=3", "x=X86", "XX86"]
    assert with_replaced_words(words, replaced) == [
        "run", "-b", "x86,opencl", "--backend=x86", "--repeat=3", "x=x86", "XX86",
    ]  # fmt: skip


def test_errors_carry_the_command() -> None:
    assert next_command_of(with_next_command(InputError("wrong"), "lite doctor")) == "lite doctor"
    assert next_command_of(with_next_command(InputError("wrong"), "")) == ""
