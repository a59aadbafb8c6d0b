"""``lite serve``: a model, or a folder of models, behind an endpoint."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from lite_core.errors import InputError
from lite_core.session import load
from lite_serve.cli.serve_report import print_ready, ready_document
from lite_serve.models.metrics import Metrics
from lite_serve.models.repository import READY, Repository
from lite_serve.models.settings import BATCHING, VERSIONS, ModelSettings
from lite_serve.server.browsers import is_loopback
from lite_serve.server.listening import PortError, check_tls
from lite_serve.server.logs import start_logging
from lite_serve.server.running import Addresses, Listeners, serve
from lite_serve.server.settings import LOG_FORMATS, ServerSettings, TlsFiles
from lite_serve.server.tokens import VARIABLE, read_tokens
from lite_tools.commands import (
    EXIT_FAILURE,
    EXIT_OK,
    backend_option,
    backends_of,
    json_option,
    model_argument,
    print_json,
    print_notes,
    set_progress,
    undisturbed,
)

__all__ = ["command"]

_WORDS = "lite_serve.serve"
#: Units of sizes, in bytes.
_UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_DEFAULTS = ServerSettings()
_MODEL_DEFAULTS = ModelSettings()


class _Serve(click.Command):
    """A command that keeps the words that were typed, for the command to type next."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = (ctx.command_path, *args)
        return super().parse_args(ctx, args)


