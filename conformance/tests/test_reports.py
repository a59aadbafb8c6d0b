"""The reports as data: JUnit XML, the data of the HTML page, the terminal summary, the changes between two runs."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report_samples import HOSTILE, find, hostile_report, later_report, one_of_each, small_report
from rich.console import Console

from lite_conformance.judge.compare import Measured
from lite_conformance.judge.tolerances import Tolerance
from lite_conformance.reports.changes import compare
from lite_conformance.reports.html import embedded_json, render_html, write_html
from lite_conformance.reports.junit import write_junit
from lite_conformance.reports.record import Record, Report, Status, read_report
from lite_conformance.reports.summary import (
    SEVERITY,
    bad_records,
    number,
    percent,
    printable,
    report_names,
    seconds_text,
    tolerance_use,
    verdict,
)
from lite_conformance.reports.terminal import print_summary
from lite_core.errors import InputError


def junit(report: Report, folder: Path) -> ElementTree.Element:
    write_junit(report, folder / "junit.xml")
    return ElementTree.parse(folder / "junit.xml").getroot()


def terminal(report: Report, **options: object) -> str:
    out = io.StringIO()
    print_summary(report, Console(file=out, **{"width": 100, **options}))  # type: ignore[arg-type]
    return out.getvalue()


def page_data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


# JUnit


@pytest.mark.parametrize(
    ("status", "tag"),
    [
        ("failed", "failure"), ("xpass", "failure"),
        ("crashed", "error"), ("hung", "error"), ("error", "error"),
        ("xfail", "skipped"), ("unsupported", "skipped"), ("skipped", "skipped"),
    ],
)  # fmt: skip
def test_junit_element_of_a_status(status: str, tag: str, tmp_path: Path) -> None:
    root = junit(one_of_each(), tmp_path)
    (case,) = [c for c in root.iter("testcase") if any(f"because of {status}" in (e.get("message") or "") for e in c)]
    assert [element.tag for element in case] == [tag]


def test_junit_counts_are_those_of_its_elements(tmp_path: Path) -> None:
    root = junit(small_report(), tmp_path)
    suites = root.findall("testsuite")
    assert [s.get("name") for s in suites] == ["probe", "contract", "graphs", "models", "stress", "ops"]
    for element in (root, *suites):
        assert element.get("tests") == str(len(list(element.iter("testcase"))))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if element is root and attribute == "skipped":
                continue
            assert element.get(attribute) == str(len(list(element.iter(tag)))), (element.get("name"), attribute)
    assert float(root.get("time") or 0) == pytest.approx(94.7)


def test_junit_passed_case_has_no_child(tmp_path: Path) -> None:
    case = next(c for c in junit(one_of_each(), tmp_path).iter("testcase") if c.get("name") == "Relu[f32,n0]")
    assert list(case) == []
    assert case.attrib == {"classname": "toy.ops.Relu", "name": "Relu[f32,n0]", "time": "0.500"}


def test_junit_properties_come_from_the_header(tmp_path: Path) -> None:
    suite = junit(small_report(), tmp_path).find("testsuite")
    assert suite is not None
    properties = {p.get("name"): p.get("value") or "" for p in suite.iter("property")}
    assert properties["device"] == "cpu:0 Toy accelerator, 8 cores"
    assert "toy-backend 0.3.1" in properties["versions"]
    assert suite.get("timestamp") == "2025-03-02T17:45:10"


def test_junit_failure_has_the_numbers_and_the_command(tmp_path: Path) -> None:
    root = junit(small_report(), tmp_path)
    case = next(c for c in root.iter("testcase") if c.get("name") == "Conv[f32,n1c3h8w8,o4,k3s2p1]")
    text = case[0].text or ""
    assert case[0].attrib == {"message": "41 of 4096 elements out of tolerance", "type": "failed"}
    for part in ("rtol 1e-05", "rtol 0.166", "max abs 0.25", "41 of 4096", "y[0, 3, 1, 7]: 1.25, expected 1.5",
                 "lite-conformance --backend toy --case 'Conv[f32,n1c3h8w8,o4,k3s2p1]'"):  # fmt: skip
        assert part in text


def test_junit_escapes_any_text(tmp_path: Path) -> None:
    root = junit(hostile_report(), tmp_path)
    messages = [e.get("message") or "" for e in root.iter("failure")]
    assert "<script>window.broken = 1</script>" in messages
    assert any(m.startswith("\\x1b[31mred\\x1b[0m \\x00 nul") for m in messages)
    assert any("日本語" in m and "\\ud800" in m for m in messages)


def test_junit_of_an_empty_report(tmp_path: Path) -> None:
    root = junit(Report(), tmp_path)
    assert (root.tag, root.get("tests"), len(root)) == ("testsuites", "0", 0)


# HTML


def test_page_is_self_contained(tmp_path: Path) -> None:
    write_html([small_report()], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    own = page.replace(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1], "")  # type: ignore[index]
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(", own.replace("// ", ""))
    assert "default-src 'none'" in own
    assert "{{" not in own


def test_page_data_is_the_report() -> None:
    report = small_report()
    shown = page_data(render_html([report]))["reports"][0]
    assert shown["counts"] == report.counts()
    assert [r["case"] for r in shown["records"]] == [r.case for r in report.records]
    assert shown["verdict"] == verdict(report)


def test_page_survives_a_round_trip_through_json(tmp_path: Path) -> None:
    report = small_report()
    report.write(tmp_path / "report.json")
    assert render_html([read_report(tmp_path / "report.json")]) == render_html([report])


@pytest.mark.parametrize("text", HOSTILE)
def test_embedded_json_keeps_any_text_and_is_harmless(text: str) -> None:
    written = embedded_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert written.isascii()
    assert not set("<>&") & set(written)


def test_embedded_json_is_strict() -> None:
    written = embedded_json([math.nan, math.inf, -math.inf, 0.1, None, True, Path("a")])
    assert json.loads(written, parse_constant=pytest.fail) == ["nan", "inf", "-inf", 0.1, None, True, "a"]


def test_page_of_hostile_texts_has_its_own_elements_only() -> None:
    page = render_html([hostile_report()], names=["</title><script>{{data}}"])
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    assert "onerror=" not in re.sub(r'id="data">.*?</script>', "", page, flags=re.DOTALL)
    page.encode("utf-8")


def test_html_requires_a_report() -> None:
    with pytest.raises(InputError):
        render_html([])


def test_html_requires_a_name_for_each_report() -> None:
    with pytest.raises(InputError, match=r"2.*1"):
        render_html([Report(), Report()], names=["a"])


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ([{"backend": "host"}, {"backend": "x86"}], ["host", "x86"]),
        ([{"backend": "x86", "versions": {"a": "1", "b": "1"}}, {"backend": "x86", "versions": {"a": "1", "b": "2"}}],
         ["x86 b 1", "x86 b 2"]),
        ([{"backend": "x86", "device": "one"}, {"backend": "x86", "device": "two"}], ["x86 one", "x86 two"]),
        ([{"backend": "x86"}, {"backend": "x86"}], ["x86 (1)", "x86 (2)"]),
        ([{}], ["report"]),
    ],
)  # fmt: skip
def test_report_names_are_distinct(headers: list[dict[str, object]], names: list[str]) -> None:
    assert report_names([Report(header) for header in headers]) == names


# Changes


def test_compare_finds_each_kind_of_change() -> None:
    before = small_report()
    after = later_report(before)
    changes = compare(before, after)

    def names(pairs: list[tuple[int, int]]) -> list[str]:
        return [after.records[j].case for _, j in pairs]

    assert names(changes.regressed) == ["Relu[f32,n1c3h8w8]"]
    assert names(changes.fixed) == ["Softmax[f32,n2c6h8w8,axis1]"]
    assert names(changes.moved) == ["Concat[f32,n1c3h8w8]"]
    assert names(changes.grown) == ["MatMul[f32,n1c3h8w8]"]
    assert [after.records[j].case for j in changes.added] == ["Mod[f32,n1c3h8w8]"]
    assert [before.records[i].case for i in changes.gone] == ["Det[f32,n1c3h8w8]"]


def test_compare_with_itself_finds_nothing() -> None:
    report = small_report()
    changes = compare(report, report)
    assert not any((changes.regressed, changes.fixed, changes.moved, changes.added, changes.gone, changes.grown))


def test_compare_distinguishes_the_same_case_on_two_devices() -> None:
    def run(second: Status) -> Report:
        return Report({}, [Record("Relu", 2, "ops", device="a"), Record("Relu", 2, "ops", device="b", status=second)])

    assert compare(run(Status.PASSED), run(Status.CRASHED)).regressed == [(1, 1)]


@pytest.mark.parametrize(
    ("before", "after", "grew"),
    [(1e-6, 1.9e-6, False), (1e-6, 2.1e-6, True), (0.0, 0.0, False), (0.0, 1e-9, True), (1e-6, math.inf, True),
     (1e-6, math.nan, True), (math.inf, math.inf, False), (1e-6, 1e-9, False)],
)  # fmt: skip
def test_compare_growth_of_the_required_tolerance(before: float, after: float, grew: bool) -> None:
    def run(required: float) -> Report:
        return Report({}, [Record("Exp", 2, "ops", measured=Measured(required_rtol=required))])

    assert bool(compare(run(before), run(after)).grown) is grew


# The terminal


def test_summary_of_a_pass_ends_with_the_verdict() -> None:
    report = Report({"backend": "host"}, [Record(f"c{n}", 2, "ops", seconds=0.01) for n in range(6812)], 95.2)
    report.records += [
        Record(f"u{n}", 2, "ops", "Conv", status=Status.UNSUPPORTED, reason="no int4") for n in range(120)
    ]
    lines = terminal(report).strip().splitlines()
    assert lines[-1] == "host: 6,812 passed, 0 failed, 120 unsupported in 95 s"
    assert "     120  no int4 (Conv)" in lines


def test_summary_of_a_failure_ends_with_the_next_command() -> None:
    lines = terminal(small_report()).strip().splitlines()
    assert lines[-2] == verdict(small_report())
    assert lines[-1] == "next: lite-conformance --backend toy --case 'MaxPool[i8,n1c3h9w9,k3s2p1,ceil]' --seed 11"


def test_summary_shows_the_numbers_of_a_failure() -> None:
    lines = terminal(small_report()).splitlines()
    at = lines.index("FAILED Conv[f32,n1c3h8w8,o4,k3s2p1]: 41 of 4096 elements out of tolerance")
    assert lines[at + 1] == (
        "  worst y[0, 3, 1, 7]: 1.25, expected 1.5; needs rtol 0.166 (used 1e-05) or atol 0.25 (used 1e-06), "
        "16600 times too much"
    )
    assert lines[at + 2] == "  lite-conformance --backend toy --case 'Conv[f32,n1c3h8w8,o4,k3s2p1]' --seed 11"


def test_summary_names_every_bad_case_in_at_most_three_lines() -> None:
    report = small_report()
    text = terminal(report)
    block = text.split("\n\n")[1]
    assert all(f"{r.status.value.upper()} {r.case}" in block for r in bad_records(report))
    assert len(block.splitlines()) <= 3 * len(bad_records(report))


def test_summary_that_is_not_on_a_terminal_is_plain() -> None:
    text = terminal(small_report(), width=60)
    assert "\x1b" not in text
    assert not re.search("[─-╿]", text)


def test_summary_on_a_terminal_has_colour() -> None:
    assert "\x1b[" in terminal(small_report(), force_terminal=True, color_system="standard")


def test_summary_of_hostile_texts_sends_no_control_characters() -> None:
    text = terminal(hostile_report())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "[bold]markup[/bold]" in text


def test_summary_fits_a_stream_that_is_not_utf8() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=100)
    print_summary(hostile_report(), console)
    console.file.flush()
    assert b"\\u65e5\\u672c\\u8a9e" in raw.getvalue()


def test_summary_counts_the_rest_of_many_reasons() -> None:
    records = [Record(f"c{n}", 2, "ops", status=Status.UNSUPPORTED, reason=f"reason {n:02}") for n in range(9)]
    text = terminal(Report({"backend": "b"}, records, 1.0))
    assert "reason 05" in text
    assert "reason 06" not in text
    assert "       3  for 3 other reason(s)" in text


def test_summary_when_nothing_was_executed() -> None:
    assert terminal(Report({"backend": "gpu"})).strip() == "gpu: 0 passed, 0 failed in 0 ms; nothing was executed"


# Texts and numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-5, "1e-05"), (1.25e-5, "1.25e-05"), (0.03125, "0.0312"), (12.0, "12"), (4096.4, "4096"),
     (2e6, "2e+06"), (-0.5, "-0.5"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan")],
)  # fmt: skip
def test_number(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 ms"), (0.0352, "35 ms"), (0.9999, "1.0 s"), (4.24, "4.2 s"), (9.96, "10 s"), (95.2, "95 s"),
     (725.0, "12 min 5 s"), (7325.0, "2 h 2 min"), (math.nan, "–")],
)  # fmt: skip
def test_seconds_text(value: float, text: str) -> None:
    assert seconds_text(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100 %"), (0.99999, "99.9 %"), (0.973, "97.3 %"), (0.0, "0 %"), (None, "–")]
)
def test_percent_never_rounds_up_to_100(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_printable_escapes_only_control_characters() -> None:
    assert printable("a\tb\r\nc ünïcödé 日本") == "a\tb\nc ünïcödé 日本"
    assert printable("\x00\x1b\x9b\r\ud800\u202e") == "\\x00\\x1b\\x9b\\x0d\\ud800\\u202e"


@pytest.mark.parametrize(
    ("required", "used"),
    [
        ((5e-6, 0.0), 0.5),
        ((2e-5, 3e-6), 2.0),
        ((math.inf, 3e-6), 3.0),
        ((math.nan, math.nan), math.inf),
        ((0.0, 0.0), 0.0),
    ],
)
def test_tolerance_use(required: tuple[float, float], used: float) -> None:
    measured = Measured(required_rtol=required[0], required_atol=required[1])
    record = Record("Exp", 2, "ops", tolerance=Tolerance(1e-5, 1e-6), measured=measured)
    assert tolerance_use(record) == pytest.approx(used)


def test_tolerance_use_with_zero_tolerance() -> None:
    record = Record(
        "Cast", 2, "ops", tolerance=Tolerance(0.0, 0.0), measured=Measured(required_rtol=0.5, required_atol=1)
    )
    assert tolerance_use(record) == math.inf


def test_severity_has_every_status_and_the_bad_ones_first() -> None:
    assert set(SEVERITY) == set(Status)
    assert [s.is_bad for s in SEVERITY] == sorted((s.is_bad for s in SEVERITY), reverse=True)


def test_samples_have_every_status() -> None:
    report = small_report()
    assert {r.status for r in report.records} == set(Status)
    assert find(report, "Conv[f16,n1c8h4w4,o8,k1s1p0,g8]").measured is not None
