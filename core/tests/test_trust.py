"""Trust in the code of model files: the user's own code is used, other code only on request, and data always."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_container_damage import assembled, parts_of
from test_convert import EXPECTED, Toy, network, run

from lite_core import convert, load
from lite_core.backend import Device, No, Yes
from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile, trust
from lite_core.errors import InputError, ModelFormatError, UntrustedCodeError
from lite_core.ir import DType, Node
from lite_core.plugins import plugins_with
from lite_tools.writing import seal


class WithoutCompiler(Toy):
    """A backend on a device that has no compiler: it only restores."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("there is no compiler")


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a configuration folder of its own."""
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("LITE_SAVED", raising=False)
    return tmp_path / "config"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that this user converted."""
    convert(network(), tmp_path / "m.lite", "toy", threads=2, plugins=plugins_with(Toy()))
    return tmp_path / "m.lite"


def uses_code(path: Path, **options: Any) -> bool:
    """Run a file, check the result, and return True if its saved code was used."""
    toy = Toy()
    session, found = run(path, toy, threads=2, **options)
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-6)
    if not toy.restored:
        assert "lite trust" in session.notes[0] or options.get("saved") == "ignore" or os.environ.get("LITE_SAVED")
    return bool(toy.restored)


def changed(path: Path, name: str, content: bytes) -> None:
    """Replace a section as an attacker does: the checksums fit, and the seal is the old one."""
    table, sections = parts_of(path.read_bytes())
    path.write_bytes(assembled({**sections, name: content}, optimized=True, seal=table["seal"]))


def test_code_that_the_user_made_is_used(file: Path) -> None:
    assert uses_code(file)


def test_the_key_is_for_the_user_only(file: Path, configuration: Path) -> None:
    assert len((configuration / "key").read_bytes()) == 32
    assert (configuration / "key").stat().st_mode & 0o777 == 0o600
    assert configuration.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("section", ["code/0", "graph", "targets"])
def test_a_change_of_what_code_relies_on_breaks_the_seal(section: str, file: Path) -> None:
    content = parts_of(file.read_bytes())[1][section]
    changed(file, section, content + b" ")  # still valid JSON
    if section == "code/0":
        toy = Toy()
        run(file, toy, threads=2)
        assert not toy.restored
    else:
        assert not uses_code(file)


def test_integer_constants_are_sealed_and_weights_are_not(tmp_path: Path) -> None:
    b = GraphBuilder("gather")
    picked = b.add("Gather", [b.constant(np.ones((4, 3), np.float32), "table"), b.input("x", "int64", [2])])
    b.output(b.add("Add", [picked, b.add("Cast", [b.constant(np.arange(3), "numbers")], {"to": DType.FLOAT32})]), "y")
    convert(b.build(), tmp_path / "m.lite", "toy", plugins=plugins_with(Toy()))
    sections = {s.name: s for s in ModelFile.open(tmp_path / "m.lite").sections}
    sealed = {name for name, section in sections.items() if section.sealed}
    assert {"graph", "targets", "code/0"} < sealed
    constants = {s.size: s.sealed for name, s in sections.items() if name.startswith("constants/")}
    assert constants[4 * 3 * 4] is False
    assert all(is_sealed for size, is_sealed in constants.items() if size == 3 * 8)


