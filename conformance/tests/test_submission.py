"""Submissions: a bundle of a conforming backend is verified, and each way of tampering with one is found."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lite_conformance import Selection, run_suite
from lite_conformance.cases.case import Settings
from lite_conformance.cli import run_command_line
from lite_conformance.reports.record import Record, Report
from lite_conformance.run.must_pass import MustPassList, digest_of_cases
from lite_conformance.submission import archive
from lite_conformance.submission.archive import ArchiveError, read_archive, write_archive
from lite_conformance.submission.bundle import bundle_contents
from lite_conformance.submission.manifest import FileEntry
from lite_conformance.submission.verification import Verification, verify
from lite_core.errors import InputError
from lite_tools.commands import EXIT_FAILURE, EXIT_FILE, EXIT_OK

CASES = (
    "Sub[f32,2x3]", "Add[f32,2x3]", "Gelu[f32,none]", "Softmax[f32,far-from-zero]", "Transpose[f32,2x3x4,012,nothing]",
    "QuantizeLinear[u8,3x7,no-zero-point]", "graph[f32,conv-bn-relu]",
)  # fmt: skip
SMALL = MustPassList("small", 2, CASES, digest_of_cases(CASES))
KNOWN = {"small": {1: "0" * 16, 2: SMALL.digest}}
REPORT = "reports/1-small.json"
WAIVER = '[[unsupported]]\ncase = "Conv[f32,*,3d]"\nreason = "the device has no volumes"\n'

LIMIT = 2**20

Contents = dict[str, bytes]
Tampering = Callable[[Contents], None]


def run_on_host(names: frozenset[str], seed: int) -> list[Record]:
    return run_suite(Settings("host", seed), Selection(only=names), isolate=False).records


@pytest.fixture(scope="module")
def report() -> Report:
    report = run_suite(Settings("host"), Selection(only=frozenset(CASES)), isolate=False)
    assert report.counts()["passed"] == len(CASES)
    return report


@pytest.fixture(scope="module")
def truth(report: Report) -> Callable[[frozenset[str], int], list[Record]]:
    return lambda names, seed: [record for record in report.records if record.case in names]


@pytest.fixture
def contents(report: Report, tmp_path: Path) -> Contents:
    """The files of a bundle of a backend with a waiver that is for no must-pass case."""
    waivers = tmp_path / "conformance.toml"
    waivers.write_text(WAIVER, encoding="utf-8")
    digest = hashlib.sha256(WAIVER.encode()).hexdigest()[:16]
    header = {**report.header, "expectations": str(waivers), "expectations_digest": digest}
    return bundle_contents([SMALL], [Report(header, report.records, 1.0)], ["small"], "lite-conformance submit ...")


def findings(found: Verification) -> set[str]:
    return {finding.check for finding in found.findings}


def seal(contents: Contents) -> None:
    """Correct the sizes and digests in the manifest, as somebody does who knows the format."""

    def change(manifest: dict[str, Any]) -> None:
        entries = {name: FileEntry.of(content) for name, content in contents.items() if name != "manifest.json"}
        manifest["files"] = {name: {"size": e.size, "sha256": e.sha256} for name, e in entries.items()}

    edit(contents, "manifest.json", change)


def edit(contents: Contents, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file."""
    value = json.loads(contents[name])
    change(value)
    contents[name] = json.dumps(value).encode()


def of_record(change: Callable[[dict[str, Any]], object], case: str = CASES[1]) -> Tampering:
    """Return a tampering with one record, after which counts and digests are right again."""

    def tamper(contents: Contents) -> None:
        def edit_report(report: dict[str, Any]) -> None:
            change(next(record for record in report["records"] if record["case"] == case))

        edit_report_of(contents, edit_report)

    return tamper


