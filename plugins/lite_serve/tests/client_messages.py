"""Prints the messages and methods of a client's gRPC service as JSON, and sends requests to Lite's classes and back.

Usage: python client_messages.py tritonclient|kserve

It runs in the environment of the clients, one process for each of them: their messages have the same names.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# Before the client, whose messages have the same names: the two must not meet.
from lite_serve.protocol import grpc_messages

if sys.argv[1] == "tritonclient":
    from tritonclient.grpc import service_pb2 as client
else:
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as client


def fields_of(descriptor: Any) -> list[list[Any]]:
    """Return number, name, type, label, message and oneof of each field."""
    return [
        [
            field.number,
            field.name,
            field.type,
            # Older versions of protobuf do not have is_repeated, newer ones warn of label.
            field.is_repeated if hasattr(field, "is_repeated") else field.label == 3,
            field.message_type.full_name if field.message_type else None,
            field.containing_oneof.name if field.containing_oneof else None,
        ]
        for field in sorted(descriptor.fields, key=lambda field: field.number)
    ]


def messages_of(descriptors: Any) -> dict[str, list[list[Any]]]:
    """Return the fields of each message, and of those within it."""
    found: dict[str, list[list[Any]]] = {}
    for descriptor in descriptors:
        found[descriptor.full_name] = fields_of(descriptor)
        found |= messages_of(descriptor.nested_types)
    return found


def described(file: Any) -> dict[str, Any]:
    """Return the messages of a file, and its methods with the types of their requests and responses."""
    (service,) = file.services_by_name.values()
    return {
        "service": service.full_name,
        "messages": messages_of(file.message_types_by_name.values()),
        "methods": {m.name: [m.input_type.full_name, m.output_type.full_name] for m in service.methods},
    }


def main() -> None:
    """Print both sides."""
    sent = client.ModelInferRequest(model_name="model", id="é", raw_input_contents=[b"\x01"])
    sent.inputs.add(name="x", datatype="BOOL", shape=[1])
    sent.parameters["p"].int64_param = -1
    received = grpc_messages.METHODS["ModelInfer"].parse(sent.SerializeToString())
    assert client.ModelInferRequest.FromString(received.SerializeToString()) == sent
    ours = grpc_messages.message_class("ModelInferRequest").DESCRIPTOR.file
    print(json.dumps({"client": described(client.DESCRIPTOR), "lite": described(ours)}))


main()