def test_code_of_another_user_is_used_only_if_it_is_trusted(
    file: Path, configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (configuration / "key").write_bytes(bytes(32))  # as on another machine
    assert not uses_code(file)
    assert uses_code(file, saved="trust")
    monkeypatch.setenv("LITE_SAVED", "trust")
    assert uses_code(file)
    assert not uses_code(file, saved="ignore")
    monkeypatch.delenv("LITE_SAVED")
    digest = ModelFile.open(file).code_digest
    (configuration / "trusted").write_text(f"{digest} 'm.lite'\n")
    (configuration / "trusted").chmod(0o600)
    assert uses_code(file)
    (configuration / "trusted").chmod(0o622)  # a list that others can write is no list
    assert not uses_code(file)


def test_digests_in_the_configuration_are_trusted(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "config.json").write_text(json.dumps({"trusted": [ModelFile.open(file).code_digest, 7]}))
    (elsewhere / "config.json").chmod(0o444)
    monkeypatch.setenv("LITE_CONFIG_DIR", str(elsewhere))
    assert uses_code(file)
    (elsewhere / "config.json").chmod(0o644)


@pytest.mark.parametrize("value", ["Ignore", "off", "0", "false", "no", "TRUST", "yes"])
def test_other_settings_are_errors(value: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=rf"saved must be one of own, trust, ignore, is '{value}'"):
        load(file, plugins=plugins_with(Toy()), saved=value)
    monkeypatch.setenv("LITE_SAVED", value)
    with pytest.raises(InputError, match=rf"LITE_SAVED must be one of own, trust, ignore, is '{value}'"):
        load(file, plugins=plugins_with(Toy()))


def test_what_was_checked_is_what_is_used_if_the_file_changes_in_place(file: Path) -> None:
    opened = ModelFile.open(file)
    assert opened.code_is_trusted("own")
    section = next(s for s in opened.sections if s.name == "code/0")
    before = bytes(opened.section("code/0"))
    with file.open("r+b") as stream:
        stream.seek(section.offset)
        stream.write(b"evil")
    assert bytes(opened.section("code/0")) == before


def test_a_section_outside_the_seal_is_never_code(file: Path) -> None:
    """An attacker may clear the flags of sections, or name one that has another flag."""
    table, sections = parts_of(file.read_bytes())
    rows = [[*row[:4], row[0] in ("graph", "targets")] for row in table["sections"]]
    file.write_bytes(assembled(sections, {**table, "sections": rows}))
    with pytest.raises(ModelFormatError, match="missing sections"):
        load(file, plugins=plugins_with(Toy()), saved="trust")


def test_code_is_code_under_every_name(file: Path) -> None:
    """Weights are not sealed, so code must not pass for them."""
    table, sections = parts_of(file.read_bytes())
    moved = {name.replace("code/", "weights/"): content for name, content in sections.items()}
    moved["targets"] = moved["targets"].replace(b"code/", b"weights/")
    file.write_bytes(assembled(moved, optimized=True, seal=table["seal"]))
    assert not uses_code(file)


def test_without_a_device_that_compiles_the_refusal_is_an_error(file: Path, configuration: Path) -> None:
    (configuration / "key").write_bytes(bytes(32))
    for options in ({}, {"backend": "toy", "fallback": "never"}):
        with pytest.raises(UntrustedCodeError, match=r"toy.*no compiler.*lite trust .*m\.lite"):
            load(file, plugins=plugins_with(WithoutCompiler()), threads=2, **options)
    assert load(file, plugins=plugins_with(WithoutCompiler()), saved="ignore").devices == ("host",)
    kept = WithoutCompiler()
    assert load(file, plugins=plugins_with(kept), threads=2, saved="trust").run(x=np.ones((2, 3), np.float32))
    assert kept.restored


def test_a_file_without_a_seal_says_so_at_its_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("not a folder")
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path / "taken"))
    with caplog.at_level(logging.WARNING, "lite"):
        report = convert(network(), tmp_path / "m.lite", "toy", threads=2, plugins=plugins_with(Toy()))
    assert "not sealed" in caplog.text
    assert "lite trust" in report.notes[-1]
    assert not uses_code(tmp_path / "m.lite")


def test_a_key_of_another_size_is_no_key(file: Path, configuration: Path) -> None:
    digest = ModelFile.open(file).code_digest
    (configuration / "key").write_bytes(b"")
    assert seal(digest) == ""
    assert not trust.is_trusted(digest, "")


def gathering(path: Path) -> Path:
    """Write and seal a file whose code relies on the indices in a constant."""
    b = GraphBuilder("gather")
    b.output(b.add("Gather", [b.input("x", "float32", [4, 3]), b.constant(np.array([3, 1]), "indices")]), "y")
    convert(b.build(), path, "toy", plugins=plugins_with(Toy()))
    return path