def edit_report_of(contents: Contents, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the report, and everything that follows from it but the summary."""
    value = json.loads(contents[REPORT])
    change(value)
    records = [Record.from_dict(record) for record in value["records"]]
    contents[REPORT] = Report(value["header"], records, value["seconds"]).to_text().encode()


def of_header(change: Callable[[dict[str, Any]], object]) -> Tampering:
    return lambda contents: edit_report_of(contents, lambda report: change(report["header"]))


def of_manifest(change: Callable[[dict[str, Any]], object]) -> Tampering:
    return lambda contents: edit(contents, "manifest.json", change)


def of_everything(change: Callable[[dict[str, Any]], object]) -> Tampering:
    """Return a tampering with the environment, in the manifest and in the report."""

    def tamper(contents: Contents) -> None:
        edit(contents, "manifest.json", lambda manifest: change(manifest["environment"]))
        edit_report_of(contents, lambda report: change(report["header"]))

    return tamper


def replaced(name: str, content: bytes) -> Tampering:
    return lambda contents: contents.update({name: content})


def without(name: str) -> Tampering:
    return lambda contents: contents.pop(name) and None


def widened(record: dict[str, Any]) -> None:
    record["tolerance"].update(rtol=0.5, default=[0.5, 0.0])


def failed_then_edited(record: dict[str, Any]) -> None:
    record["measured"].update(required_rtol=0.25, required_atol=0.5, max_abs=0.5)


def twice(report: dict[str, Any]) -> None:
    report["records"].append(report["records"][1])


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels else {}


#: A way to tamper with a bundle, after which the digests are made right again -> the check that finds it.
TAMPERINGS: dict[str, tuple[Tampering, str]] = {
    "no manifest": (without("manifest.json"), "manifest"),
    "the manifest is no JSON": (replaced("manifest.json", b"{"), "manifest"),
    "a name twice in the manifest": (replaced("manifest.json", b'{"seed": 1, "seed": 1}'), "manifest"),
    "a manifest of the future": (of_manifest(lambda m: m.update(schema_version=2)), "manifest"),
    "nested deeply": (replaced("manifest.json", b"[" * 200_000), "manifest"),
    "nested deeply in the environment": (of_manifest(lambda m: m["environment"].update(stack=nested(40))), "manifest"),
    "a seed below zero": (of_manifest(lambda m: m.update(seed=-1)), "manifest"),
    "a backend that is a file": (of_manifest(lambda m: m.update(backend="evil.py:backend")), "manifest"),
    "an unknown profile": (of_manifest(lambda m: m["profiles"][0].update(name="easy")), "lists"),
    "an unknown version": (of_manifest(lambda m: m["profiles"][0].update(version=3)), "lists"),
    "a version with another list": (of_manifest(lambda m: m["profiles"][0].update(version=1)), "lists"),
    "no profile": (of_manifest(lambda m: m.update(profiles=[])), "lists"),
    "a shorter list": (replaced("must_pass/small.txt", "\n".join(CASES[1:]).encode()), "lists"),
    "no list": (without("must_pass/small.txt"), "lists"),
    "another lite-core": (of_everything(lambda e: e["versions"].update({"lite-core": "9.9"})), "versions"),
    "other references": (of_everything(lambda e: e["suite"].update(references="0" * 16)), "versions"),
    "other tolerances": (of_everything(lambda e: e["suite"].update(tolerances="0" * 16)), "versions"),
    "no report": (without(REPORT), "reports"),
    "a report that is no JSON": (replaced(REPORT, b"\xff"), "reports"),
    "NaN in a report": (replaced(REPORT, b'{"seconds": NaN}'), "reports"),
    "a number beyond all numbers": (replaced(REPORT, b'{"seconds": 1e999}'), "reports"),
    "counts that do not follow": (lambda c: edit(c, REPORT, lambda r: r["counts"].update(passed=99)), "reports"),
    "a field that no run writes": (lambda c: edit(c, REPORT, lambda r: r["records"][0].update(more=1)), "reports"),
    "another device in the report": (of_header(lambda h: h.update(device_name="a faster one")), "reports"),
    "another backend in the report": (of_header(lambda h: h.update(backend="other")), "reports"),
    "another seed in the report": (of_header(lambda h: h["options"].update(seed=5)), "reports"),
    "a run that is not complete": (of_header(lambda h: h.update(incomplete="interrupted, 1 of 2")), "reports"),
    "a record of another device": (of_record(lambda r: r.update(device="cuda: other")), "reports"),
    "a case left out": (lambda c: edit_report_of(c, lambda r: r["records"].pop(2)), "must-pass"),
    "a case twice": (lambda c: edit_report_of(c, twice), "must-pass"),
    "a case in fewer bits": (of_record(lambda r: r.update(precision="bfloat16")), "must-pass"),
    "a case that was refused": (of_record(lambda r: r.update(status="unsupported")), "records"),
    "an expected failure": (of_record(lambda r: r.update(status="xfail", expectation="later")), "records"),
    "passed with errors beyond the tolerance": (of_record(failed_then_edited), "records"),
    "passed with wrong elements": (of_record(lambda r: r["measured"].update(wrong=1)), "records"),
    "passed with errors below zero": (of_record(lambda r: r["measured"].update(max_abs=-1.0)), "records"),
    "passed with an infinite error": (of_record(lambda r: r["measured"].update(max_abs="inf")), "records"),
    "passed without an example": (of_record(lambda r: r.pop("examples")), "records"),
    "another seed": (of_record(lambda r: r.update(seed=3)), "records"),
    "another level": (of_record(lambda r: r.update(level=1)), "records"),
    "a tolerance of the package": (of_record(lambda r: r["tolerance"].update(rtol=0.5, loosened=True)), "records"),
    "a wider tolerance, said to be the default": (of_record(widened), "tolerances"),
    "numbers removed": (of_record(lambda r: (r.pop("measured"), r.pop("tolerance"))), "tolerances"),
    "fewer elements compared": (of_record(lambda r: r["measured"].update(elements=1)), "tolerances"),
    "no waivers": (without("conformance.toml"), "waivers"),
    "other waivers": (replaced("conformance.toml", WAIVER.replace("3d", "2d").encode()), "waivers"),
    "waivers that are no TOML": (replaced("conformance.toml", b"[["), "waivers"),
    "another summary": (lambda c: c.update({"README.md": c["README.md"].replace(b"| 7 |", b"| 9 |")}), "summary"),
    "a claim in the summary": (lambda c: c.update({"README.md": c["README.md"] + b"It is fast."}), "summary"),
}  # fmt: skip


def test_a_bundle_is_verified(contents: Contents, tmp_path: Path) -> None:
    write_archive(tmp_path / "acme.zip", contents)
    assert read_archive(tmp_path / "acme.zip") == contents
    found = verify(contents, run_on_host, KNOWN)
    assert found.findings == []
    assert [profile.verdict for profile in found.profiles] == ["conforms to small v2"]
    text = contents["README.md"].decode()
    assert "conforms to small v2" in text
    assert "the device has no volumes" in text


def test_equal_contents_give_equal_files(contents: Contents, tmp_path: Path) -> None:
    write_archive(tmp_path / "one.zip", contents)
    write_archive(tmp_path / "two.zip", dict(reversed(contents.items())))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found(name: str, contents: Contents, truth: Callable[..., list[Record]]) -> None:
    tamper, check = TAMPERINGS[name]
    before = dict(contents)
    tamper(contents)
    assert contents != before
    if check != "manifest":
        seal(contents)
    found = verify(contents, truth, KNOWN)
    assert check in findings(found), found.findings
    assert "files" not in findings(found)


@pytest.mark.parametrize("name", ["README.md", "conformance.toml", "must_pass/small.txt", REPORT])
def test_a_changed_byte_a_lost_file_and_a_new_one_are_found(name: str, contents: Contents) -> None:
    content = contents[name]
    for change in ({name: content + b" "}, {name: content[:-1] + b"?"}, {"reports/more.json": content}):
        assert "files" in findings(verify({**contents, **change}, None, KNOWN)), change.keys()
    assert "files" in findings(verify({key: contents[key] for key in contents if key != name}, None, KNOWN))


@pytest.mark.parametrize("kind", ["unsupported", "xfail", "tolerance"])
def test_a_waiver_for_a_must_pass_case_is_found(kind: str, report: Report, tmp_path: Path) -> None:
    text = f'[[{kind}]]\ncase = "Add[*"\nreason = "it is hard"\n' + ("rtol = 0.1\n" if kind == "tolerance" else "")
    file = tmp_path / "conformance.toml"
    file.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    header = {**report.header, "expectations": str(file), "expectations_digest": digest}
    made = bundle_contents([SMALL], [Report(header, report.records, 1.0)], ["small"], "")
    found = verify(made, None, KNOWN)
    assert findings(found) == {"waivers"}
    assert "Add[f32,2x3]" in found.findings[0].message


def test_reports_that_do_not_belong_together_are_refused(report: Report) -> None:
    other = Report({**report.header, "device_name": "another one"}, report.records, 1.0)
    with pytest.raises(InputError, match="device_name"):
        bundle_contents([SMALL], [report, other], ["a", "b"], "")
    unfinished = Report({**report.header, "incomplete": "interrupted, 3 of 7 cases ran"}, report.records[:3], 1.0)
    with pytest.raises(InputError, match=r"'b' is not complete"):
        bundle_contents([SMALL], [report, unfinished], ["a", "b"], "")


def test_shards_make_one_submission(report: Report) -> None:
    halves = [Report(report.header, report.records[:3], 1.0), Report(report.header, report.records[3:], 1.0)]
    assert verify(bundle_contents([SMALL], halves, ["1", "2"], ""), run_on_host, KNOWN).findings == []


def test_profiles_may_share_cases(report: Report) -> None:
    other = MustPassList("other", 1, CASES[2:], digest_of_cases(CASES[2:]))
    reports = [
        Report({**report.header, "profile": "small"}, report.records, 1.0),
        Report({**report.header, "profile": "other"}, report.records[2:], 1.0),
    ]
    made = bundle_contents([SMALL, other], reports, ["small", "other"], "")
    assert verify(made, run_on_host, {**KNOWN, "other": {1: other.digest}}).findings == []


def zip_of(*entries: tuple[str, bytes], **attributes: object) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            for key, value in attributes.items():
                setattr(info, key, value)
            archive.writestr(info, content)
    return memory.getvalue()


def lying_about_sizes() -> bytes:
    """Return a zip file whose directory says that a large file has 10 bytes."""
    data = bytearray(zip_of(("README.md", bytes(LIMIT + 1))))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<L", 10)
    return bytes(data)


HOSTILE: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "empty": (b"", "not a zip"),
    "text": (b"PK is not enough" * 10, "not a zip"),
    "cut off": (zip_of(("README.md", b"a" * 999))[:-30], "cut off"),
    "something follows": (zip_of(("README.md", b"a")) + b"#!/bin/sh", "follows"),
    "something precedes": (b"#!/bin/sh\n" + zip_of(("README.md", b"a")), "not a zip"),
    "a path out of the folder": (zip_of(("../README.md", b"a")), "no file"),
    "an absolute path": (zip_of(("/README.md", b"a")), "no file"),
    "a backslash": (zip_of(("reports\\a.json", b"a")), "no file"),
    "an unknown file": (zip_of(("run.py", b"a")), "no file"),
    "a folder": (zip_of(("reports/", b"")), "no file"),
    "a file twice": (lambda: twice_in_zip(), "twice"),
    "a symbolic link": (zip_of(("README.md", b"/etc/passwd"), external_attr=(stat.S_IFLNK | 0o777) << 16), "link"),
    "another compression": (zip_of(("README.md", b"a" * 99), compress_type=zipfile.ZIP_BZIP2), "compression method 12"),
    "too much when unpacked": (lambda: zip_of(("README.md", bytes(LIMIT + 1))), "unpacked"),
    "too much in several files": (lambda: zip_of(*((f"reports/{n}.json", bytes(LIMIT)) for n in "ab")), "unpacked"),
    "wrong size in the directory": (lying_about_sizes, "damaged"),
    "too many files": (zip_of(*((f"reports/{n}.json", b"") for n in range(65))), "at most 64"),
    "a wrong checksum": (lambda: with_a_flipped_bit(), "damaged"),
}  # fmt: skip


def twice_in_zip() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return zip_of(("README.md", b"a"), ("README.md", b"b"))


def with_a_flipped_bit() -> bytes:
    data = bytearray(zip_of(("README.md", b"the same text " * 50)))
    data[45] ^= 1
    return bytes(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_MOST_UNPACKED", LIMIT)  # the real one is 64 MiB, which takes a second to pack
    made, message = HOSTILE[name]
    file = tmp_path / "hostile.zip"
    file.write_bytes(made if isinstance(made, bytes) else made())
    with pytest.raises(ArchiveError, match=message):
        read_archive(file)
    assert run_command_line(["verify", str(file)]) == EXIT_FILE
    assert "is not a submission" in capsys.readouterr().err


@pytest.mark.full("conformance")
def test_a_submission_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = tmp_path / "shards", tmp_path / "host.zip"
    for shard in ("1/2", "2/2"):
        arguments = ["profiles", "int8", "-b", "host", "-q", "--shard", shard, "--json", str(folder / shard[0])]
        assert run_command_line(arguments) == EXIT_OK
    reports = [f"--report={folder / number / 'int8.json'}" for number in "12"]
    assert run_command_line(["submit", "-p", "int8", "-o", str(file), *reports[:1]]) == EXIT_FAILURE
    assert not file.exists(), "half of the cases are no submission"
    monkeypatch.setattr(sys, "argv", ["lite-conformance", "submit", "-p", "int8"])
    assert run_command_line(["submit", "-p", "int8", "-o", str(file), *reports]) == EXIT_OK
    assert "conforms to int8 v1" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert run_command_line(["verify", str(file), "--repeat", "5", "-q", "--html", str(page)]) == EXIT_OK
    assert "verified; 5 case(s) repeated here" in capsys.readouterr().out
    assert "Conformance" in page.read_text(encoding="utf-8")
    contents = read_archive(file)
    contents["README.md"] += b"!"
    write_archive(file, contents)
    assert run_command_line(["verify", str(file), "--quick", "--json"]) == EXIT_FAILURE
    result = json.loads(capsys.readouterr().out)
    assert not result["verified"]
    assert {finding["check"] for finding in result["findings"]} == {"files", "summary"}
