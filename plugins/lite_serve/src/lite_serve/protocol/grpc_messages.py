"""The messages and methods of the gRPC service, for the protobuf runtime, built from a table.

Source of names and numbers: open_inference_grpc.proto of the Open Inference Protocol, and for the repository
grpc_service.proto of Triton and grpc_predict_v2.proto of KServe. All are proto3. Their requests to load a model differ:
the first field is the name of a repository for Triton, and that of the model for KServe. Triton's answers have no
fields, KServe's have two, which clients of Triton skip.

The messages live in a descriptor pool of their own: a client library in the same process (tritonclient.grpc, kserve)
registers messages of the same names in the default pool, and two definitions in one pool are an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from lite_serve.protocol.errors import InvalidRequestError

__all__ = ["METHODS", "SERVICE", "Method", "message_class"]

#: The full name of the service.
SERVICE = "inference.GRPCInferenceService"

_PACKAGE = "inference"

# Message: fields as "number name type"; "*" marks repeated fields, "map" those from strings to messages,
# "|" the members of the oneof `parameter_choice`.
_MESSAGES = """
ServerLiveRequest:
ServerLiveResponse: 1 live bool
ServerReadyRequest:
ServerReadyResponse: 1 ready bool
ModelReadyRequest: 1 name string, 2 version string
ModelReadyResponse: 1 ready bool
ServerMetadataRequest:
ServerMetadataResponse: 1 name string, 2 version string, 3 extensions string*
ModelMetadataRequest: 1 name string, 2 version string
ModelMetadataResponse.TensorMetadata: 1 name string, 2 datatype string, 3 shape int64*
ModelMetadataResponse: 1 name string, 2 versions string*, 3 platform string
ModelMetadataResponse: 4 inputs ModelMetadataResponse.TensorMetadata*, 5 outputs ModelMetadataResponse.TensorMetadata*
InferParameter: 1 bool_param bool|, 2 int64_param int64|, 3 string_param string|
InferParameter: 4 double_param double|, 5 uint64_param uint64|
InferTensorContents: 1 bool_contents bool*, 2 int_contents int32*, 3 int64_contents int64*, 4 uint_contents uint32*
InferTensorContents: 5 uint64_contents uint64*, 6 fp32_contents float*, 7 fp64_contents double*
InferTensorContents: 8 bytes_contents bytes*
ModelInferRequest.InferInputTensor: 1 name string, 2 datatype string, 3 shape int64*
ModelInferRequest.InferInputTensor: 4 parameters map<InferParameter>, 5 contents InferTensorContents
ModelInferRequest.InferRequestedOutputTensor: 1 name string, 2 parameters map<InferParameter>
ModelInferRequest: 1 model_name string, 2 model_version string, 3 id string, 4 parameters map<InferParameter>
ModelInferRequest: 5 inputs ModelInferRequest.InferInputTensor*
ModelInferRequest: 6 outputs ModelInferRequest.InferRequestedOutputTensor*, 7 raw_input_contents bytes*
ModelInferResponse.InferOutputTensor: 1 name string, 2 datatype string, 3 shape int64*
ModelInferResponse.InferOutputTensor: 4 parameters map<InferParameter>, 5 contents InferTensorContents
ModelInferResponse: 1 model_name string, 2 model_version string, 3 id string, 4 parameters map<InferParameter>
ModelInferResponse: 5 outputs ModelInferResponse.InferOutputTensor*, 6 raw_output_contents bytes*
ModelRepositoryParameter: 1 bool_param bool|, 2 int64_param int64|, 3 string_param string|, 4 bytes_param bytes|
RepositoryIndexRequest: 1 repository_name string, 2 ready bool
RepositoryIndexResponse.ModelIndex: 1 name string, 2 version string, 3 state string, 4 reason string
RepositoryIndexResponse: 1 models RepositoryIndexResponse.ModelIndex*
RepositoryModelLoadRequest: 1 repository_name string, 2 model_name string, 3 parameters map<ModelRepositoryParameter>
RepositoryModelLoadResponse: 1 model_name string, 2 isLoaded bool
RepositoryModelUnloadRequest: 1 repository_name string, 2 model_name string, 3 parameters map<ModelRepositoryParameter>
RepositoryModelUnloadResponse: 1 model_name string, 2 isUnloaded bool
"""

_METHOD_NAMES = """
ServerLive ServerReady ModelReady ServerMetadata ModelMetadata ModelInfer
RepositoryIndex RepositoryModelLoad RepositoryModelUnload
"""

_Kinds = descriptor_pb2.FieldDescriptorProto


def _add_field(message: Any, full_name: str, text: str) -> None:
    number, name, kind = text.split()
    field = message.field.add(name=name, number=int(number), label=_Kinds.LABEL_OPTIONAL)
    if kind.endswith("*"):
        field.label = _Kinds.LABEL_REPEATED
    elif kind.endswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="parameter_choice")
        field.oneof_index = 0
    elif kind.startswith("map<"):
        # A map is a repeated field of entries, whose type is nested in the message.
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _add_field(entry, f"{full_name}.{entry.name}", "1 key string")
        _add_field(entry, f"{full_name}.{entry.name}", f"2 value {kind[4:-1]}")
        field.label = _Kinds.LABEL_REPEATED
        kind = f"{full_name}.{entry.name}"
    kind = kind.rstrip("*|")
    if kind[0].isupper():
        field.type, field.type_name = _Kinds.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(_Kinds, f"TYPE_{kind.upper()}")


def _build_messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="lite_serve/inference.proto", package=_PACKAGE, syntax="proto3")
    messages: dict[str, Any] = {}

    def declare(name: str) -> Any:
        if name not in messages:
            outer, _, inner = name.rpartition(".")
            messages[name] = declare(outer).nested_type.add(name=inner) if outer else file.message_type.add(name=name)
        return messages[name]

    for line in _MESSAGES.strip().splitlines():
        name, _, fields = line.partition(":")
        for text in filter(None, fields.strip().split(", ")):
            _add_field(declare(name), name, text)
        declare(name)
    service = file.service.add(name=SERVICE.partition(".")[2])
    for name in _METHOD_NAMES.split():
        types = (f".{_PACKAGE}.{name}Request", f".{_PACKAGE}.{name}Response")
        service.method.add(name=name, input_type=types[0], output_type=types[1])
    pool = descriptor_pool.DescriptorPool()  # not the default one: see above
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in messages
    }


_CLASSES = _build_messages()


def message_class(name: str) -> Any:
    """Return the protobuf class of one message of the table: ``ModelInferRequest``."""
    return _CLASSES[name]


class Method(NamedTuple):
    """A method of the service, from one request to one response.

    Attributes:
        name: its name: ``ModelInfer``.
        request: the class of its requests.
        response: the class of its responses.
    """

    name: str
    request: Any
    response: Any

    @property
    def path(self) -> str:
        """The name of the method as gRPC sends it."""
        return f"/{SERVICE}/{self.name}"

    def parse(self, data: bytes) -> Any:
        """Return the request that some bytes hold.

        A server should call this instead of having gRPC do it, which answers INTERNAL if it fails.

        Raises:
            InvalidRequestError: the bytes are not such a message.
        """
        try:
            return self.request.FromString(data)
        except (DecodeError, UnicodeDecodeError) as error:
            name = self.request.DESCRIPTOR.full_name
            raise InvalidRequestError(f"{len(data)} bytes are not a message {name}: {error}") from error


#: The methods of the service, by name.
METHODS: dict[str, Method] = {
    name: Method(name, _CLASSES[f"{name}Request"], _CLASSES[f"{name}Response"]) for name in _METHOD_NAMES.split()
}
