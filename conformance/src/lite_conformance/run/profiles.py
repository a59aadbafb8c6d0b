"""Conformance profiles: the cases by which a backend is judged for a class of models, or for a way of computing.

A profile consists of parts: cases with a precision level. Some profiles have a must-pass list, see
:mod:`.must_pass`: the cases that a backend must pass, not refuse. ``vision-f32`` and the other profiles of a class of
models consist of such a list; the last part of their names is the element type of the models. The profiles
``float16`` and ``bfloat16`` are all float32 cases of operators, graphs and models at the level of that name; a backend
whose sums are float16 is judged by the level ``float16-sums`` instead. ``int8`` is everything that quantized models
consist of, which has exact results; and the level ``int8``, for a backend that computes float32 models in int8 by
itself. ``weights8`` and ``weights4`` are products whose constant weights have so many bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from lite_conformance.cases.case import Settings
from lite_conformance.judge.precision import FLOAT32
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.run.must_pass import MustPassList, listed_profiles, must_pass_list
from lite_conformance.run.selection import Selection, parse_level
from lite_core.errors import InputError
from lite_core.ir import DType

__all__ = ["MUST_PASS_KEY", "PROFILES", "PROFILE_KEY", "Part", "Profile", "is_rounded", "joined", "must_pass_part"]

#: Key of the header of a report: the name of its profile.
PROFILE_KEY = "profile"
#: Key of the header of a report: the version of the profile's must-pass list, with its number of cases and its digest.
MUST_PASS_KEY = "must_pass"
_IN_FLOAT32 = (DType.FLOAT32.value,)
#: Operators and graphs of quantized models.
_QUANTIZED = ("*QuantizeLinear", "DequantizeLinear", "*Integer", "QLinear*")


@dataclass(frozen=True, slots=True)
class Part:
    """Some cases at one precision level.

    Attributes:
        precision: the name of the level.
        selection: the cases.
        optional: True if a backend need not offer the level.
        otherwise: the name of the level of backends that the first one does not suit, because they add in the type.
    """

    precision: str
    selection: Selection
    optional: bool = False
    otherwise: str = ""

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of a run with the part's precision level."""
        return replace(settings, precision=self.precision)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile.

    Attributes:
        name: its name on the command line.
        title: what it tests, in a few words.
        parts: its cases.
    """

    name: str
    title: str
    parts: tuple[Part, ...]

    @property
    def must_pass(self) -> MustPassList | None:
        """The cases that a backend must pass, or None if the profile has no such list."""
        return must_pass_list(self.name)


def must_pass_part(name: str) -> Part:
    """Return the part with the cases of the must-pass list of a profile.

    Raises:
        InputError: the profile has no such list.
    """
    required = must_pass_list(name)
    if required is None:
        raise InputError(f"the profile {name!r} has no must-pass list; {', '.join(listed_profiles())} have one")
    return Part(FLOAT32.name, Selection(only=frozenset(required.cases)))


def _everything(precision: str, optional: bool = False, otherwise: str = "") -> Iterator[Part]:
    """Yield the parts with all cases that a precision level applies to."""
    yield Part(precision, Selection(parse_level("L2-L3"), dtypes=_IN_FLOAT32), optional, otherwise)
    yield Part(precision, Selection(parse_level("L4-L4")), optional, otherwise)


def _weights(bits: int) -> Part:
    return Part(FLOAT32.name, Selection(parse_level("L3-L3"), cases=(f"graph[*weights{bits}-*",)))


def _of_models(name: str, title: str) -> Profile:
    """Return the profile of a class of models, which consists of a must-pass list."""
    return Profile(name, title, (must_pass_part(name),))


#: The profiles by their names.
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            _of_models("vision-f32", "float32 models of vision"),
            _of_models("vision-f16", "float16 models of vision"),
            _of_models("detection-f32", "float32 models that find objects"),
            _of_models("transformer-f32", "float32 transformers"),
            _of_models("transformer-f16", "float16 transformers"),
            Profile("float32", "float32 models", tuple(_everything(FLOAT32.name))),
            Profile("bfloat16", "float32 models, computed in bfloat16", tuple(_everything("bfloat16"))),
            Profile(
                "float16",
                "float32 models, computed in float16",
                tuple(_everything("float16", otherwise="float16-sums")),
            ),
            Profile(
                "int8",
                "quantized models",
                (Part(FLOAT32.name, Selection(parse_level("L2-L3"), ops=_QUANTIZED)), *_everything("int8", True)),
            ),
            Profile("weights8", "constant weights of 8 bits", (_weights(8),)),
            Profile("weights4", "constant weights of 4 bits", (_weights(4),)),
        )
    }
)


def joined(profile: Profile, reports: list[Report]) -> Report:
    """Return the reports of a profile's parts as one, whose header names the profile."""
    first = reports[0]
    chosen_by_part = ("level", "cases", "dtypes", "ops", "only", "precision")
    options = {key: value for key, value in first.header["options"].items() if key not in chosen_by_part}
    header = {**first.header, "options": options, PROFILE_KEY: profile.name}
    if required := profile.must_pass:
        header[MUST_PASS_KEY] = {"version": required.version, "cases": len(required.cases), "digest": required.digest}
    if unfinished := next((report.incomplete for report in reports if report.incomplete), ""):
        header["incomplete"] = unfinished
    records = [record for report in reports for record in report.records]
    return Report(header, records, sum(report.seconds for report in reports))


def is_rounded(record: Record) -> bool:
    """Return True if a result was right because a precision level allows rounding, and not as exact as float32."""
    passed_at_level = record.status is Status.PASSED and record.reason.startswith(f"{record.precision}: ")
    return bool(record.precision) and passed_at_level and "as exact as float32" not in record.reason
