"""Schemas of what lite-conformance prints and writes."""

from __future__ import annotations

from json_schemas.parts import (
    Schema,
    choice,
    document,
    flag,
    integer,
    items,
    mapping,
    maybe,
    named,
    number,
    or_null,
    record,
    text,
    texts,
)

__all__ = ["SCHEMAS"]

_STATUSES = ("passed", "failed", "xfail", "xpass", "unsupported", "skipped", "crashed", "hung", "error")
_STATUS = choice("The status of the case.", *_STATUSES)
_DIGEST = text("A SHA-256, in hexadecimal digits.")
_OPEN: Schema = {"type": "object"}
_TOLERANCE = record(
    "The tolerance in force; absent if nothing was compared.",
    rtol=number("Relative to each expected element.", finite=False),
    atol=number("Relative to the magnitude of the case.", finite=False),
    source=text("default, or the file in which the backend's package sets another tolerance."),
    loosened=flag("True if the backend's package allows more than the default."),
    default=items("rtol and atol without the package's settings.", number("A tolerance.", finite=False)),
    reason=text("The package's reason for its setting."),
)
_MEASURED = record(
    "The largest errors over all elements of all outputs; absent if nothing was compared.",
    max_abs=number("The largest absolute error.", finite=False),
    max_rel=number("The largest error relative to the expected element.", finite=False),
    max_ulp=number("The largest error in units in the last place.", finite=False),
    nmse=number("The mean squared error over the mean squared expected value.", finite=False),
    worst=text("The output and element with the largest error."),
    required_rtol=number("The smallest rtol that passes, with the atol in force.", finite=False),
    required_atol=number("The smallest atol that passes, with the rtol in force.", finite=False),
    wrong=integer("The number of elements out of tolerance."),
    elements=integer("The number of elements."),
)
_RECORD = record(
    case=text("The case."),
    level=integer("Its level, 0 to 5."),
    suite=text("The part of the suite that it belongs to."),
    op=maybe(text("The operator, with its domain.")),
    dtype=maybe(text("The element type under test.")),
    backend=maybe(text("The backend.")),
    device=maybe(text("The device.")),
    status=_STATUS,
    reason=maybe(text("Why the status is not passed.")),
    details=maybe(text("A traceback, or the log of a crashed process.")),
    expectation=maybe(text("Why the backend's package declares it unsupported or failing.")),
    tolerance=maybe(_TOLERANCE),
    measured=maybe(_MEASURED),
    seed=maybe(integer("The seed of the random numbers.")),
    seconds=maybe(number("The duration.")),
    examples=maybe(integer("The number of sets of inputs that ran.")),
    precision=maybe(text("The precision level, if it is not float32.")),
    weight=maybe(number("The operator's share of the nodes of real models, 0 to 1.")),
    repro=maybe(text("The command that repeats the case.")),
)
_CHANGED = record(case=text("The case."), before=_STATUS, after=_STATUS)
_PROFILE: dict[str, Schema] = {
    "name": text("The profile."),
    "version": integer("The version of its must-pass list.", 1),
}
_ENVIRONMENT = {**_OPEN, "description": "Backend, device, versions and software below, from the reports."}

SCHEMAS = {
    "conformance-report": document(
        "lite-conformance run, profiles, plugin and judge --json FILE: a report",
        record(
            header={**_OPEN, "description": "Backend, device, versions, platform and options of the run."},
            seconds=number("The duration of the run."),
            counts=record(
                "The number of cases of each status.",
                **{status: integer(f"The number of cases that have the status {status}.") for status in _STATUSES},
                executed=integer("The number of cases for which the backend executed something."),
            ),
            weighted_pass_rate=or_null(number("The pass rate of level 2, weighted by the use of operators, 0 to 1.")),
            weight_covered=number("The share of the nodes of real models that this rate is about, 0 to 1."),
            records=items("The cases, in the order of the suite; fields with default values are left out.", _RECORD),
        ),
    ),
    "conformance-compare": document(
        "lite-conformance compare --json: what changed from one report to another",
        record(
            settings=texts("Differences of versions, devices and options."),
            regressed=items("Cases that passed before and are bad now.", _CHANGED),
            fixed=items("Cases that were bad before and pass now.", _CHANGED),
            moved=items("Cases with another status that is neither.", _CHANGED),
            grown=texts("Cases that need more than twice the tolerance."),
            added=texts("Cases that are new."),
            gone=texts("Cases that are gone."),
        ),
    ),
    "conformance-submit": document(
        "lite-conformance submit --json: the submission that was written",
        record(
            file=text("The zip file."),
            sha256=_DIGEST,
            profiles=items(
                "The profiles that the backend conforms to.",
                record(**_PROFILE, cases=integer("The number of must-pass cases.")),
            ),
        ),
    ),
    "conformance-verify": document(
        "lite-conformance verify --json: whether a submission is sound",
        record(
            file=text("The zip file."),
            sha256=_DIGEST,
            verified=flag("True if nothing is wrong."),
            backend=text("The backend; empty if it cannot be read."),
            environment=_ENVIRONMENT,
            profiles=items(
                "The profiles.",
                record(
                    **_PROFILE,
                    passed=integer("The number of must-pass cases that passed."),
                    conforms=flag("True if all of them passed."),
                ),
            ),
            findings=items(
                "What is wrong.",
                record(check=text("The check that found it."), message=text("What was found, and expected.")),
            ),
        ),
    ),
    "conformance-manifest": document(
        "manifest.json in a submission",
        record(
            backend=text("The backend."),
            command=text("The command that made the submission."),
            created=text("When, in ISO 8601."),
            seed=integer("The seed of all random numbers."),
            profiles=items(
                "The profiles that the backend conforms to.",
                record(**_PROFILE, cases=integer("The number of must-pass cases."), digest=_DIGEST),
            ),
            environment=_ENVIRONMENT,
            files=mapping(
                "Every other file of the submission.",
                record(size=integer("Its size in bytes."), sha256=_DIGEST),
            ),
        ),
    ),
    "conformance-export": document(
        "index.json in a folder of lite-conformance export",
        record(
            rule=text("When an output passes, in words."),
            versions=mapping("The packages that the folder was made with.", {"type": "string"}),
            suite=mapping("Digests of references, tolerances and cases.", {"type": "string"}),
            settings={**_OPEN, "description": "What the inputs depend on: seed, examples, precision, models."},
            selection={**_OPEN, "description": "The options that selected the cases."},
            left_out=mapping("The cases that are not in the folder, by reason.", texts("Cases.")),
            cases=items(
                "The cases.",
                record(
                    case=text("The case."),
                    level=integer("Its level, 0 to 5."),
                    suite=text("The part of the suite that it belongs to."),
                    op=text("The operator; empty if there is none."),
                    dtype=text("The element type under test; empty if there is none."),
                    models=items(
                        "Its models: one, or one for each drawn example.",
                        record(
                            folder=text("The folder of the model."),
                            data_sets=items(
                                "The outputs of each data set.", items("The outputs, in their order.", named("output"))
                            ),
                        ),
                    ),
                ),
            ),
        ),
        output=record(
            name=text("The output."),
            dtype=text("Its element type."),
            rtol=number("The tolerance relative to each expected element."),
            atol=number("The tolerance relative to the magnitude."),
            magnitude={"type": ["number", "string"], "description": "One number, or the file with one per element."},
            every_bit=maybe(flag("True if signs of zero and subnormal numbers count.")),
            or_zero=maybe(flag("True if a subnormal number may be zero.")),
            unspecified=maybe(text("The file that tells which elements are not compared.")),
        ),
    ),
}
