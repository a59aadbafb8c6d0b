"""Write the must-pass lists of conformance profiles from their rules.

    python scripts/make_must_pass.py                       # what the rules would change
    python scripts/make_must_pass.py vision-f32 --write    # write a list that changed, with its next version

The rules are in ``conformance/src/lite_conformance/must_pass/rules.toml``. A list is not changed by new cases of the
suite until it is written again, because a backend that conforms to a version must keep conforming to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.cases.patterns import matches
from lite_conformance.run.must_pass import digest_of_cases, known_versions, must_pass_list
from workspace import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

__all__ = ["FOLDER", "chosen_cases", "read_rules"]

FOLDER = ROOT / "conformance/src/lite_conformance/must_pass"
_VERSIONS = FOLDER / "versions.json"
_LEVELS = (2, 3, 4)


def read_rules() -> dict[str, Any]:
    """Return the rules."""
    return tomllib.loads((FOLDER / "rules.toml").read_text(encoding="utf-8"))


def chosen_cases(profile: str, rules: Mapping[str, Any]) -> list[str]:
    """Return the names of the cases that the rules choose for a profile, in the order of the suite."""
    rule = rules["profiles"][profile]
    base = rules["profiles"][rule["like"]] if "like" in rule else {}
    dtype = rule.get("type", base.get("type", ""))
    groups = rule.get("groups", base.get("groups", ()))
    operators = {op for group in groups for op in rules["groups"][group]} | {
        *base.get("operators", ()),
        *rule.get("operators", ()),
    }
    patterns = [*base.get("cases", ()), *rule.get("cases", ())]
    if dtype != base.get("type", dtype):
        patterns = [pattern.replace(f"[{base['type']},", f"[{dtype},") for pattern in patterns]
    left_out = [*rules["leave_out"], *base.get("leave_out", ()), *rule.get("leave_out", ())]

    def is_chosen(case: Any) -> bool:
        named = any(matches(pattern, case.name) for pattern in patterns)
        typed = bool(dtype) and case.level == 2 and case.op in operators and case.name.startswith(f"{case.op}[{dtype},")
        return (named or typed) and not any(matches(pattern, case.name) for pattern in left_out)

    return [case.name for case in all_cases(Settings("host")) if case.level in _LEVELS and is_chosen(case)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Show or write the lists; return 0."""
    rules = read_rules()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profiles", nargs="*", metavar="PROFILE", help=", ".join(rules["profiles"]))
    parser.add_argument("--write", action="store_true", help="write the lists that changed, with their next versions")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.profiles if name not in rules["profiles"]]:
        parser.error(f"no profile is called {unknown[0]!r}; there are {', '.join(rules['profiles'])}")
    for profile in options.profiles or rules["profiles"]:
        current, cases = must_pass_list(profile), chosen_cases(profile, rules)
        before = set(current.cases) if current else set()
        added, gone = sorted(set(cases) - before), sorted(before - set(cases))
        print(f"{profile}: {len(cases):,} cases, {len(added):,} new, {len(gone):,} gone")
        if options.write and (added or gone):
            _write(profile, cases)
    return 0


def _write(profile: str, cases: Sequence[str]) -> None:
    versions = json.loads(_VERSIONS.read_text(encoding="utf-8"))
    number = max(known_versions(profile), default=0) + 1
    versions.setdefault(profile, {})[str(number)] = {"cases": len(cases), "digest": digest_of_cases(cases)}
    (FOLDER / f"{profile}.txt").write_text("\n".join(cases) + "\n", encoding="utf-8")
    _VERSIONS.write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
    print(f"  wrote version {number}")


if __name__ == "__main__":
    sys.exit(main())
