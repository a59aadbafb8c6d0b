"""Errors that a client is told, each with its HTTP status and its gRPC status code."""

from __future__ import annotations

__all__ = [
    "DeadlineError",
    "FailedModelError",
    "ForbiddenError",
    "InvalidRequestError",
    "NotFoundError",
    "OverloadedError",
    "ProtocolError",
    "TooLargeError",
    "UnauthenticatedError",
    "UnavailableModelError",
    "UnsupportedError",
]


class ProtocolError(Exception):
    """An error whose message is the client's answer.

    Attributes:
        http_status: the status of the HTTP answer.
        grpc_code: the name of the gRPC status code, a member of ``grpc.StatusCode``.
    """

    http_status = 500
    grpc_code = "INTERNAL"


class InvalidRequestError(ProtocolError):
    """The request is malformed, or its inputs do not fit the model. The message names the input."""

    http_status = 400
    grpc_code = "INVALID_ARGUMENT"


class UnauthenticatedError(ProtocolError):
    """The request has no token, or a wrong one."""

    http_status = 401
    grpc_code = "UNAUTHENTICATED"


class ForbiddenError(ProtocolError):
    """The server does not do this for this client, whatever its token."""

    http_status = 403
    grpc_code = "PERMISSION_DENIED"


class NotFoundError(ProtocolError):
    """There is no such model, version or path."""

    http_status = 404
    grpc_code = "NOT_FOUND"


class TooLargeError(ProtocolError):
    """The request has more bytes than the server accepts."""

    http_status = 413
    grpc_code = "RESOURCE_EXHAUSTED"


class OverloadedError(ProtocolError):
    """The queue of the model is full: the client may try again later."""

    http_status = 429
    grpc_code = "RESOURCE_EXHAUSTED"


class UnsupportedError(ProtocolError):
    """The protocol has it, the server does not."""

    http_status = 501
    grpc_code = "UNIMPLEMENTED"


class UnavailableModelError(ProtocolError):
    """The model exists, but is not loaded, or the server is shutting down."""

    http_status = 503
    grpc_code = "UNAVAILABLE"


class DeadlineError(ProtocolError):
    """The request was not answered within its time."""

    http_status = 504
    grpc_code = "DEADLINE_EXCEEDED"


class FailedModelError(ProtocolError):
    """The model failed although the request fits it: a fault of the server, which its log describes."""
