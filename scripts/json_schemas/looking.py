"""Schemas of the commands that look at models and operators: inspect, check, ops."""

from __future__ import annotations

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
    or_null,
    record,
    text,
    texts,
)

__all__ = ["CHECKED_TARGETS", "SCHEMAS"]

_VALUE: dict[str, Schema] = {
    "name": text("The name of the value."),
    "dtype": text("Its element type."),
    "shape": or_null(
        items(
            "Its sizes: an integer, or text for a size that is not known before the inputs; null if not even their "
            "number is known.",
            {"type": ["integer", "string"]},
        )
    ),
}
_NODE = record(
    name=text("The node's name."),
    op=text("Its operator."),
    domain=text("The operator's domain; empty for ONNX's own."),
    inputs=items("The values it reads; null for an optional one that is left out.", {"type": ["string", "null"]}),
    outputs=items("The values it computes; null for one that nobody reads.", or_null(named("value"))),
    attributes={
        "type": "object",
        "description": "Its attributes: numbers, texts, lists of these; a graph as an object like this one; of a "
        "tensor only dtype and shape.",
    },
    origin=or_null(
        record(
            "Where it comes from in the model that was read.",
            op=text("The operator there."),
            name=text("The name there."),
        )
    ),
)
_GRAPH: dict[str, Schema] = {
    "name": text("The graph's name."),
    "metadata": mapping("What the file says about itself.", {"type": "string"}),
    "inputs": items("The inputs.", named("value")),
    "outputs": items("The outputs.", named("value")),
    "constants": items("The weights and other constants, without their elements.", named("constant")),
    "nodes": items("The nodes, in an order in which they can run.", named("node")),
    "op_counts": mapping(
        "The number of nodes of each operator, most frequent first.", {"type": "integer", "minimum": 1}
    ),
    "parameters": integer("The number of elements of all constants."),
}
_BYTES_OR_NULL = or_null(integer("A size in bytes; null if not known."))
_ARENA: dict[str, Schema] = {
    "size": integer("The size of the memory in bytes."),
    "lower_bound": {**_BYTES_OR_NULL, "description": "The least size that any plan could have; null if not known."},
    "without_reuse": {**_BYTES_OR_NULL, "description": "The size if no memory were reused; null if not known."},
}
_MEMORY: dict[str, Schema] = {
    "model": text("The model as it was given."),
    "inputs": mapping("The shape of each input.", SIZES),
    "computes": texts("The element types that each partition computes in."),
    "arenas": items("The memory of each memory space.", record(space=text("The memory space."), **_ARENA)),
    "partitions": items(
        "The memory of each partition.",
        record(
            name=text("The partition."),
            backend=text("The device that runs it."),
            nodes=integer("The number of its nodes."),
            arena=or_null(record("The memory inside it; null if not known.", **_ARENA)),
            scratch=integer("The scratch memory of its kernels, in bytes."),
            constants=integer("The size of its weights in the model, in bytes."),
            weights={**_BYTES_OR_NULL, "description": "The size of its packed weights; null if not known."},
        ),
    ),
}
_PLAN = record(
    shapes=mapping("The shape of each input.", SIZES),
    threads=integer("The number of threads.", 1),
    partitions=items(
        "Name, backend and number of nodes of each partition.",
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}, {"type": "integer"}], "items": False},
    ),
)
_SECTIONS: dict[str, Schema] = {
    "file": text("The .lite file."),
    "format": integer("The version of its format.", 1),
    "written_by": text("The package that wrote it, with its version."),
    "optimized": flag("True if graph passes ran before it was written."),
    "metadata": mapping("What else the file says.", {"type": "string"}),
    "targets": items(
        "What it is prepared for.",
        record(
            backend=text("The backend."),
            level=text("The level of processor; empty if there is none."),
            plugin=text("The package that prepared it, with its version."),
            precision={"type": ["string", "object"], "description": "The type, or types by node, to compute in."},
            exact=flag("True if algorithms that trade accuracy for speed are forbidden."),
            nodes=mapping("The number of nodes on each device.", {"type": "integer", "minimum": 1}),
            plans=items("The prepared plans.", _PLAN),
        ),
    ),
    "sections": items(
        "Its sections.",
        record(
            name=text("The section."),
            offset=integer("Where it begins, in bytes."),
            bytes=integer("Its size."),
            whole=flag("True if its checksum is right."),
            plans=texts("The plans that use it, as BACKEND/NUMBER."),
        ),
    ),
}

_INSPECT = document(
    "lite inspect --json: the graph, the memory or the sections of a model",
    record("The graph; also with --ops, --weights, --optimized and --origins.", **_GRAPH),
    record("With --memory alone.", **_MEMORY),
    record("With --sections alone.", **_SECTIONS),
    {
        **record(
            "With several of these options.",
            graph=maybe(record("The graph.", **_GRAPH)),
            memory=maybe(record("The memory of a run.", **_MEMORY)),
            sections=maybe(record("The sections of the file.", **_SECTIONS)),
        ),
        "minProperties": 3,
    },
    record(
        "With --html or --svg.",
        model=text("The model as it was given."),
        html=or_null(text("The page that was written.")),
        svg=or_null(text("The SVG file that was written.")),
        nodes=integer("The number of nodes that were drawn."),
    ),
    record(
        "With --print-nodes.",
        model=text("The model as it was given."),
        written=text("The .lite file that was written."),
        taps=texts("The names and patterns whose values it prints."),
    ),
    value=record(**_VALUE),
    constant=record(**_VALUE, bytes=integer("Its size.")),
    node=_NODE,
)

