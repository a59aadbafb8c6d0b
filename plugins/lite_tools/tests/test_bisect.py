"""Bisection: planted faults are found and named, with few runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spoilt_backend import Spoil, SpoiltBackend, chain

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.passes import PassResult
from lite_core.plugins import hookimpl, plugins_with
from lite_core.schedule.precision import Precision
from lite_tools.bisecting import (
    NOTHING,
    UNSTEADY,
    Agreement,
    Answers,
    Check,
    Criterion,
    Findings,
    Judgement,
    Trials,
    bisect_passes,
    bisect_units,
    parse_check,
    smallest_set,
)
from lite_tools.bisecting.advice import Request, workaround

Array = np.ndarray[Any, Any]

#: Whole numbers, which the nodes of a chain pass on exactly.
X = {"x": np.array([1, 2, 3, 4], np.float32)}
LENGTH = 60


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no answers of one test be known to another."""
    monkeypatch.setenv("LITE_CACHE_DIR", "off")


def off_by_one(result: Array, options: Options) -> Array:
    return result + 1


def agreement(outputs: Mapping[str, Array]) -> Criterion:
    return Agreement(dict(outputs), 1e-3)


def trials_of(criterion: Criterion, answers: Answers | None = None, repeat: int = 1) -> Trials:
    return Trials(criterion, answers or Answers({}, None), {}, lambda text: None, repeat)


def bisect(
    by: str,
    spoils: Mapping[str, Spoil],
    graph: Graph | None = None,
    *,
    a: Mapping[str, Any] | None = None,
    b: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    criterion_of: Any = agreement,
    repeat: int = 1,
    others: tuple[SpoiltBackend, ...] = (),
) -> Findings:
    """Bisect a chain between two sessions, by default on host and on the backend with the faults."""
    plugins = plugins_with(SpoiltBackend(spoils), *others)
    graph = graph or chain(LENGTH)

    def load_b(precision: Any) -> Any:
        return load(graph, plugins=plugins, **{"backend": "spoilt", **(b or {}), "precision": precision})

    session_a = load(graph, plugins=plugins, **{"backend": "host", **(a or {})})
    session_b = load(graph, plugins=plugins, **{"backend": "spoilt", **(b or {})})
    return bisect_units(by, session_a, session_b, X, criterion_of, lambda c: trials_of(c, answers, repeat), load_b)


def most_runs(units: int) -> int:
    return 2 * ceil(log2(units)) + 8


# **** the search ****


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 33])
def test_any_single_unit_and_any_pair_is_found_with_few_questions(size: int) -> None:
    units = list(range(size))
    for first in units:
        for second in units[first:]:
            asked: set[frozenset[int]] = set()
            wanted = {first, second}

            def ask(chosen: frozenset[int], wanted: set[int] = wanted, asked: set[frozenset[int]] = asked) -> bool:
                asked.add(chosen)
                return wanted <= chosen

            assert smallest_set(units, ask, lambda left: None) == sorted(wanted)
            assert len(asked) <= len(wanted) * (ceil(log2(size)) + 2)


def test_units_that_cannot_be_told_apart_are_found_together() -> None:
    def ask(chosen: frozenset[int]) -> bool | None:
        present = chosen & {4, 5, 6}
        return None if 0 < len(present) < 3 else bool(present)

    assert smallest_set(range(10), ask, lambda left: None) == [4, 5, 6]


# **** by node ****


@pytest.mark.parametrize("node", ["n0", "n31", f"n{LENGTH - 1}"])
def test_wrong_node_is_named_with_its_kernel(node: str) -> None:
    findings = bisect("node", {node: off_by_one})
    (culprit,) = findings.culprits
    assert (culprit.name, culprit.device_a, culprit.device_b) == (node, "host", "spoilt")
    assert culprit.kernel == f"spoilt_{culprit.op.lower()}"
    assert findings.others is not None
    assert findings.others.verdict == "good"
    assert findings.runs <= most_runs(LENGTH)


def test_of_several_culprits_one_is_found_and_the_others_are_mentioned() -> None:
    findings = bisect("node", {"n11": off_by_one, "n40": off_by_one})
    assert [culprit.name for culprit in findings.culprits] == ["n11"]
    request = Request("m.lite", "node", "x86", "spoilt", None, None, "float32", Precision.of("float32"), (), (), 0)
    (line,) = workaround(request, findings)
    assert "not enough alone" in line
    assert findings.others is not None
    assert findings.others.verdict == "wrong"


