"""Criteria of a bisection: what makes the outputs of a run good."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from lite_core.errors import InputError
from lite_tools.checking import largest_difference

__all__ = ["FAILS", "GOOD", "SKIPPED", "WRONG", "Agreement", "Check", "Criterion", "Judgement", "parse_check"]

Array = np.ndarray[Any, Any]

GOOD, WRONG, FAILS, SKIPPED = "good", "wrong", "fails", "skipped"

#: Exit codes of a check that have a meaning.
_VERDICTS = {0: GOOD, 1: WRONG, 125: SKIPPED}


class Judgement(NamedTuple):
    """A verdict on one run, with its reason.

    Attributes:
        verdict: ``"good"``, ``"wrong"``, ``"fails"`` if the run raised an error, or ``"skipped"`` if it cannot be told.
        reason: the reason in words.
    """

    verdict: str
    reason: str = ""


class Criterion(Protocol):
    """Judges outputs."""

    @property
    def text(self) -> str:
        """The criterion in words."""
        ...

    def judge(self, outputs: Mapping[str, Array], about: Mapping[str, str]) -> Judgement:
        """Judge the outputs of a run.

        Args:
            outputs: arrays by name.
            about: facts about the run for a check, by the names of environment variables.

        Raises:
            InputError: a check that the user wrote failed.
        """
        ...


@dataclass(frozen=True)
class Agreement:
    """Outputs are good if they agree with expected ones.

    Attributes:
        expected: the expected outputs by name.
        limit: the largest allowed difference, as a share of an output's range; see
            :func:`lite_tools.checking.largest_difference`.
        atol: if not None, elements may differ by ``atol + rtol * |expected|`` instead.
        rtol: see ``atol``.
    """

    expected: Mapping[str, Array]
    limit: float
    atol: float | None = None
    rtol: float | None = None

    @property
    def text(self) -> str:
        if self.atol is None and self.rtol is None:
            return f"every output differs from that of a by at most {self.limit:g} of the output's range"
        return f"every element differs from that of a by at most {self.atol or 0:g} + {self.rtol or 0:g} * |element|"

    def judge(self, outputs: Mapping[str, Array], about: Mapping[str, str]) -> Judgement:
        found = [(self._excess(array, outputs[name]), name) for name, array in self.expected.items()]
        (worst, allowed), name = max(found, key=lambda each: (each[0][0] > each[0][1], each[0][0]))
        is_share = self.atol is None and self.rtol is None
        unit = f"{worst:.3g} of the range of output {name!r}" if is_share else f"{worst:.3g} in output {name!r}"
        return Judgement(GOOD if worst <= allowed else WRONG, f"the largest difference is {unit}")

    def _excess(self, expected: Array, found: Array) -> tuple[float, float]:
        """Return the difference of one output, and what is allowed where the excess is largest."""
        if expected.shape != found.shape or expected.dtype != found.dtype:
            return float("inf"), 0.0
        if self.atol is None and self.rtol is None:
            return largest_difference(expected, found), self.limit
        a, b = expected.astype(np.float64).reshape(-1), found.astype(np.float64).reshape(-1)
        with np.errstate(invalid="ignore"):
            difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
            difference[np.isnan(difference)] = np.inf
            allowed = (self.atol or 0.0) + (self.rtol or 0.0) * np.where(np.isfinite(a), np.abs(a), 0.0)
        if not a.size:
            return 0.0, 0.0
        worst = int(np.argmax(difference - allowed))
        return float(difference[worst]), float(allowed[worst])


@dataclass(frozen=True)
class Check:
    """Outputs are good if the user's command or function says so.

    Attributes:
        text: the check as the user wrote it.
        run: judges outputs, see :meth:`Criterion.judge`.
    """

    text: str
    run: Callable[[Mapping[str, Array], Mapping[str, str]], Judgement]

    def judge(self, outputs: Mapping[str, Array], about: Mapping[str, str]) -> Judgement:
        return self.run(outputs, about)


def parse_check(text: str) -> Check:
    """Return the check for ``script.py:function``, or for a command line.

    The function receives the outputs by name, and returns True if they are good. The command receives the path of an
    .npz file with the outputs as its last argument, and facts about the run in environment variables whose names begin
    with LITE_BISECT. It ends with exit code 0 if the outputs are good, 1 if they are wrong, 125 if that cannot be told.

    Raises:
        InputError: there is no such script or function, or the text is no command line.
    """
    script, _, name = text.rpartition(":")
    if script.endswith(".py") and name.isidentifier():
        return Check(text, _function_check(text, _load_function(script, name)))
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"the check {text!r} is no command line: {error}") from None
    if not words:
        raise InputError("the check is empty: write a command, or script.py:function")
    return Check(text, _command_check(words))


def _load_function(script: str, name: str) -> Callable[[dict[str, Array]], Any]:
    spec = importlib.util.spec_from_file_location("lite_bisect_check", script)
    if spec is None or spec.loader is None or not os.path.isfile(script):
        raise InputError(f"the check {script}:{name} cannot be used: there is no file {script!r}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"the check {script!r} cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"the check {script!r} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def _function_check(
    text: str, function: Callable[[dict[str, Array]], Any]
) -> Callable[[Mapping[str, Array], Mapping[str, str]], Judgement]:
    def judge(outputs: Mapping[str, Array], about: Mapping[str, str]) -> Judgement:
        try:
            answer = function({name: array.copy() for name, array in outputs.items()})
        except Exception as error:
            raise InputError(f"the check {text} failed with {type(error).__name__}: {error}") from error
        if not isinstance(answer, (bool, np.bool_)):
            raise InputError(f"the check {text} must return True or False, returned {type(answer).__name__}")
        return Judgement(GOOD if answer else WRONG, f"{text} returned {bool(answer)}")

    return judge


def _command_check(words: list[str]) -> Callable[[Mapping[str, Array], Mapping[str, str]], Judgement]:
    def judge(outputs: Mapping[str, Array], about: Mapping[str, str]) -> Judgement:
        with tempfile.TemporaryDirectory(prefix="lite-bisect-") as folder:
            file = Path(folder) / "outputs.npz"
            _save(file, outputs)
            environment = {**os.environ, **about}
            try:
                # 2: its output goes to standard error, so that it does not mix with the JSON of this command.
                code = subprocess.run([*words, str(file)], env=environment, stdout=2, check=False).returncode
            except (OSError, ValueError) as error:
                raise InputError(f"the check {shlex.join(words)!r} cannot be run: {error}") from None
        if code not in _VERDICTS:
            raise InputError(
                f"the check {shlex.join(words)!r} ended with exit code {code}; it must be 0 for good outputs, 1 for "
                "wrong ones, or 125 if it cannot tell"
            )
        return Judgement(_VERDICTS[code], f"the check ended with exit code {code}")

    return judge


def _save(file: Path, outputs: Mapping[str, Array]) -> None:
    """Write an .npz file; np.savez would not take an output that is called ``file``."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
