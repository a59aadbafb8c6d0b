"""The page of a comparison as text: everything that is readable without scripts, and the escaping of names."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from comparison_samples import HOSTILE, hostile_report, sample_report

from lite_tools.pages import comparison
from lite_tools.pages.comparison import comparison_page, picture_of_comparison
from lite_tools.pages.page import printable


class Reader(HTMLParser):
    """Collects elements and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


@pytest.fixture(autouse=True)
def without_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the network out, which needs a library that takes time."""
    monkeypatch.setattr(comparison, "has_layout", lambda: False)


def data_of(page: str) -> Any:
    return json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])


def test_verdict_and_every_row_are_readable_without_scripts() -> None:
    report = sample_report()
    found = Reader(comparison_page(report))
    for text in (
        "They differ",
        report["summary"],
        "host against x86",
        "lite-tools[pictures]",
        "python compare-conv_1.py",
    ):
        assert text in found.text
    lines = {e["id"]: e["data-status"] for tag, e in found.elements if tag == "tr" and "id" in e}
    assert lines == {**{f"r{row['index']}": row["status"] for row in report["rows"]}, "i0": "diverges"}
    for row in report["rows"]:
        assert row["value"] in found.text
        assert all(name in found.text for name in row["nodes"])
    assert "0.003" in found.text
    assert "softmax_0.out" in found.text
    assert "4 runs with equal inputs: 1 result(s) changed" in found.text
    assert "only b computes it" in found.text


def test_numbers_reach_the_scripts() -> None:
    rows = data_of(comparison_page(sample_report()))["rows"]
    assert rows[2]["local_size"] == 3e-3
    assert rows[2]["floor_size"] == pytest.approx(2.1e-6)
    assert rows[4]["local_size"] is None
    assert rows[5]["accumulated_size"] == "inf"


def test_hostile_texts_are_only_text() -> None:
    page = comparison_page(hostile_report())
    found = Reader(page)
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not {"img", "b b"} & {tag for tag, _ in found.elements}
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    assert not re.search("[\x00\x1b\u202e\u2028\ud800]", page)
    for text in HOSTILE:
        assert html.unescape(printable(text)) in html.unescape(found.text)
    assert [row["value"] for row in data_of(page)["rows"]] == [f"{printable(text)}.out" for text in HOSTILE]


def test_picture_has_a_box_for_each_step_and_shows_what_is_missing() -> None:
    picture, boxes = picture_of_comparison(sample_report())
    assert [node.name for node in picture.nodes][:3] == ["x", "conv_0 + 1", "pool_0"]
    assert boxes == [1, 2, 3, 4, 5, 6]
    assert picture.nodes[3].status == "diverges"
    assert (picture.nodes[7].name, picture.nodes[7].status) == ("hidden", "not compared")
    named = {(picture.nodes[e.source].name, picture.nodes[e.target].name) for e in picture.edges}
    assert {("x", "conv_0 + 1"), ("pool_0", "add_0"), ("conv_1", "add_0"), ("hidden", "add_0")} <= named


def test_passes_of_a_loop_share_a_box() -> None:
    report = sample_report()
    again = {**report["rows"][1], "index": 6, "occurrence": 1, "status": "diverges"}
    picture, boxes = picture_of_comparison({**report, "rows": [*report["rows"], again]})
    assert boxes[6] == boxes[1]
    assert picture.nodes[boxes[1]].status == "diverges"


def test_policy_forbids_loading() -> None:
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', comparison_page(sample_report()))[0]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