def test_nodes_that_are_wrong_only_together_are_both_found() -> None:
    spoils = {
        "n7": lambda x, options: x + 2**-20,  # harmless alone, ...
        "n50": lambda x, options: x + 1e6 * (x - np.round(x)),  # as is this on whole numbers
    }
    findings = bisect("node", spoils)
    assert [culprit.name for culprit in findings.culprits] == ["n7", "n50"]
    assert findings.runs <= 2 * most_runs(LENGTH)


def test_node_in_the_body_of_a_loop_is_named() -> None:
    body = GraphBuilder("body")
    state = [body.input(name, kind, ()) for name, kind in (("i", "int64"), ("go", "bool"))]
    value = body.add("Abs", [body.add("Relu", [body.input("v", "float32", [4])], name="inner")], name="other")
    body.output(state[1], "go_on")
    body.output(value, "w")
    b = GraphBuilder("loop")
    x = b.add("Relu", [b.input("x", "float32", [4])], name="before")
    count, go = b.constant(np.array(3, np.int64)), b.constant(np.array(True))
    b.output(b.add("Loop", [count, go, x], {"body": body.build()}, name="loop"), "y")
    findings = bisect("node", {"inner": off_by_one}, b.build())
    assert [(c.name, c.kernel) for c in findings.culprits] == [("inner", "spoilt_relu")]


def test_node_that_fails_is_found() -> None:
    def fail(result: Array, options: Options) -> Array:
        raise ArithmeticError("no such instruction")

    findings = bisect("node", {"n20": fail})
    assert [culprit.name for culprit in findings.culprits] == ["n20"]
    assert findings.whole.verdict == "fails"
    assert "no such instruction" in findings.whole.reason


def test_node_that_fails_to_compile_is_found() -> None:
    findings = bisect("node", {}, b={"backend": "failing"}, others=(SpoiltBackend({}, "failing", fails=["n30"]),))
    assert [(c.name, c.device_b) for c in findings.culprits] == [("n30", "failing")]
    assert findings.whole.verdict == "fails"
    assert "out of registers" in findings.whole.reason


def test_equal_sides_have_nothing_to_bisect() -> None:
    with pytest.raises(InputError, match="in the same way"):
        bisect("node", {}, a={"backend": "spoilt"})


def test_side_b_without_fault_is_good() -> None:
    findings = bisect("node", {})
    assert (findings.verdict, findings.culprits) == (NOTHING, ())


def test_no_node_is_named_if_runs_differ() -> None:
    runs = iter(range(1000))
    findings = bisect("node", {"n5": lambda x, options: x + next(runs) % 2})
    assert (findings.verdict, findings.culprits) == (UNSTEADY, ())
    assert "b" in findings.notes[0]


def test_fault_that_comes_and_goes_is_found_by_repeating() -> None:
    runs = iter(range(1000))
    findings = bisect("node", {"n5": lambda x, options: x + (next(runs) % 3 == 2)}, repeat=3)
    assert [culprit.name for culprit in findings.culprits] == ["n5"]


# **** by backend, threads, precision ****


def test_wrong_device_of_several_is_named() -> None:
    other = SpoiltBackend({"n3": off_by_one}, "other", refuses=[f"n{n}" for n in range(0, LENGTH, 3)])
    findings = bisect("backend", {"n3": off_by_one}, b={"backend": ["other", "spoilt"]}, others=(other,))
    assert [culprit.name for culprit in findings.culprits] == ["spoilt"]
    assert findings.units == 2


def test_node_that_is_wrong_with_several_threads_is_named() -> None:
    sides = {"a": {"backend": "spoilt", "threads": 1}, "b": {"threads": 4}}
    findings = bisect("threads", {"n17": lambda x, options: x + (options.threads > 1)}, **sides)
    assert [culprit.name for culprit in findings.culprits] == ["n17"]
    assert findings.runs <= most_runs(LENGTH)


def in_half(x: Array, options: Options) -> Array:
    return x * 1.1 if options.precision == "float16" else x


def test_nodes_that_must_stay_in_float32_are_found_and_verified() -> None:
    sides = {"a": {"backend": "spoilt"}, "b": {"precision": "float16"}}
    findings = bisect("precision", {"n9": in_half, "n33": in_half}, **sides)
    assert findings.precision == {"n9": "float32", "n33": "float32", "*": "float16"}
    assert findings.verified is not None
    assert findings.verified.verdict == "good"


# **** by pass ****


