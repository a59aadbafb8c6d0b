"""Schemas of the commands that find differences: compare and bisect."""

from __future__ import annotations

from json_schemas.parts import (
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

_INPUT = record(
    name=text("The input."),
    type=text("Its element type and shape."),
    source=text("A file, or random numbers."),
)
_ERRORS = record(
    "The difference of an array b from an array a.",
    max_abs=number("The greatest absolute difference of finite elements.", finite=False),
    mean_abs=number("The mean absolute difference of finite elements.", finite=False),
    max_rel=or_null(
        number("The greatest difference relative to |a|, or to 0.001 of a's root mean square.", finite=False)
    ),
    max_ulp=or_null(integer("The most floating-point numbers between two elements; null for other types.")),
    cosine=or_null(number("The cosine similarity of the finite elements; null if there is none.", None)),
    relative=or_null(number("max_abs as a share of the largest finite |a|; null if that is 0.", finite=False)),
    nan_a=integer("The elements of a that are NaN."),
    nan_b=integer("The elements of b that are NaN."),
    inf_a=integer("The elements of a that are infinite."),
    inf_b=integer("The elements of b that are infinite."),
    different=integer("The elements that are not equal; NaN equals NaN."),
    misplaced=integer("The elements that are NaN or infinite in one array and something else in the other."),
    elements=integer("The number of elements."),
    at=items("The index of the greatest difference, or of the first misplaced element.", {"type": "integer"}),
    value_a=number("The element of a there.", None, finite=False),
    value_b=number("The element of b there.", None, finite=False),
)
_ROW = record(
    index=integer("Its number in the list."),
    value=text("The result that was compared."),
    occurrence=integer("0, or the pass through a loop in which it was computed."),
    type=text("Its element type and shape."),
    nodes=texts("The nodes of the step that computes it."),
    op=text("Their operators, joined by +."),
    inputs=texts("What the step reads."),
    origin=text("Operators and names in the model that was read."),
    attributes=mapping("The attributes of the last node, as text.", {"type": "string"}),
    kernel_a=text("The kernel of side a."),
    kernel_b=text("The kernel of side b."),
    device_a=text("The device of side a."),
    device_b=text("The device of side b."),
    local=or_null(named("errors")),
    accumulated=or_null(named("errors")),
    noise=or_null(
        record(
            "The greatest absolute errors against float64; null if the step was not compared with it.",
            floor=number("The error that rounding explains.", finite=False),
            a=number("The error of side a.", finite=False),
            b=number("The error of side b.", finite=False),
        )
    ),
    status=choice("What the difference is.", "equal", "rounding", "suspect", "diverges", "not compared"),
    reason=text("Why it has this status; empty if that is plain."),
    histogram=or_null(
        record(
            "The absolute differences that are not zero, for steps in doubt.",
            edges=items("Powers of ten, from smallest to largest.", {"type": "number"}),
            counts=items("The differences between two edges.", {"type": "integer", "minimum": 0}),
        )
    ),
    picture=or_null(
        record(
            "The absolute differences over the last two dimensions, for steps in doubt.",
            width=integer("The width, in pixels."),
            height=integer("The height, in pixels."),
            scale=number("The difference that 255 stands for."),
            pixels=text("A byte for each pixel, row by row, in base64."),
        )
    ),
)
_COMPARED_SIDE = record(
    label=text("The backends that were asked for."),
    devices=texts("The devices that run nodes."),
    options=record(
        "Its options.",
        threads=or_null(integer("The number of CPU threads.", 1)),
        precision={"type": ["string", "object"], "description": "The type, or types by node, that may be computed in."},
        passes=flag("True if graph passes ran."),
    ),
    computed_in=text("The narrowest element type that it computed in."),
    can_be_observed=flag("True if it shows results inside its partitions."),
    file=text("The model that it ran."),
)

_COMPARE = document(
    "lite compare --json: the first step at which two sides differ",
    record(
        "A comparison.",
        model=text("The model as it was given."),
        inputs=items("The inputs.", _INPUT),
        a={**_COMPARED_SIDE, "description": "The side that is trusted."},
        b={**_COMPARED_SIDE, "description": "The side in doubt."},
        verdict=choice("What was found.", "agree", "differ", "not deterministic", "cannot be compared"),
        summary=text("The same in sentences."),
        first=or_null(integer("The index of the first row that diverges; null if none does.")),
        culprit=texts("The nodes that are wrong; empty if none is."),
        rows=items("The compared results, in the order in which they are computed.", named("row")),
        not_compared=items(
            "Results of side b that side a does not show.",
            record(
                value=text("The result."),
                nodes=texts("The nodes of its step."),
                reason=text("Why it was not compared."),
            ),
        ),
        outputs=items("The errors of the model's outputs.", record(name=text("The output."), errors=named("errors"))),
        inside=or_null(items("The step that diverges, node by node.", named("row"))),
        runs=record(
            "Repeated runs of side b.",
            count=integer("The number of runs.", 1),
            changing=texts("The results that change from run to run."),
        ),
        repro=or_null(
            record(
                "What repeats the fault.",
                script=text("A Python script."),
                arrays=text("The file of arrays that it reads."),
            )
        ),
        notes=texts("Notes about the comparison."),
        settings=record(
            "The settings.",
            seed=integer("The seed of random inputs."),
            runs=integer("The runs that were asked for.", 1),
            reference=flag("True if steps in doubt were compared with float64."),
        ),
        environment=record(
            "The machine and the software.",
            machine=text("The kind of processor, such as x86_64."),
            python=text("The version of Python."),
            lite=text("The version of Lite."),
        ),
    ),
    record(
        "With --save: the results of side a, for another machine.",
        model=text("The model as it was given."),
        side=text("The backends of side a."),
        results=integer("The number of results that were written."),
        written=text("The file."),
        next=text("The command for the other machine."),
    ),
    errors=_ERRORS,
    row=_ROW,
)

_VERDICTS = ("good", "wrong", "fails", "skipped")
_JUDGEMENT = record(
    "Whether outputs are wrong.",
    verdict=choice("The judgement; fails: the run raised an error; skipped: it cannot be told.", *_VERDICTS),
    reason=text("Why."),
)
_BISECTED_SIDE = record(
    label=text("The backends that were asked for."),
    devices=texts("The devices that run nodes."),
    options=record(
        "Its options.",
        threads=or_null(integer("The number of CPU threads.", 1)),
        precision={"type": ["string", "object"], "description": "The type, or types by node, that may be computed in."},
        passes=maybe(flag("False if no graph passes ran.")),
    ),
)
_BISECT = document(
    "lite bisect --json: what makes the outputs wrong",
    record(
        model=text("The model as it was given."),
        inputs=items("The inputs.", _INPUT),
        a={**_BISECTED_SIDE, "description": "The side that is trusted."},
        b={**_BISECTED_SIDE, "description": "The side in doubt."},
        by=choice("What was searched for.", "node", "backend", "precision", "threads", "pass"),
        verdict=choice("What was found.", "found", "nothing found", "not deterministic"),
        criterion=text("When outputs are wrong."),
        units=integer("The nodes, devices or changes by passes that the culprits were searched among."),
        whole={**_JUDGEMENT, "description": "The judgement on the whole of side b."},
        culprits=items(
            "The culprits, in the order of the graph.",
            record(
                name=text("The node, device or pass."),
                op=text("The operator of a node."),
                origin=text("Operator and name of a node in the model that was read."),
                device_a=text("The device that runs it on side a."),
                device_b=text("The device that runs it on side b."),
                kernel=text("The kernels that compute it on side b, if known."),
                details=texts("The nodes of a device, or those that a pass changed."),
            ),
        ),
        alone=or_null({**_JUDGEMENT, "description": "If only the culprits run as on b; by precision, all others."}),
        others=or_null({**_JUDGEMENT, "description": "If all others do: there is another fault if it is not good."}),
        precision=or_null(mapping("By precision: the argument precision= that cures it, by node.", {"type": "string"})),
        verified=or_null({**_JUDGEMENT, "description": "A session with that precision."}),
        runs=integer("The configurations that ran."),
        reused=integer("The judgements that were known from a search that was interrupted."),
        notes=texts("Notes about the search."),
        workaround=texts("What to do until it is cured."),
        next=text("The command to type next."),
    ),
)

SCHEMAS = {"compare": _COMPARE, "bisect": _BISECT}