_TARGET = record(
    target=text("The backend."),
    plugin=text("Its package, with its version."),
    device=text("The device that was asked, and whether this machine has it."),
    supported={
        "anyOf": [{"type": "integer", "minimum": 0}, {"const": "not asked"}],
        "description": "The number of nodes that it can run.",
    },
    nodes=integer("The number of all nodes."),
)
_REFUSAL = record(
    op=text("The operator."),
    target=text("The target."),
    reason=text("Why it refuses."),
    nodes=integer("The number of nodes.", 1),
    remedy=text("What to do."),
)
CHECKED_TARGETS: dict[str, Schema] = {
    "model": text("The model as it was given."),
    "ok": flag("True if no target refuses a node, and none is missing."),
    "targets": items("The targets.", _TARGET),
    "refusals": items("The nodes that targets refuse.", _REFUSAL),
    "missing": texts("The targets that no installed plugin has."),
    "next": text("The command to type next; empty if all is well."),
}
_CHECK = document(
    "lite check --json: whether a model can run, and where",
    record(
        "It can run.",
        model=text("The model as it was given."),
        ok={"const": True, "description": "The model can run."},
        inputs=mapping("The element type and shape of each input.", {"type": "string"}),
        outputs=mapping("The element type and shape of each output.", {"type": "string"}),
        coverage=items(
            "Which operators run where.",
            record(
                device=text("The device."),
                op=text("The operator."),
                nodes=integer("The number of nodes.", 1),
            ),
        ),
        refusals=items(
            "Nodes that a preferred device refused.",
            record(
                op=text("The operator."),
                device=text("The device that refused."),
                reason=text("Why it refused."),
                nodes=integer("The number of nodes.", 1),
                remedy=text("What to do, or why nothing is to be done."),
            ),
        ),
        notes=texts("Notes about the model and the devices."),
    ),
    record(
        "It cannot run.",
        model=text("The model as it was given."),
        ok={"const": False, "description": "The model cannot run."},
        problems=items(
            "What keeps it from running.",
            record(
                op=text("The operator, as the model calls it."),
                reason=text("What is wrong."),
                remedy=text("What to do."),
                nodes=texts("The nodes."),
            ),
        ),
        next=text("The command to type next."),
    ),
    record("With --targets.", **CHECKED_TARGETS),
)

_ATTRIBUTE = record(
    kind=text("Its type, such as int, ints, float, str or graph."),
    default={"description": "The value that is used if it is left out; null if there is none."},
    required=flag("True if it must be given."),
    choices=items("The values that it may have; empty if there is no list.", {}),
)
_OPERATOR = record(
    name=text("The operator."),
    domain=text("Its domain; empty for ONNX's own."),
    signature=text("Its inputs and outputs with their types; ? marks optional ones, * any number."),
    types=mapping("The element types that each type of the signature stands for.", texts("Element types.")),
    attributes=mapping("Its attributes.", _ATTRIBUTE),
    documentation=text("What it computes."),
    package=maybe(text("The package that brings it, with its version.")),
)
_OPS = document(
    "lite ops --json: operators",
    record(
        "Lite's operators, or the one that was named.",
        opset=integer("The version of ONNX's opset that they follow.", 1),
        operators=items("The operators.", _OPERATOR),
    ),
    record(
        "With --backend: the element types in which a backend runs operators.",
        backend=text("The backend."),
        plugin=text("Its package, with its version."),
        device=text("The device that was asked."),
        absent=text("Why this machine has no such device; empty if it has one."),
        types=texts("The element types that were asked about."),
        operators=items(
            "The operators.",
            record(
                operator=text("The operator, with its domain unless that is ONNX's own."),
                runs_in=texts("The element types in which the backend runs it."),
                refused=mapping("The other element types, each with the reason.", {"type": "string"}),
            ),
        ),
    ),
    record(
        "The operators of another format, such as with --paddle.",
        format=text("The format."),
        operators=items(
            "The operators.",
            record(
                name=text("The operator, as the format calls it."),
                backends=mapping(
                    "Where each backend runs it.",
                    choice("A kernel of its own, the reference, or not at all.", "native", "host", "no"),
                ),
                operators=texts("Lite's operators that it becomes."),
                to_host=mapping(
                    "For each backend the operators that it leaves to the reference, with the reasons.",
                    mapping("Operator to reason.", {"type": "string"}),
                ),
                reason=text("Why it cannot be read; empty if it can."),
                inputs=text("Its inputs; ? marks optional ones."),
                outputs=text("Its outputs."),
                attributes=text("Its attributes with their types."),
            ),
        ),
    ),
)

SCHEMAS = {"inspect": _INSPECT, "check": _CHECK, "ops": _OPS}