class Rewrites:
    """A plugin with a pass that makes an Abs of every Relu."""

    LITE_API_VERSION = 1

    @hookimpl
    def lite_passes(self) -> list[Any]:
        return [ReplaceRelu()]


class ReplaceRelu:
    name = "replace-relu"

    def __call__(self, graph: Graph) -> PassResult:
        found = next((node for node in graph.nodes if node.op == "Relu"), None)
        if found is not None:
            found.op = "Abs"
        return PassResult(graph, found is not None)


def with_identities() -> Graph:
    """Return a graph that several passes change, and in which two Relus see numbers of either sign."""
    b = GraphBuilder("passes")
    x = b.add("Relu", [b.add("Identity", [b.input("x", "float32", [4])])], name="harmless")
    x = b.add("Relu", [b.add("Sub", [x, b.constant(np.full(4, 2, np.float32))])], name="spoilt")
    b.output(b.add("Add", [x, b.add("Exp", [b.constant(np.zeros(4, np.float32))])]), "y")
    return b.build()


def test_application_of_a_pass_that_changes_the_result_is_named() -> None:
    plugins = plugins_with()
    plugins.register(Rewrites(), "rewrites")
    graph = with_identities()

    def run(graph: Graph) -> Mapping[str, Array]:
        return load(graph, "host", optimize=False, plugins=plugins).run(X)

    findings = bisect_passes(graph, plugins, run, run, agreement, trials_of)
    (culprit,) = findings.culprits
    assert culprit.name == "replace-relu"
    assert "change number 2 by this pass" in culprit.details
    assert "changed spoilt (Abs)" in culprit.details
    assert findings.others is not None
    assert findings.others.verdict == "good"
    assert findings.runs <= most_runs(findings.units)


# **** resuming, checks ****


def test_interrupted_bisection_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"

    def interrupted(outputs: Mapping[str, Array]) -> Criterion:
        judge, calls = agreement(outputs).judge, iter(range(8))

        def run(outputs: Mapping[str, Array], about: Mapping[str, str]) -> Judgement:
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return judge(outputs, about)

        return Check("interrupted", run)

    with pytest.raises(KeyboardInterrupt):
        bisect("node", {"n42": off_by_one}, answers=Answers({"chain": 1}, file), criterion_of=interrupted)
    findings = bisect("node", {"n42": off_by_one}, answers=Answers({"chain": 1}, file))
    assert [culprit.name for culprit in findings.culprits] == ["n42"]
    assert findings.reused >= 3
    with pytest.raises(InputError, match="another bisection"):
        Answers({"chain": 2}, file)


def test_answers_about_other_kernels_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    bisect("node", {"n42": off_by_one}, answers=Answers({}, file))
    findings = bisect("node", {"n3": lambda x, options: x + 2}, answers=Answers({}, file))
    assert [culprit.name for culprit in findings.culprits] == ["n3"]
    assert findings.reused == 0


def test_elements_of_small_outputs_are_judged_by_atol_and_rtol() -> None:
    expected = {"y": np.array([1e-6, 1000.0], np.float32)}
    found = {"y": np.array([2e-6, 1000.0], np.float32)}
    assert Agreement(expected, 1e-3).judge(found, {}).verdict == "good"
    assert Agreement(expected, 0, atol=1e-7).judge(found, {}).verdict == "wrong"
    assert Agreement(expected, 0, atol=1e-7, rtol=2).judge(found, {}).verdict == "good"
    nothing = {"y": np.array([np.nan, 1000.0], np.float32)}
    assert Agreement(expected, 0, rtol=2).judge(nothing, {}).verdict == "wrong"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("absent.py:good", "no file"),
        ("'unbalanced", "no command line"),
        ("", "empty"),
    ],
)
def test_check_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_check(text)


def test_check_command_gets_the_outputs_and_what_is_run(tmp_path: Path) -> None:
    script = tmp_path / "check.sh"
    script.write_text('#!/bin/sh\necho "$LITE_BISECT_BY" "${1##*.}" >> "$0.log"\nexit $CODE\n')
    script.chmod(0o755)
    check = parse_check(f"sh {script}")
    codes = {"0": "good", "1": "wrong", "125": "skipped"}
    found = {code: check.judge(X, {"LITE_BISECT_BY": "node", "CODE": code}).verdict for code in codes}
    assert found == codes
    assert Path(f"{script}.log").read_text().splitlines() == ["node npz"] * 3
    with pytest.raises(InputError, match="exit code 7"):
        check.judge(X, {"CODE": "7"})
