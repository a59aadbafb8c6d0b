"""HTML for notebooks is complete, escaped and loads nothing; texts for prompts are short."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import chromium
from comparison_samples import HOSTILE as HOSTILE_TEXTS

import lite_core as lite
from lite_core.notebooks import Shown
from lite_core.plugins import plugins_with
from lite_tools.notebook import html

X = np.ones((1, 3), np.float32)
HOSTILE = "".join(text for text in HOSTILE_TEXTS if text.isprintable())


def network(name: str = "net", value: str = "x") -> lite.Graph:
    b = lite.GraphBuilder(name)
    weights = b.constant(np.ones((3, 2), np.float32), "weights")
    b.output(b.add("Relu", [b.add("MatMul", [b.input(value, "float32", ["n", 3]), weights])]), "y")
    return b.build()


def objects(tmp_path: Path, name: str = "net", value: str = "x") -> dict[str, Any]:
    graph = network(name, value)
    session = lite.load(graph, plugins=plugins_with())
    session.run({value: X}, profile=True)
    report = lite.convert(graph, tmp_path / "net.lite", ["host"], shapes=[{value: X.shape}])
    return {
        "session": session,
        "plan": session.plan({value: X.shape}),
        "profile": session.last_profile,
        "binding": session.bind({value: X}),
        "graph": graph,
        "report": report,
        "from a file": lite.load(tmp_path / "net.lite"),
    }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return objects(tmp_path_factory.mktemp("shown"))


class Elements(HTMLParser):
    """The elements of HTML, which must be closed in order, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}|" if "style" not in self.open else ""


def test_the_texts_of_prompts_are_short_and_name_what_matters(shown: dict[str, Any]) -> None:
    assert repr(shown["session"]).splitlines()[:3] == [
        "Session of model net: 2 nodes",
        "  x float32[n, 3] -> y float32[n, 2]",
        "  nodes: 2 on host",
    ]
    assert repr(shown["plan"]).startswith("plan for %x: float32[1, 3]\n  0 run    host/0: 2 node(s): MatMul, Relu")
    assert re.match(r"Profile of a run: [\d.]+ ms, [\d.]+ ms on host", repr(shown["profile"]))
    assert repr(shown["binding"]) == "<Binding x float32[1, 3] -> y float32[1, 2]>"
    assert repr(shown["graph"]) == "<Graph net: 2 nodes, 1 constants; x float32[n, 3] -> y float32[n, 2]>"
    assert repr(shown["graph"].inputs[0].type) == "float32[n, 3]"
    assert re.match(
        r"Conversion of net to .*net\.lite .*: 2 nodes read, 2 written; verified\n  host: ", repr(shown["report"])
    )


def test_many_inputs_are_not_all_listed() -> None:
    b = lite.GraphBuilder("many")
    values = [b.input(f"x{i}", "float32", [1]) for i in range(30)]
    b.output(b.add("Sum", values), "y")
    graph = b.build()
    assert "x3 float32[1], 26 more -> y" in repr(graph)
    assert "<summary>21 more</summary>" in html(graph)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("session", ["net", "input", "x", "float32", "[n, 3]", "[n, 2]", "host", "1 MatMul, 1 Relu"]),
        ("plan", ["x float32[1, 3]", "run    host/0: 2 node(s): MatMul, Relu"]),
        ("profile", ["host/0", "of the run", "time"]),
        ("binding", ["input", "output", "[1, 3]", "[1, 2]"]),
        ("graph", ["net", "2 operators", "weights 24 bytes"]),
        ("report", ["net", "host", "verified", "yes"]),
        ("from a file", ["net.lite"]),
    ],
)
def test_html_has_names_types_and_reasons_and_loads_nothing(name: str, words: list[str], shown: dict[str, Any]) -> None:
    assert isinstance(shown[name], Shown)
    text = shown[name]._repr_html_()
    page = Elements(text)
    missing = [word for word in words if word not in page.text]
    assert not missing, page.text
    assert {tag for tag, _ in page.found}.isdisjoint({"script", "link", "img", "iframe", "object", "base"})
    assert not [a for _, attributes in page.found for a in attributes if a in ("src", "href") or a.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", text)


@pytest.mark.parametrize("name", ["session", "plan", "binding", "graph", "report", "profile"])
def test_names_in_a_model_cannot_become_elements(name: str, tmp_path: Path) -> None:
    plain, hostile = objects(tmp_path)[name], objects(tmp_path, HOSTILE, HOSTILE)[name]
    tags = [[tag for tag, _ in Elements(one._repr_html_()).found] for one in (plain, hostile)]
    assert tags[0] == tags[1]


def test_a_closed_session_and_an_empty_profile() -> None:
    with lite.load(network(), plugins=plugins_with()) as session:
        pass
    assert "closed" in Elements(session._repr_html_()).text
    assert "nothing was recorded" in Elements(lite.RunProfile()._repr_html_()).text
    assert html(object()) is None


@pytest.mark.full("browser")
def test_both_themes_are_readable_in_a_browser(shown: dict[str, Any]) -> None:
    """The contrast of every text with its background is at least 4.5, and nothing is wider than a narrow window."""
    body = "".join(one._repr_html_() for one in shown.values()).replace("<details>", "<details open>")
    with chromium() as browser:
        for colour, background in (
            ("rgb(20, 20, 20)", "rgb(255, 255, 255)"),
            ("rgb(225, 225, 225)", "rgb(17, 17, 17)"),
        ):
            page = browser.new_page(viewport={"width": 480, "height": 900})
            page.set_content(f'<body style="color:{colour};background:{background}">{body}</body>')
            faint = page.evaluate(FAINT, [colour, background])
            assert not faint
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


#: Returns the texts whose colour, with the opacity of all elements around it, is too close to the background.
FAINT = """([colour, background]) => {
    const parts = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = rgb => rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    return [...document.querySelectorAll(".lite-card *:not(style)")].filter(element => {
        if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) return false;
        let opacity = 1;
        for (let one = element; one; one = one.parentElement) opacity *= Number(getComputedStyle(one).opacity);
        const back = parts(background), own = parts(getComputedStyle(element).color);
        const seen = own.map((c, i) => c * opacity + back[i] * (1 - opacity));
        const [high, low] = [light(seen), light(back)].sort((a, b) => b - a);
        return (high + 0.05) / (low + 0.05) < 4.5;
    }).map(element => element.textContent);
}"""
