"""Schema of the command that answers requests: serve."""

from __future__ import annotations

from json_schemas.parts import Schema, choice, document, flag, integer, items, mapping, record, text, texts

__all__ = ["SCHEMAS"]

_TENSOR = record(
    name=text("The input or output."),
    datatype=text("Its element type, as the protocol calls it: FP32."),
    shape=items("Its dimensions; -1 for those that requests choose.", {"type": "integer", "minimum": -1}),
)
_MODEL = record(
    name=text("The model."),
    version=text("The version."),
    state=choice("Whether it answers requests.", "READY", "UNAVAILABLE"),
    reason=text("Why it does not; empty if it does."),
    inputs=items("Its inputs; empty if it is not loaded.", _TENSOR),
    outputs=items("Its outputs; empty if it is not loaded.", _TENSOR),
    properties=mapping("Other facts, such as its devices, and how requests are batched.", {"type": "string"}),
)

SCHEMAS: dict[str, Schema] = {
    "serve": document(
        "`lite serve --json`: where the server answers, printed when it does",
        record(
            model=text("The file or folder as it was typed."),
            pid=integer("The process.", 1),
            http=text("The address of HTTP, with its port; empty for none."),
            grpc=text("The address of gRPC, with its port; empty for none."),
            tls=flag("True if both need TLS."),
            tokens=integer("The number of tokens that are accepted; 0 if requests need none."),
            control=flag("True if clients may load and unload models."),
            models=items("Every version of every model.", _MODEL),
            notes=texts(
                "What a user should know: what is not served, what a file may not run, how requests are batched."
            ),
            next=text("A request to type next; empty if there is none."),
        ),
    )
}
