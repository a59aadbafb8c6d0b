"""Schemas of the commands that write models: convert and opt."""

from __future__ import annotations

from json_schemas.looking import CHECKED_TARGETS
from json_schemas.parts import (
    SIZES,
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
    one_of,
    or_null,
    record,
    text,
    texts,
)

__all__ = ["SCHEMAS"]

_COUNTS = {"type": "integer", "minimum": 0}
_GRAPH = record(
    "A graph.",
    nodes=integer("The number of nodes."),
    operators=mapping("The number of nodes of each operator, most frequent first.", _COUNTS),
    weight_bytes=integer("The size of all constants."),
)
_TARGET = record(
    name=text("The backend."),
    level=text("The level of processor that the code is for; empty if the backend has none."),
    plugin=text("The backend's package, with its version."),
    absent=text("Why this machine has no device of it; empty if it has one."),
    nodes=mapping("The number of nodes that each backend runs; empty if no device could be asked.", _COUNTS),
    refusals=items(
        "The nodes that the target refuses.",
        record(
            node=text("The node."),
            op=text("Its operator."),
            origin=text("Its origin in the model that was read; empty if not known."),
            reason=text("Why it was refused."),
        ),
    ),
    plans=items("The input shapes of each prepared plan, by input.", mapping("Input to shape.", SIZES)),
    threads=items("The numbers of threads that plans are prepared for.", {"type": "integer", "minimum": 1}),
    saved_bytes=integer("The size of compiled code and packed weights."),
    notes=texts("Limitations, and what to do."),
)
_WEIGHT = record(
    name=text("The constant."),
    op=text("The operators that use it, separated by commas."),
    shape=SIZES,
    dtype=text("Its element type before."),
    bytes_before=integer("Its size before."),
    bytes_after=integer("Its size in the file, with scales."),
    max_error=number("The largest difference of an element."),
    relative_rms_error=number("The root mean square of the differences, divided by that of the elements."),
    kept=text("Why it was not changed; empty if it was."),
    stored_as=text("The type of its elements in the file."),
)
_ACCURACY = record(
    name=text("The output."),
    max_difference=number("The largest difference, as a share of the output's range in its sample.", finite=False),
    snr_db=number("The signal-to-noise ratio, in decibels; inf for equal outputs.", None, finite=False),
    top1_agreement=or_null(number("The share of rows with the same top class, 0 to 1; null for other outputs.")),
)
_DECIBELS: Schema = number("decibels", None, finite=False)
_LAYER = record(
    name=text("The node."),
    op=text("Its operator."),
    origin=text("Operator and name of the node in the model that was read."),
    weights={**SIZES, "description": "The shape of its weights; empty if they are no constant."},
    kept=text("Why it stays in float32; empty if it is quantized."),
    snr_db=or_null({**_DECIBELS, "description": "The signal-to-noise ratio of its result, in decibels."}),
    alone_db=or_null({**_DECIBELS, "description": "That of the noisiest output if only this layer is quantized."}),
    without_db=or_null({**_DECIBELS, "description": "That of the noisiest output if it were quantized, too."}),
    bytes_before=integer("The size of its weights in float32."),
    bytes_after=integer("The size of its weights in the file, with scales."),
)
_QUANTIZATION = record(
    "Layers that compute with 8-bit integers.",
    method=choice("How ranges were chosen.", "minmax", "percentile", "entropy"),
    percentile=number("The share of elements inside the ranges, in percent, for the method percentile."),
    samples=integer("The number of samples for calibration."),
    measured=integer("The number of these that the noise was measured on."),
    min_snr={**_DECIBELS, "description": "The least signal-to-noise ratio of an output, in decibels."},
    layers=items("The layers, in the order of the graph.", _LAYER),
    outputs=items("The accuracy of each output.", named("accuracy")),
    notes=texts("Notes about the quantization."),
)
_CHECK = record(
    target=text("The target that ran the file, or references."),
    threads=or_null(integer("The number of threads; null for the references.", 1)),
    shapes=mapping("The shape of each input.", SIZES),
    data=text("The source of the inputs."),
    differences=mapping(
        "The largest difference of each output, as a share of its range.",
        number("The difference.", finite=False),
    ),
    limit=number("The largest allowed difference."),
    problem=text("Why it could not run; empty if it ran."),
    prepared=or_null(flag("True if it used the prepared plan; null if there is none for these shapes.")),
    unused=text("Why the prepared plan was not used."),
    agrees=flag("True if it ran, and the differences are within the limit."),
)
_DEFINITIONS: dict[str, Schema] = {
    "graph": _GRAPH,
    "target": _TARGET,
    "weight": _WEIGHT,
    "accuracy": _ACCURACY,
    "quantization": _QUANTIZATION,
    "check": _CHECK,
}
_TO_LITE: dict[str, Schema] = {
    "model": text("The model as it was given."),
    "output": text("The file that was written."),
    "size": integer("Its size in bytes."),
    "split": mapping("The size in bytes of each part of the file.", _COUNTS),
    "precision": {"type": ["string", "object"], "description": "The type, or types by node, to compute in."},
    "stored_as": text("The type that weights are stored in."),
    "before": {**named("graph"), "description": "The graph as it was read."},
    "after": {**named("graph"), "description": "The graph in the file."},
    "passes": texts("The passes that changed the graph, in the order of their first changes."),
    "targets": items("The targets, in the order in which they were asked for.", named("target")),
    "weights": items("The weights that were considered for storage in fewer bits.", named("weight")),
    "accuracy": items("The accuracy of each output with weights in fewer bits.", named("accuracy")),
    "quantization": or_null(named("quantization")),
    "checks": items("The runs that verified the file; empty if it was not verified.", named("check")),
    "notes": texts("Notes about the conversion."),
    "agrees": flag("True if all checks agree."),
    "warnings": texts("Prepared plans that sessions on this machine do not use, and why."),
}

