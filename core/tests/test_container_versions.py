"""Versions of the model file: golden files stay readable, older files are upgraded, newer ones get a clear error."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from container_graphs import GRAPHS, records
from test_container import plain
from test_container_damage import assembled, parts_of

from lite_core.container import FORMAT_VERSION, ModelFile, layout, reader
from lite_core.container.upgrades import UPGRADES
from lite_core.errors import ModelFormatError
from lite_core.ir import verify_structure
from lite_tools.writing import write_model

GOLDENS = Path(__file__).parent / "goldens/container"
GOLDEN_FILES = sorted(GOLDENS.glob("format_*/*.lite"))


@pytest.mark.parametrize("file", GOLDEN_FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_golden_files_are_read_as_the_graphs_that_made_them(file: Path) -> None:
    opened, graph = ModelFile.open(file), GRAPHS[file.stem]()
    opened.verify()
    found = opened.graph()
    verify_structure(found)
    assert plain(found) == plain(graph)
    assert opened.format_version == int(file.parent.name.removeprefix("format_"))
    assert (opened.optimized, dict(opened.metadata)) == (True, {"made by": "make.py"})
    targets, pieces = records(graph)
    assert [(t.backend, t.plugin, t.devices, t.refusals) for t in opened.targets] == [
        (t.backend, t.plugin, t.devices, t.refusals) for t in targets
    ]
    if opened.format_version == FORMAT_VERSION:
        assert {name: bytes(opened.section(name)) for name in pieces} == pieces
        assert [len(target.plans) for target in opened.targets] == [len(target.plans) for target in targets]
    else:
        assert not any(target.plans for target in opened.targets), "plans of other formats are not used"


def test_every_graph_has_a_golden_file_of_the_current_format() -> None:
    """After raising FORMAT_VERSION: run core/tests/goldens/container/make.py, and keep the older folders."""
    assert {f.stem for f in GOLDEN_FILES if f.parent.name == f"format_{FORMAT_VERSION}"} == {*GRAPHS}
    assert {f.parent.name for f in GOLDEN_FILES} == {f"format_{n}" for n in range(1, FORMAT_VERSION + 1)}


def test_every_older_format_has_an_upgrade() -> None:
    assert {*UPGRADES} == {*range(1, FORMAT_VERSION)}


def sections_of(name: str) -> dict[str, bytes]:
    return parts_of((GOLDENS / f"format_{FORMAT_VERSION}/{name}.lite").read_bytes())[1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"version": FORMAT_VERSION + 1, "producer": b"lite-core 7.3"},
            r"m\.lite'.*lite-core 7\.3.*format 3\b.*pip install -U lite-core",
        ),
        ({"version": 2**32 - 1}, "format 4294967295"),
        ({"opset": 23}, r"lite-core 9\.9.*operator set 23\b.* 22\b.*pip install"),
        ({"version": 0}, r"format 0\b.*lite-core 9\.9.*convert"),
    ],
)
def test_unsupported_versions_are_refused_with_the_cure(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.lite"
    path.write_bytes(assembled(sections_of("chain"), **fields))
    with pytest.raises(ModelFormatError, match=message):
        ModelFile.open(path)


def test_newer_version_is_recognised_by_the_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.lite"
    path.write_bytes(assembled({}, b"\0 no JSON", version=FORMAT_VERSION + 1))
    with pytest.raises(ModelFormatError, match="pip install -U lite-core"):
        ModelFile.open(path)


def test_an_older_file_is_upgraded_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test assumes that the next format renamed ``nodes`` of the graph, and the one after ``optimized``."""

    def older(key: str) -> Any:
        return lambda document: {**document, key: document.pop(f"old {key}")}

    def older_graph(document: Any) -> Any:
        return {**document, "graph": older("nodes")(document["graph"])}

    path, sections = tmp_path / "m.lite", sections_of("branches")
    document = json.loads(sections["graph"])
    graph = {**document["graph"], "old nodes": document["graph"].pop("nodes")}
    del graph["nodes"]
    sections["graph"] = json.dumps({**document, "graph": graph}).encode()
    content = assembled(sections)
    table, _ = parts_of(content)
    table["old optimized"] = True
    del table["optimized"]
    path.write_bytes(assembled(sections, table))

    present = FORMAT_VERSION
    monkeypatch.setitem(UPGRADES, present, {"graph": older_graph})
    older_table = {"table": older("optimized"), "targets": lambda document: document[:1]}
    monkeypatch.setitem(UPGRADES, present + 1, older_table)
    for module in (layout, reader):
        monkeypatch.setattr(module, "FORMAT_VERSION", present + 2)
    file = ModelFile.open(path)
    assert (file.format_version, file.optimized, len(file.targets)) == (present, True, 1)
    assert plain(file.graph()) == plain(GRAPHS["branches"]())

    monkeypatch.delitem(UPGRADES, present)
    shutil.copy(path, tmp_path / "other.lite")
    with pytest.raises(ModelFormatError, match=rf"format {present}\b"):
        ModelFile.open(tmp_path / "other.lite")


def test_file_records_its_format_and_operator_set(tmp_path: Path) -> None:
    write_model(tmp_path / "m.lite", GRAPHS["empty"]())
    table, _ = parts_of((tmp_path / "m.lite").read_bytes())
    assert table["opset"] == 22
    assert ModelFile.open(tmp_path / "m.lite").format_version == FORMAT_VERSION


def test_example_in_the_documentation_is_readable(tmp_path: Path) -> None:
    """Authors of other readers rely on the example in docs/model-file.md."""
    page = (Path(__file__).parents[2] / "docs/model-file.md").read_text()
    graph, targets = re.findall(r"```json\n(.*?)```", page, re.DOTALL)[1:3]
    sections = {"graph": graph.encode(), "constants/0": bytes(64 * 3 * 7 * 7 * 4), "code/0": b"code"}
    path = tmp_path / "m.lite"
    path.write_bytes(assembled({**sections, "targets": targets.encode()}))
    file = ModelFile.open(path)
    assert [node.op for node in file.graph().nodes] == ["Conv", "NonZero"]
    (plan,) = file.targets[0].plans
    assert plan.threads == 4
    assert plan.partitions[0].sections == ("code/0", "packed/0")
    assert len(file.contents(["packed/0"])[0]) == 64 * 3 * 7 * 7 * 4
