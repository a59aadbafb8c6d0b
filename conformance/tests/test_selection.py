"""The selection of cases by level, name, operator, element type and shard."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.catalogue import CaseFinder, all_cases, possible_cases
from lite_conformance.cases.patterns import matches
from lite_conformance.run.selection import Selection, parse_shard
from lite_core.errors import InputError

HOST = Settings("host")


@pytest.fixture(scope="module")
def every() -> list[Case]:
    return list(all_cases(HOST))


def names(**fields: object) -> list[str]:
    return [case.name for case in Selection(**fields).choose(HOST)]  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["Relu[f32,*]", "lite.*", "stress[threads,Conv]", "?elu[f32,*", "model[?*"])
def test_pattern_finds_what_it_matches_in_the_whole_suite(every: list[Case], pattern: str) -> None:
    """Only the parts of the suite that can match are generated: none may be forgotten."""
    found = [c.name for c in possible_cases(HOST, patterns=[pattern]) if matches(pattern, c.name)]
    assert found == [c.name for c in every if matches(pattern, c.name)] != []


def test_cases_are_found_by_name(every: list[Case]) -> None:
    finder = CaseFinder(HOST)
    for case in every[::997]:
        assert (finder[case.name].name, finder[case.name].op) == (case.name, case.op)
    with pytest.raises(KeyError):
        finder["Relu[f32,nothing]"]


def test_level_and_case_restrict_each_other() -> None:
    assert {name.partition("[")[0] for name in names(cases=["stress[threads,Relu]", "Relu[f32,scalar]"])} == {
        "stress",
        "Relu",
    }
    assert names(cases=["stress[threads,Relu]", "Relu[f32,scalar]"], levels=range(3)) == ["Relu[f32,scalar]"]
    with pytest.raises(InputError, match=r"no case matches all of: level L0-L1, cases Relu\[f32,scalar\]"):
        names(cases=["Relu[f32,scalar]"], levels=range(2))


def test_operators_and_element_types(every: list[Case]) -> None:
    chosen = names(ops=["Conv", "lite.*"], dtypes=["f16", "float32"])
    wanted = [c for c in every if (c.op == "Conv" or c.op.startswith("lite.")) and c.dtype in ("float16", "float32")]
    assert chosen == [c.name for c in wanted]
    assert {c.level for c in wanted} >= {2, 5}
    assert names(ops=["ai.onnx.Relu"], levels=range(2, 3)) == names(ops=["Relu"], levels=range(2, 3))


def test_exclude_leaves_cases_out() -> None:
    left = names(cases=["Relu[f32,*]"], exclude=["*,drawn]", "*large*"])
    assert "Relu[f32,scalar]" in left
    assert not any("drawn" in name or "large" in name for name in left)


def test_shards_are_balanced_and_together_the_whole() -> None:
    cases, count = ("Relu[*", "stress[*", "model[*"), 3
    whole = Selection(cases=cases).choose(HOST)
    parts = [Selection(cases=cases, shard=(number, count)).choose(HOST) for number in range(1, count + 1)]
    assert Counter(c.name for part in parts for c in part) == Counter(c.name for c in whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for level, is_drawn in ((2, True), (2, False), (4, False), (5, False)):
        sizes = [sum(c.level == level and c.name.endswith(",drawn]") is is_drawn for c in part) for part in parts]
        assert max(sizes) - min(sizes) <= 2, (level, is_drawn)
    order = {case.name: index for index, case in enumerate(whole)}
    for part in parts:
        positions = [order[c.name] for c in part]
        assert positions == sorted(positions)


def test_a_sample_has_every_operator_then_every_type_and_follows_the_seed() -> None:
    cases = ("Relu[*", "Add[*", "Conv[*", "graph[*")
    whole = Selection(cases=cases).choose(HOST)

    def drawn(count: int, seed: int = 0) -> list[str]:
        return [c.name for c in Selection(cases=cases, sample=count).choose(replace(HOST, seed=seed))]

    operator = {c.name: (c.level, c.op or "graph") for c in whole}
    kind = {c.name: (*operator[c.name], c.dtype) for c in whole}
    operators, kinds = {*operator.values()}, {*kind.values()}
    assert sorted(operator[name] for name in drawn(len(operators))) == sorted(operators)
    some = drawn(len(kinds))
    assert {kind[name] for name in some} == kinds
    assert drawn(len(kinds)) == some
    assert drawn(len(kinds), seed=1) != some
    assert drawn(len(whole) + 1) == [c.name for c in whole]
    assert some == [name for name in kind if name in some]  # in the order of the suite
    parts = [Selection(cases=cases, sample=10, shard=(number, 2)).choose(HOST) for number in (1, 2)]
    assert [len(part) for part in parts] == [5, 5]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", "1.5/2"])
def test_wrong_shard_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="a shard is i/n"):
        parse_shard(text)
    assert parse_shard(" 2/4 ") == (2, 4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cases": ["Swish[f32,*]"]}, r"'Swish\[f32,\*\]'; similar names: lite.Swish"),
        ({"cases": ["Relu[f32,nothing]"]}, r"similar names: Relu\["),
        ({"ops": ["Swish"]}, "op: no operator is called 'Swish'; similar names: lite.Swish"),
        ({"ops": ["Konv"]}, "similar names: Conv"),
        ({"dtypes": ["half"]}, "dtype: no element type is called 'half'; there are .*float16"),
        ({"cases": ["Relu[*"], "exclude": ["Konv*"]}, r"exclude: no selected case is called 'Konv\*'"),
        ({"only": frozenset(["Relu[f32,gone]"])}, "no case matches all of: .*only"),
    ],
)
def test_wrong_names_are_rejected_with_a_hint(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        names(**fields)


def test_only_named_cases() -> None:
    only = frozenset(["Relu[f32,scalar]", "stress[threads,Relu]", "Relu[f32,gone]"])
    assert names(only=only) == ["Relu[f32,scalar]", "stress[threads,Relu]"]
    assert names(only=only, levels=range(3)) == ["Relu[f32,scalar]"]