_CONVERT = document(
    "lite convert --json: what was written, and how it was verified",
    record("A .lite file.", **_TO_LITE),
    record(
        "A file of another format.",
        model=text("The model as it was given."),
        output=text("The file or folder that was written."),
        format=text("Its format."),
        nodes=integer("The number of nodes."),
        size=integer("Its size in bytes."),
        quantization=maybe(named("quantization")),
    ),
    **_DEFINITIONS,
)

_FILE: dict[str, Schema] = {
    "model": text("The model as it was given."),
    "output": text("The file or folder that was written."),
    "size": integer("Its size in bytes."),
    "before": integer("The number of operators before."),
    "after": mapping("The number of each of Paddle's operators after.", _COUNTS),
    "kernels": mapping("The number of kernels for each kind of processor.", _COUNTS),
}
_IN_LITE = mapping(
    "Where Lite runs it, for each backend.",
    choice("A kernel of the backend, the reference, not at all, or not known.", "native", "host", "no", "-"),
)
_NAMES = texts("The values of --valid_targets.")
_OPT = document(
    "lite opt --json: what was written, or the lists that were asked for",
    record("A file for Paddle-Lite, or a Paddle program.", **_FILE),
    record("With --optimize_out_type lite.", **_TO_LITE),
    record(
        "With --model_set.",
        models=items(
            "The models that were converted.",
            one_of(record("A file for Paddle-Lite.", **_FILE), record("A .lite file.", **_TO_LITE)),
        ),
        failures=texts("The models that were not, with the reasons."),
    ),
    record(
        "With --print_all_ops or --print_supported_ops.",
        targets=_NAMES,
        operators=items(
            "The operators of Paddle-Lite.",
            record(
                name=text("The operator."),
                paddle_lite=text("The processors that Paddle-Lite has kernels for, or no."),
                lite=_IN_LITE,
            ),
        ),
    ),
    record(
        "With --display_kernels.",
        targets=_NAMES,
        operators={**texts("The operators that Paddle-Lite has on the targets."), "minItems": 1},
    ),
    record(
        "With --print_model_ops: can Paddle-Lite run the model?",
        model=text("The model as it was given."),
        ok=flag("True if Paddle-Lite can run it on the targets."),
        targets=_NAMES,
        operators=items(
            "The operators of the model.",
            record(
                name=text("The operator."),
                number=integer("How often the model has it."),
                paddle_lite=text("yes, or what keeps it from a file for Paddle-Lite."),
                lite=_IN_LITE,
            ),
        ),
    ),
    record(
        "With --print_model_ops and --optimize_out_type lite: can Lite run the model?",
        **CHECKED_TARGETS,
    ),
    record(
        "With --visualization_file_output_path.",
        model=text("The model that was drawn."),
        picture=text("The file that was written."),
        nodes=integer("The number of nodes."),
    ),
    record(
        "With --version.",
        program=text("The command."),
        version=text("Its version."),
    ),
    **_DEFINITIONS,
)

SCHEMAS = {"convert": _CONVERT, "opt": _OPT}
