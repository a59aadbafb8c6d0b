"""Output of commands: JSON fits its schema, text fits a terminal, and no line in a pipe ends with spaces."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import catalog
import click
import jsonschema
import pytest
from command_cases import CASES, PREPARATION, Case, workplace
from rich.cells import cell_len
from terminals import in_terminal

from json_schemas import EXAMPLES, FOLDER, SCHEMAS
from lite_conformance.cli import run_command_line
from lite_conformance.cli.entry import conformance
from lite_tools.cli import main
from lite_tools.cli.group import lite
from workspace import ROOT

WIDTH = 80
TINY = ROOT / "tests/models/goldens/tiny_conv"
Schema = Mapping[str, Any]


def validate(name: str, text: str) -> dict[str, Any]:
    """Return the one document in a text, after comparing it with a schema as it is published."""
    document: dict[str, Any] = json.loads(text)
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    wrong = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    assert wrong is None, f"{name}.json: {wrong.json_path}: {wrong.message[:1000]}"
    return document


def too_long(text: str) -> list[str]:
    """Return the lines that do not fit the terminal; commands to copy are whole."""
    return [line for line in text.splitlines() if cell_len(line) > WIDTH and not line.startswith("next: ")]


# **** schemas ****


def commands_with_json(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that has an option ``--json`` without a value."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command: Any = group.get_command(context, name)
        real = getattr(command, "real", command)  # of a LazyCommand
        if any("--json" in parameter.opts and parameter.is_flag for parameter in real.params):
            yield (*words, name)
        if isinstance(real, click.Group):
            yield from commands_with_json(real, (*words, name))


def test_every_command_with_json_has_a_schema_and_cases() -> None:
    found = ["-".join(words) for words in commands_with_json(lite, ())]
    found += ["-".join(words) for words in commands_with_json(conformance, ("conformance",))]
    assert len(found) > 20
    without = [name for name in found if name not in SCHEMAS]
    assert not without, f"add schemas to scripts/json_schemas, and cases to tests/command_cases.py: {without}"
    assert {*found} <= {case.schema for case in CASES}, "add cases to tests/command_cases.py"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schema_is_sound_and_says_what_each_field_is(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    silent = [path for path, field in _fields(SCHEMAS[name], name) if not _about(field, SCHEMAS[name])]
    assert not silent


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example_names_a_field_of_the_schema(name: str) -> None:
    _, path, value = EXAMPLES[name]
    found = [SCHEMAS[name]]
    for step in re.findall(r"\w+|\[\d*\]", path):
        inner = [part for each in found for part in _alternatives(each, SCHEMAS[name])]
        key = "items" if step.startswith("[") else step
        found = [part[key] if key == "items" else part["properties"][key] for part in inner if _has(part, key)]
        assert found, f"{name}: {step} of {path} is in no alternative"
    shown = {"anyOf": found, "$defs": SCHEMAS[name].get("$defs", {})}
    partial = [{key: part for key, part in each.items() if key != "required"} for each in found]
    jsonschema.Draft202012Validator({**shown, "anyOf": partial}).validate(json.loads(value))


def _has(part: Schema, key: str) -> bool:
    return key in part if key == "items" else key in part.get("properties", ())


def _alternatives(schema: Schema, whole: Schema) -> Iterator[Schema]:
    """Yield a schema, with references followed, or its alternatives."""
    if "$ref" in schema:
        yield from _alternatives(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        return
    yield schema
    for each in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _alternatives(each, whole)


def _fields(schema: Any, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield every field of every object in a schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from _fields(each, path)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            for name, field in value.items():
                if key == "properties":
                    yield f"{path}.{name}", field
                yield from _fields(field, f"{path}.{name}")
        else:
            yield from _fields(value, path)


def _about(field: Schema, whole: Schema) -> str:
    return next((str(part["description"]) for part in _alternatives(field, whole) if part.get("description")), "")


# **** commands ****

#: Commands that take a moment; the others are in the part ``commands`` of the full tier.
QUICK = [
    Case("version", "--version"),
    Case("error", "rum", 2),
    Case("error", "run nothing.onnx", 2),
    Case("run", "run {tiny} -i {inputs} -b host --validate"),
    Case("check", "check {tiny} -b host"),
    Case("check", "check {tiny} --targets host,nothing", 3),
    Case("inspect", "inspect {tiny} --ops --weights"),
    Case("inspect", "inspect {tiny} --memory -b host -s x=1x3x32x32"),
    Case("ops", "ops Conv"),
    Case("trust", "trust --list"),
    Case("cache", "cache"),
]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.id)
def test_quick_command_prints_one_document(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    words = case.words.format(tiny=TINY / "legacy", inputs=TINY / "inputs.npz").split()
    with pytest.raises(SystemExit) as end:
        main([*words, "--json"])
    assert end.value.code == case.code
    validate(case.schema, capsys.readouterr().out)


@pytest.mark.parametrize("words", ["compare nothing.json nothing.json", "verify nothing.zip", "submit"])
def test_errors_of_the_suite_are_documents(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*words.split(), "--json"]) == 2
    assert validate("error", capsys.readouterr().out)["exit_code"] == 2


@pytest.mark.parametrize(
    "words", ["--version --json", "--json --version", "opt --version --json", "opt --json --version"]
)
def test_version_is_a_document_wherever_the_options_stand(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 0
    program = "lite opt" if "opt" in words.split() else "lite"
    assert validate("opt" if program == "lite opt" else "version", capsys.readouterr().out)["program"] == program


def test_terminal_and_pipe() -> None:
    command = [sys.executable, "-m", "lite_core", "inspect", str(TINY / "legacy"), "--ops", "--weights"]
    shown = in_terminal(command, WIDTH)
    assert shown.code == 0, shown.text
    assert not too_long(shown.text)
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert all(line == line.rstrip() for line in piped.splitlines())
    assert "".join(piped.split()) in "".join(shown.text.split()), "something is cut"
    for text in (piped, shown.text):
        assert "operator" in text
        assert "constant" in text


# **** real models ****


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("commands")
    try:
        files = workplace(folder)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    for words in PREPARATION:
        done = typed(words.format(**files), folder)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder, files


def environment(folder: Path) -> dict[str, str]:
    found = {**os.environ, "LITE_CACHE_DIR": str(folder / "cache"), "LITE_CONFIG_DIR": str(folder / "config")}
    return {**found, "PATH": os.pathsep.join([str(Path(sys.executable).parent), found["PATH"]])}


def typed(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = shlex.split(words)
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(folder))


@pytest.mark.full("commands")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_command(case: Case, place: tuple[Path, dict[str, str]]) -> None:
    """Print JSON that fits the schema; in a terminal no line is too long; in a pipe none ends with spaces."""
    folder, files = place
    words = [case.words.format(**files, fresh=f"fresh_{number}") for number in range(3)]
    as_json = typed(f"{words[0]} --json", folder)
    assert as_json.returncode == case.code, as_json.stdout + as_json.stderr
    validate(case.schema, as_json.stdout)

    shown = in_terminal(shlex.split(words[1]), WIDTH, cwd=folder, env=environment(folder))
    assert shown.code == case.code, shown.text
    assert not (case.is_wrapped and too_long(shown.text))

    piped = typed(words[2], folder)
    assert piped.returncode == case.code, piped.stdout + piped.stderr
    lines = (piped.stdout + piped.stderr).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\x1b" not in piped.stdout + piped.stderr


@pytest.mark.full("commands")
def test_files_of_the_suite(place: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    import zipfile

    folder, _ = place
    validate("conformance-report", (folder / "old-report.json").read_text())
    with zipfile.ZipFile(folder / "s.zip") as archive:
        validate("conformance-manifest", archive.read("manifest.json").decode())
    exported = typed(f"lite-conformance export {tmp_path} --op Relu --level L2 -q", folder)
    assert exported.returncode == 0, exported.stderr
    validate("conformance-export", (tmp_path / "index.json").read_text())