def test_sealed_constants_stay_what_they_were_if_the_file_changes_in_place(tmp_path: Path) -> None:
    path = gathering(tmp_path / "m.lite")
    opened = ModelFile.open(path)
    (indices,) = opened.graph().constants.values()
    assert opened.code_is_trusted("own")
    section = next(s for s in opened.sections if s.name == "constants/0")
    with path.open("r+b") as stream:
        stream.seek(section.offset)
        stream.write(np.array([1 << 40, -1 << 40]).tobytes())
    assert indices.tolist() == [3, 1]


def test_a_digest_that_leaves_out_code_is_never_trusted(file: Path, configuration: Path) -> None:
    """Files without any sealed section have the same digest: to trust one must not trust all."""
    _, sections = parts_of(file.read_bytes())
    moved = {name.replace("code/", "weights/"): content for name, content in sections.items()}
    moved["targets"] = moved["targets"].replace(b"code/", b"weights/")
    for sealed in ((), ("graph", "targets")):
        table, _ = parts_of(assembled(moved, optimized=True))
        rows = [[*row[:4], row[0] in sealed] for row in table["sections"]]
        file.write_bytes(assembled(moved, {**table, "sections": rows}))
        (configuration / "trusted").write_text(f"{ModelFile.open(file).code_digest} 'm.lite'\n")
        (configuration / "trusted").chmod(0o600)
        assert not uses_code(file)


def test_a_seal_that_is_no_text_is_no_seal(file: Path) -> None:
    table, sections = parts_of(file.read_bytes())
    file.write_bytes(assembled(sections, {**table, "seal": "\ud800"}))
    assert not uses_code(file)


def test_plans_without_code_are_not_used_without_trust(tmp_path: Path) -> None:
    """A plan without saved state lists types, which decide how much memory a run takes."""
    b = GraphBuilder("branches")
    x, condition = b.input("x", "float32", ["n"]), b.input("c", "bool", [])
    bodies = {}
    for branch, operator in (("then_branch", "Neg"), ("else_branch", "Abs")):
        body = GraphBuilder(branch)
        body.output(body.add(operator, [x]), f"of_{branch}")
        bodies[branch] = body.graph
    b.output(b.add("If", [condition], bodies), "y")
    path = tmp_path / "m.lite"
    convert(b.build(), path, "toy", plugins=plugins_with(Toy()), prepare=False)
    _, sections = parts_of(path.read_bytes())
    (record,) = json.loads(sections["targets"])
    (device,) = set(record["devices"])
    partition = {"name": "p", "backend": device, "nodes": [0], "inputs": ["c", "x"], "compatibility": ""}
    partition["outputs"] = [["y", ["float32", [1 << 40]]]]
    record["plans"] = [{"shapes": {"x": [2], "c": []}, "threads": 1, "partitions": [partition]}]
    path.write_bytes(assembled({**sections, "targets": json.dumps([record]).encode()}, optimized=True))
    session = load(path, plugins=plugins_with(Toy()))
    found = session.run(x=np.array([1, -2], np.float32), c=np.array(True))["y"]
    np.testing.assert_array_equal(found, [-1, 2])
    assert not session.notes


def test_a_list_of_stripped_constants_that_is_none_is_an_error(file: Path) -> None:
    _, sections = parts_of(file.read_bytes())
    graph = json.loads(sections["graph"])
    for stripped in (["x"], [{}], 7):
        file.write_bytes(assembled({**sections, "graph": json.dumps({**graph, "stripped": stripped}).encode()}))
        with pytest.raises(ModelFormatError, match=r"m\.lite.*graph"):
            run(file, Toy(), threads=2)


def test_a_key_that_others_can_read_is_no_key(file: Path, configuration: Path) -> None:
    (configuration / "key").chmod(0o644)
    assert not uses_code(file)
    assert seal(ModelFile.open(file).code_digest) == ""


def test_the_command_that_trusts_a_file_can_be_pasted(file: Path, configuration: Path, tmp_path: Path) -> None:
    (configuration / "key").write_bytes(bytes(32))
    path = file.rename(tmp_path / "my model; echo.lite")
    assert f"lite trust '{path}';" in load(path, plugins=plugins_with(Toy()), threads=2).notes[0]
