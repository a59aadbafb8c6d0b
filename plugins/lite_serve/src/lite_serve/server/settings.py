"""The settings of the servers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lite_core.errors import InputError

__all__ = ["LOG_FORMATS", "ServerSettings", "TlsFiles"]

#: Formats of the log.
LOG_FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of TLS, in PEM format.

    Attributes:
        certificate: the server's certificate, followed by those of its issuers.
        key: its private key, without a password.
        client_ca: certificates of who issues those of clients; if given, a client without one is refused.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of the servers.

    Attributes:
        host: the name or address of this machine to listen on.
        http_port: the port for HTTP; 0 for one that is free, None for no HTTP.
        grpc_port: the port for gRPC; 0 for one that is free, None for no gRPC.
        largest_body: bytes of a request at most, also after decompression.
        most_body_bytes: bytes of all bodies that are received or answered at once by HTTP, at most.
        request_seconds: seconds from the beginning of a request to its answer at most, the time to receive it included.
        header_seconds: seconds that a client may take to send the headers of a request.
        idle_seconds: seconds after which an idle HTTP connection is closed.
        most_connections: HTTP connections at most; also gRPC calls at once.
        drain_delay: seconds between the signal to shut down, which ends readiness, and the end of listening.
        tokens: digests of the tokens, one of which a request must carry; none if empty. See
            :mod:`lite_serve.server.tokens`.
        health_needs_token: whether health and readiness need a token, too.
        tls: the files of TLS; None for none.
        repository_control: whether clients may load and unload models.
        allowed_hosts: names in the header ``Host`` that are accepted besides the addresses of this machine.
        allowed_origins: origins of web pages whose requests are accepted, such as ``https://example.org``.
        log_format: one of :data:`LOG_FORMATS`.
        log_requests: whether each request is logged.
    """

    host: str = "127.0.0.1"
    http_port: int | None = 8000
    grpc_port: int | None = 8001
    largest_body: int = 64 << 20
    most_body_bytes: int = 1 << 30
    request_seconds: float = 60.0
    header_seconds: float = 10.0
    idle_seconds: float = 75.0
    most_connections: int = 1000
    drain_delay: float = 0.0
    tokens: tuple[bytes, ...] = field(default=(), repr=False)
    health_needs_token: bool = False
    tls: TlsFiles | None = None
    repository_control: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    log_format: str = "text"
    log_requests: bool = True

    def __post_init__(self) -> None:
        if self.http_port is None and self.grpc_port is None:
            raise InputError("both HTTP and gRPC are switched off: the server would answer nobody")
        if self.http_port and self.http_port == self.grpc_port:
            raise InputError(f"HTTP and gRPC cannot share port {self.http_port}: give them different ports")
        for name in ("largest_body", "most_body_bytes", "request_seconds", "header_seconds", "most_connections"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be more than 0, is {getattr(self, name)!r}")
        if self.log_format not in LOG_FORMATS:
            raise InputError(f"log_format must be one of {', '.join(LOG_FORMATS)}, is {self.log_format!r}")
