"""The attack with damaged inputs: its committed corpus, and the attack itself with planted faults."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz import execution
from fuzz.bundles import pack, unpack
from fuzz.campaign import attack
from fuzz.corpus import committed_cases
from fuzz.mutation import mutated_bytes, mutated_json, mutated_text
from fuzz.targets import TARGETS, find_target
from fuzz.targets.planted import PlantedFaults

each_target = pytest.mark.parametrize("target", TARGETS)


@each_target
def test_committed_inputs_break_no_rule(target: str, tmp_path: Path) -> None:
    """Each of them broke a rule once, or reaches much of a reader."""
    cases = committed_cases(target)
    if not cases:
        pytest.skip("no input of this target has broken a rule")
    attacked = find_target(target)
    found = {case.name: execution.execute(attacked, case.read_bytes(), tmp_path).finding for case in cases}
    assert not {name: finding for name, finding in found.items() if finding}


@pytest.mark.parametrize(("data", "kind"), [(b"crash", "crash"), (b"memory", "memory"), (b"hang", "hang"), (b"x", "")])
def test_broken_rules_are_found(data: bytes, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "hang":
        monkeypatch.setattr(execution, "HANG_SECONDS", 0.2)
    finding = execution.execute(PlantedFaults(), data, tmp_path).finding
    if kind == "memory" and not execution.can_measure_memory():
        pytest.skip("this system does not let a process reset the peak of its memory")
    assert (finding.kind if finding else "") == kind


def test_mutations_keep_the_structure_and_change_something() -> None:
    chance = random.Random(1)
    document = b'{"a":[1,2.5,"x",null],"b":{"c":true}}'
    assert len({mutated_json(document, chance) for _ in range(200)}) > 100
    assert len({mutated_bytes(document, chance) for _ in range(200)}) > 100
    assert len({mutated_text("name=1x3", chance) for _ in range(200)}) > 50
    files = {"a.bin": b"\n\0", "b": b""}
    assert unpack(pack(files)) == files


@pytest.mark.full("reliability")
@each_target
def test_seeds_reach_the_end(target: str, tmp_path: Path) -> None:
    """An attack whose valid inputs are refused would find little."""
    attacked = find_target(target)
    outcomes = [execution.execute(attacked, data, tmp_path).outcome for data in attacked.seeds()]
    assert 2 * outcomes.count("result") >= len(outcomes)


@pytest.mark.full("reliability")
def test_attack_finds_faults_of_every_kind_and_goes_on(tmp_path: Path) -> None:
    result = attack("planted", 90, tmp_path)
    kinds = {file.name.partition("-")[0] for file in result.findings}
    assert {"crash", "hang", "death"} <= kinds
    assert ("memory" in kinds) == execution.can_measure_memory()
    assert (tmp_path / "planted/findings").is_dir()
    (crash,) = (file for file in result.findings if file.name.startswith("crash"))
    assert crash.read_bytes() == b"crash"


@pytest.mark.full("reliability")
@each_target
def test_short_attack_finds_nothing(target: str, tmp_path: Path) -> None:
    result = attack(target, 15, tmp_path)
    reasons = [file.with_suffix(".txt").read_text(errors="replace")[:2000] for file in result.findings]
    assert not reasons
    assert result.executions
