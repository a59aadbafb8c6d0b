"""The options and markers of the plugin, and the requests that the command line makes.

NOTE: this module is imported by every pytest of the environment; it imports nothing of the suite.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from lite_conformance.pytest_plugin.requests import SuiteRequest

__all__ = ["MARKERS", "PREFIX", "add_options", "requests_of"]

#: Start of the node ids of the suite of the command line, which are arguments as well: ``lite::toy::Relu[f32,2x3]``.
PREFIX = "lite::"

MARKERS = (
    "lite_level(name): level of a case of the Lite conformance suite: -m \"lite_level(name='L2')\"",
    "lite_op(name): operator of a case, with its domain: -m \"lite_op(name='Relu')\"",
    "lite_dtype(name): element type of a case: -m \"lite_dtype(name='float16')\"",
)

#: Options of the suite of ``--lite-backend``: name, field of the request, and the arguments of argparse.
_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("level", "level", {"metavar": "LEVEL", "help": "L2: levels 0 to 2; L2-L3: these only (default: all)"}),
    (
        "case",
        "cases",
        {
            "action": "append",
            "metavar": "PATTERN",
            "help": "only cases with this name; * and ? are wildcards; repeatable",
        },
    ),
    (
        "op",
        "ops",
        {"action": "append", "metavar": "PATTERN", "help": "only cases of this operator: Conv, 'lite.*'; repeatable"},
    ),
    (
        "dtype",
        "dtypes",
        {"action": "append", "metavar": "TYPE", "help": "only cases in this element type: float16 or f16; repeatable"},
    ),
    (
        "exclude",
        "exclude",
        {"action": "append", "metavar": "PATTERN", "help": "leave out the cases with this name; repeatable"},
    ),
    ("shard", "shard", {"metavar": "I/N", "help": "the i-th of n parts of equal size"}),
    ("seed", "seed", {"type": int, "metavar": "N", "help": "seed of all random numbers (default: 0)"}),
    (
        "examples",
        "examples",
        {"type": int, "metavar": "N", "help": "random examples per operator and element type (default: 20)"},
    ),
    (
        "precision",
        "precision",
        {"metavar": "LEVEL", "help": "let the backend compute float32 cases in fewer bits: bfloat16, int8, ..."},
    ),
    (
        "timeout",
        "timeout",
        {"type": float, "metavar": "SECONDS", "help": "time limit of a case in seconds (default: 60)"},
    ),
    ("model", "models", {"action": "append", "metavar": "FILE", "help": "a model to run in level 4; repeatable"}),
    ("expectations", "expectations", {"metavar": "FILE", "help": "use it instead of the backend's conformance.toml"}),
)


def add_options(parser: pytest.Parser) -> None:
    """Add the options of the plugin; all begin with ``--lite-``."""
    group = parser.getgroup("lite", "conformance of Lite backends")
    group.addoption(
        "--lite-backend",
        metavar="NAME",
        help="run the conformance suite on this backend: an installed one, module:attribute or file.py:attribute",
    )
    for name, field, arguments in _OPTIONS:
        group.addoption(f"--lite-{name}", dest=f"lite_{field}", default=None, **arguments)
    group.addoption("--lite-json", metavar="FILE", help="write the report of the suite as JSON")
    group.addoption("--lite-html", metavar="FILE", help="write the report of the suite as one web page")


def requests_of(config: pytest.Config) -> list[SuiteRequest]:
    """Return the suites that the command line asks for, and remove their node ids from its arguments.

    Raises:
        pytest.UsageError: options restrict a suite that nothing asks for.
    """
    named: dict[str, list[str]] = {}
    if backend := config.getoption("lite_backend"):
        named[backend] = []
    for argument in config.args:
        if argument.startswith(PREFIX):
            backend, _, case = argument.removeprefix(PREFIX).partition("::")
            named.setdefault(backend, []).extend([case] if case else [])
    config.args[:] = [argument for argument in config.args if not argument.startswith(PREFIX)]
    given = {name: config.getoption(f"lite_{name}") for _, name, _ in _OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    if not named:
        _refuse_lone_options(config)
    requests = []
    for backend, cases in named.items():
        chosen = {**given, "cases": [*given.get("cases", ()), *cases]}
        requests.append(SuiteRequest(backend, **chosen, is_of_command_line=True))
    return requests


def _refuse_lone_options(config: pytest.Config) -> None:
    """Refuse options without the suite that they are for; those of ``addopts`` may wait for one."""
    for name, _, _ in _OPTIONS:
        flag = f"--lite-{name}"
        if any(str(a).partition("=")[0] == flag for a in config.invocation_params.args):
            raise pytest.UsageError(
                f"{flag} is for the suite of --lite-backend NAME, which is missing; the arguments of "
                "conformance_tests(), -k and -m select the cases of a test file"
            )


# The options have the names of the request's fields.
assert {field for _, field, _ in _OPTIONS} <= {field.name for field in fields(SuiteRequest)}
