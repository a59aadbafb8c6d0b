"""Tests of mutation campaigns: what a weak table of cases does not find is reported as a survivor."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from lite_conformance.cases.op_cases import OpTable
from lite_conformance.cases.tensors import t, uniform, values
from lite_conformance.cli import run_command_line
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_conformance.mutate import bench as bench_module
from lite_conformance.mutate.behaviour import behaviour_mutants
from lite_conformance.mutate.bench import Bench
from lite_conformance.mutate.command import LEAST_SHARE
from lite_conformance.mutate.mutant import Array, Mutant, NodeCall
from lite_conformance.mutate.reasons import read_reasons, reason_for
from lite_conformance.mutate.report import summarize
from lite_conformance.mutate.result import Result, read_results
from lite_conformance.mutate.source import source_mutants
from lite_core import ops
from lite_core.ir import DType


def survivors(table: OpTable, *kinds: str) -> set[str]:
    """Return the ids of the mutants of these kinds that the cases of a table do not find."""
    bench = Bench(table, seed=0, drawn=1)
    sources: tuple[Callable[..., object], ...] = (behaviour_mutants, source_mutants)
    mutants = [m for source in sources for m in source(table.definition) if m.kind in kinds]  # type: ignore[attr-defined]
    assert mutants
    return {m.id for m in mutants if not bench.try_out(m).killed}


def softmax_table(*axes: int) -> OpTable:
    """Return a table of Softmax with one case for each axis."""
    table = OpTable("Softmax", SCALED, dtypes=["float32"])
    for axis in axes:
        table(f"axis{axis}", t(3, 5, 7), axis=axis)
    return table


def test_weak_table_leaves_survivors() -> None:
    kinds = ("attribute ignored", "axis", "argument dropped")
    weak, better = survivors(softmax_table(-1), *kinds), survivors(softmax_table(-1, 1), *kinds)
    assert "Softmax: attribute ignored: axis" in weak
    assert "Softmax: attribute ignored: axis" not in better
    assert better < weak


def test_ties_and_bounds_need_cases_of_their_own() -> None:
    table = OpTable("Clip", EXACT, dtypes=["float32"])
    table("2x3", t(2, 3), values(0.5), None)
    kinds = ("optional input ignored", "element type")
    assert survivors(table, *kinds) == {
        "Clip: optional input ignored: max",
        *(f"Clip: element type: {d}" for d in table.definition.types["T"] if d != "float32"),
    }


def test_random_operators_are_tried_on_their_distributions() -> None:
    table = OpTable("Bernoulli", dtypes=["float32"])
    table("any-result", t(2, 3, init=uniform(0, 1)), seed=1.0, unspecified=lambda *operands: np.ones((), bool))
    mutant = next(m for m in behaviour_mutants(table.definition) if m.id == "Bernoulli: attribute ignored: seed")
    verdict = Bench(table, seed=0, drawn=1).try_out(mutant)
    assert (verdict.killed, verdict.case) == (True, "random[Bernoulli,seed]")


def test_no_fault_concerns_strings_which_only_host_runs() -> None:
    definition = ops.find("Cast")
    assert definition is not None
    assert DType.STRING in definition.types["T1"]
    ids = [m.id for source in (behaviour_mutants, source_mutants) for m in source(definition)]
    assert not [id for id in ids if "element type: string" in id or "from_texts:" in id]
    assert [id for id in ids if "element type: uint8" in id]


def test_bounds_that_are_several_arguments_are_not_dropped() -> None:
    definition = ops.find("LocalityAwareNms", "lite")
    assert definition is not None
    bounds = {m.id.rpartition(": ")[2] for m in source_mutants(definition) if "min(*areas, common)" in m.id}
    assert "min(*areas, common) -> common" in bounds
    assert "min(*areas, common) -> *areas" not in bounds


def test_mutants_have_unique_ids_and_leave_the_references_alone() -> None:
    definition = ops.find("TopK")
    assert definition is not None
    before, x, k = definition.reference, np.array([3.0, 1.0, 2.0], np.float32), np.array([2])
    mutants = [*source_mutants(definition), *behaviour_mutants(definition)]
    assert len({m.id for m in mutants}) == len(mutants) > 50
    for mutant in islice(mutants, 5):
        mutant.make()
    assert ops.find("TopK").reference is before  # type: ignore[union-attr]
    assert before(x, k, axis=-1, largest=1, sorted=1)[0].tolist() == [3.0, 2.0]


def test_mutant_without_end_counts_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(call: NodeCall) -> list[Array]:
        while True:
            pass

    monkeypatch.setattr(bench_module, "_SECONDS_PER_CASE", 0.1)
    verdict = Bench(softmax_table(-1), 0, 1).try_out(Mutant("m", "Softmax", "source", "loop", 2, lambda: endless))
    assert verdict.killed
    assert "not done" in verdict.reason


def result_line(id: str, killed: bool, level: int = 2) -> str:
    """Return a line of a file of results."""
    fields = {"op": id.split(":")[0], "family": "source", "kind": "order", "case": "", "reason": "", "suite": ""}
    return json.dumps({**fields, "id": id, "killed": killed, "level": level}) + "\n"


def test_campaign_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, options = tmp_path / "results.jsonl", ["mutate", "--op", "IsNaN", "--kind", "source", "--kind", "*row"]
    assert run_command_line([*options, "--list"]) == 0
    ids = capsys.readouterr().out.splitlines()
    assert len(ids) > 2
    # The process was ended while it wrote the last result.
    file.write_text("".join(result_line(id, killed=True) for id in ids[:-1]) + result_line(ids[-1], killed=False)[:20])
    assert run_command_line([*options, "-o", str(file)]) == 0
    assert f"{len(ids)} mutants, {len(ids) - 1} of them tried before" in capsys.readouterr().err
    assert list(read_results([file])) == ids
    assert len(file.read_text().splitlines()) == len(ids)


ENTRY = '[[survivors]]\nkind = "{}"\nmutants = ["Add: {}*"]\nreason = "{}"\n'


def test_report_tells_equivalent_from_untested_mutants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, reasons = tmp_path / "results.jsonl", tmp_path / "reasons.toml"
    # The first entry that matches counts.
    entries = [("untested", "ax", "no case looks"), ("equivalent", "a", "it computes the same")]
    reasons.write_text("".join(ENTRY.format(*entry) for entry in entries))
    lines = [result_line(f"Add: {name}", killed=False, level=-1) for name in ("a", "ax", "c")]
    found = [result_line(f"Add: b{number}", killed=True) for number in range(2)]
    file.write_text("".join([*lines, *found]))
    options = ["mutate", "--report", str(file), "--reasons", str(reasons)]
    assert run_command_line(options) == 1
    printed = capsys.readouterr().out
    assert "| mutants | found at L2 | equivalent | untested | survive without a reason | share found |" in printed
    assert "| Add | 5 | 2 | 1 | 1 | 1 | 50.00% |" in printed
    assert "| 1 | no case looks | `Add: ax` |" in printed
    assert "| 1 | it computes the same | `Add: a` |" in printed
    assert "- `Add: c`" in printed


@pytest.mark.parametrize(("found", "exit_code"), [(98, 1), (99, 0)])
def test_less_than_99_percent_fails(tmp_path: Path, found: int, exit_code: int) -> None:
    file, reasons = tmp_path / "results.jsonl", tmp_path / "reasons.toml"
    reasons.write_text(ENTRY.format("untested", "a", "no case looks") + ENTRY.format("equivalent", "e", "the same"))
    survivors_of_both_kinds = [result_line(f"Add: {name}", killed=False, level=-1) for name in ("a", "e0", "e1", "e2")]
    file.write_text(
        "".join([*survivors_of_both_kinds, *(result_line(f"Add: b{i}", killed=True) for i in range(found))])
    )
    assert run_command_line(["mutate", "--report", str(file), "--reasons", str(reasons)]) == exit_code


def test_reason_must_say_which_kind_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, reasons = tmp_path / "results.jsonl", tmp_path / "reasons.toml"
    file.write_text(result_line("Add: a", killed=True))
    reasons.write_text(ENTRY.format("unlikely", "a", "it never happens"))
    assert run_command_line(["mutate", "--report", str(file), "--reasons", str(reasons)]) == 2
    assert "number 1 needs kind = 'equivalent' or 'untested', has 'unlikely'" in capsys.readouterr().err


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_shard_must_exist(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["mutate", "--list", "--shard", shard]) == 2
    assert "--shard must be i/n" in capsys.readouterr().err


@pytest.mark.full("mutation")
def test_suite_finds_the_mutants_of_a_sample(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    run_command_line(["mutate", "--shard", "8/8", "--jobs", "2", "-o", str(file)])
    results: list[Result] = list(read_results([file]).values())
    reasons = read_reasons()
    assert len(results) > 1000
    assert summarize(results, reasons).share >= LEAST_SHARE
    assert all(r.killed or reason_for(r.id, reasons) is not None for r in results)