class _Size(click.types.IntParamType):
    """A number of bytes: ``1048576``, ``64MiB``, ``1GiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        digits = text.rstrip("kmgib ")
        unit = text[len(digits) :].strip()
        if not digits.isdigit() or not int(digits) or unit not in _UNITS:
            self.fail(f"{value!r} is no number of bytes such as 1048576, 64MiB or 1GiB", param, ctx)
        return int(digits) * _UNITS[unit]


class _Port(click.types.IntParamType):
    """A port, 0 for a free one, or ``off``."""

    name = "port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        if text == "off":
            return -1
        if not text.isdigit() or int(text) > 65535:
            if text != "-1":
                self.fail(f"{value!r} is no port: a number up to 65535, 0 for one that is free, or off", param, ctx)
            return -1
        return int(text)


class _Seconds(click.FloatRange):
    """A number of seconds."""

    name = "seconds"


def _option(name: str, about: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(name, help=about, **more)


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LIMITS = (
    _option("--largest-body", "Size of a request at most, also after decompression.", type=_Size(), metavar="SIZE",
            default="64MiB", show_default=True),
    _option("--body-memory", "Size of the bodies of all HTTP requests at once, at most.", type=_Size(), metavar="SIZE",
            default="1GiB", show_default=True),
    _option("--request-seconds", "Seconds for a request, from its beginning to its answer.",
            type=_Seconds(0, min_open=True), default=_DEFAULTS.request_seconds, show_default=True),
    _option("--header-seconds", "Seconds for a client to send the headers of a request.",
            type=_Seconds(0, min_open=True), default=_DEFAULTS.header_seconds, show_default=True),
    _option("--idle-seconds", "Seconds after which an idle connection is closed.",
            type=_Seconds(0, min_open=True), default=_DEFAULTS.idle_seconds, show_default=True),
    _option("--most-connections", "HTTP connections at once, at most; also gRPC calls at once.",
            type=click.IntRange(1), default=_DEFAULTS.most_connections, show_default=True),
    _option("--most-queued", "Requests that may wait for each version of a model; further ones are refused.",
            type=click.IntRange(1), default=_MODEL_DEFAULTS.most_queued, show_default=True),
    _option("--drain-delay", "Seconds between the signal to shut down, which ends readiness, and the end of listening.",
            type=_Seconds(0), default=_DEFAULTS.drain_delay, show_default=True),
)  # fmt: skip
_SECURITY = (
    _option("--tokens", "File with tokens, one on each line: requests must carry one of them. The environment "
            f"variable {VARIABLE} has more, separated by spaces.", type=_FILE, metavar="FILE"),
    _option("--health-token", "Ask for a token at the health endpoints, too.", is_flag=True),
    _option("--tls-cert", "Certificate for HTTP and gRPC (PEM), followed by those of its issuers.", type=_FILE,
            metavar="FILE"),
    _option("--tls-key", "Private key of the certificate (PEM, without a password).", type=_FILE, metavar="FILE"),
    _option("--tls-client-ca", "Certificates (PEM) of who issues those of clients: a client without one is refused.",
            type=_FILE, metavar="FILE"),
    _option("--control", "Let clients load and unload models.", is_flag=True),
    _option("--allow-host", "Name in the header Host that is accepted besides addresses and localhost. Repeatable.",
            multiple=True, metavar="NAME"),
    _option("--allow-origin", "Origin of web pages whose requests are accepted, such as https://example.org. "
            "Repeatable.", multiple=True, metavar="ORIGIN"),
)  # fmt: skip
_MODELS = (
    _option("--name", "Name of the model, if there is one.  [default: that of its file or folder]", default="",
            metavar="NAME"),
    click.option("--threads", "-t", type=click.IntRange(1),
                 help="CPU threads of one run.  [default: 1, or the useful cores divided by --instances]"),
    _option("--instances", "Runs of a model at once.  [default: the useful cores divided by --threads]",
            type=click.IntRange(1)),
    _option("--batching", "Run requests that fit together as one batch: if answers stay the same bit by bit, if they "
            "may differ in the last bits, or never.", type=click.Choice(BATCHING), default=_MODEL_DEFAULTS.batching,
            show_default=True),
    _option("--largest-batch", "Rows of a batch at most.", type=click.IntRange(1),
            default=_MODEL_DEFAULTS.largest_batch, show_default=True),
    _option("--batch-delay", "Milliseconds that a request may wait for others to share its batch with.",
            type=click.FloatRange(0, 60_000), default=0.0, show_default=True, metavar="MS"),
    _option("--versions", "Versions to load at the start; with newest, an older one loads at its first request.",
            type=click.Choice(VERSIONS), default=_MODEL_DEFAULTS.versions, show_default=True),
)  # fmt: skip
_ADDRESS = (
    _option("--host", "Name or address of this machine to listen on; 0.0.0.0 for all of its addresses.",
            default=_DEFAULTS.host, show_default=True, metavar="HOST"),
    _option("--http-port", "Port for HTTP; 0 for one that is free, off for none.", type=_Port(), metavar="PORT",
            default=_DEFAULTS.http_port, show_default=True),
    _option("--grpc-port", "Port for gRPC; 0 for one that is free, off for none.", type=_Port(), metavar="PORT",
            default=_DEFAULTS.grpc_port, show_default=True),
)  # fmt: skip
_LOG = (
    _option("--log-format", "Format of the log, which goes to standard error.", type=click.Choice(LOG_FORMATS),
            default=_DEFAULTS.log_format, show_default=True),
    _option("--log-requests/--no-log-requests", "Log a line for each request.", default=True, show_default=True),
)  # fmt: skip


def _together(*groups: Sequence[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for all options, in their order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


@click.command("serve", cls=_Serve)
@model_argument
@click.option("--check", is_flag=True, help="Load the models, start, say what is served, and exit.")
@_together(_ADDRESS, (backend_option,), _MODELS, _LIMITS, _SECURITY, _LOG)
@json_option
def command(model: str, check: bool, as_json: bool, **given: Any) -> int:
    """Answer requests for MODEL, a file or a folder of models, by HTTP and gRPC.

    The protocol is the Open Inference Protocol (KServe, Triton). The server answers until it gets the signal to end
    (Ctrl-C, SIGTERM); then it answers what it has accepted, and exits.
    """
    start_logging(given["log_format"])
    settings, notes = _server_settings(given)
    model_settings = _model_settings(given)
    try:
        listeners = Listeners(settings)
    except PortError as error:
        raise _port_is_taken(error) from None
    except InputError as error:
        raise click.BadParameter(str(error), param_hint="--host") from None
    metrics = Metrics()
    try:
        repository = Repository(Path(model), model_settings, metrics)
        _check_models(model, repository, model_settings)
    except BaseException:
        listeners.close()
        raise
    exit_codes = [EXIT_FAILURE]

    def tell(addresses: Addresses) -> None:
        exit_codes[0] = EXIT_OK
        document = ready_document(model, addresses, repository, settings, [*notes, *repository.notes])
        if as_json:
            print_json(document)
        else:
            print_notes(document["notes"])
            print_ready(document, only_checked=check)
        sys.stdout.flush()

    set_progress("starting the servers")
    try:
        with undisturbed():
            serve(repository, metrics, listeners, tell, only_check=check)
    except PortError as error:
        raise _port_is_taken(error) from None
    return exit_codes[0]


def _server_settings(given: dict[str, Any]) -> tuple[ServerSettings, list[str]]:
    """Return the settings of the servers, and notes about their security.

    Raises:
        click.UsageError: options do not fit together, or the files that they name are not usable.
    """
    certificate, key = given["tls_cert"], given["tls_key"]
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together: give both")
    if certificate is None and given["tls_client_ca"] is not None:
        raise click.UsageError("--tls-client-ca needs --tls-cert and --tls-key")
    try:
        tokens, notes = read_tokens(given["tokens"], os.environ)
        tls = None if certificate is None else TlsFiles(certificate, key, given["tls_client_ca"])
        if tls is not None:
            check_tls(tls)
        settings = ServerSettings(
            host=given["host"],
            http_port=None if given["http_port"] < 0 else given["http_port"],
            grpc_port=None if given["grpc_port"] < 0 else given["grpc_port"],
            largest_body=given["largest_body"],
            most_body_bytes=max(given["body_memory"], given["largest_body"]),
            request_seconds=given["request_seconds"],
            header_seconds=given["header_seconds"],
            idle_seconds=given["idle_seconds"],
            most_connections=given["most_connections"],
            drain_delay=given["drain_delay"],
            tokens=tokens,
            health_needs_token=given["health_token"],
            tls=tls,
            repository_control=given["control"],
            allowed_hosts=given["allow_host"],
            allowed_origins=given["allow_origin"],
            log_format=given["log_format"],
            log_requests=given["log_requests"],
        )
    except InputError as error:
        raise click.UsageError(str(error)) from None
    if not is_loopback(settings.host):
        missing = [
            what for what, is_there in (("TLS (--tls-cert)", tls), ("tokens (--tokens)", tokens)) if not is_there
        ]
        if missing:
            notes.append(f"others can reach {settings.host}, and there are no {' and no '.join(missing)}")
    return settings, notes


def _model_settings(given: dict[str, Any]) -> ModelSettings:
    backend = backends_of(given["backend"])
    try:
        return ModelSettings(
            backend=backend if isinstance(backend, str) else tuple(backend),
            threads=given["threads"],
            instances=given["instances"],
            most_queued=given["most_queued"],
            batching=given["batching"],
            largest_batch=given["largest_batch"],
            batch_delay=given["batch_delay"] / 1e3,
            versions=given["versions"],
            name=given["name"],
        )
    except InputError as error:
        raise click.UsageError(str(error)) from None


def _check_models(model: str, repository: Repository, settings: ModelSettings) -> None:
    """Check that there is a model to answer for: in a folder, others may have failed.

    Raises:
        LiteError: the only model cannot be loaded.
        click.ClickException: there are no models, or none of several can be loaded.
    """
    entries = repository.index()
    if any(entry.state == READY for entry in entries):
        return
    names = {entry.name for entry in entries}
    if len(names) == 1:  # again, for the error itself: it has an exit code and the command to type next
        load(model, backend=settings.backend if isinstance(settings.backend, str) else list(settings.backend))
    if not names:
        raise click.UsageError(f"the folder {model!r} has no models: give it files or folders of models")
    reasons = "\n".join(f"  {entry.name}, version {entry.version}: {entry.reason}" for entry in entries)
    raise click.ClickException(f"no model of {model!r} can be served:\n{reasons}")


def _port_is_taken(error: PortError) -> click.ClickException:
    """Return the error for a port that is taken; the next command takes a free one."""
    words = [*click.get_current_context().meta.get(_WORDS, ())]
    kept, skip = [], False
    for word in words:
        if skip or word.startswith(f"{error.option}="):
            skip = False
        elif word == error.option:
            skip = True
        else:
            kept.append(word)
    failed = click.ClickException(str(error))
    if kept:
        vars(failed)["next_command"] = f"{kept[0]} {shlex.join([*kept[1:], error.option, '0'])}"
    return failed
