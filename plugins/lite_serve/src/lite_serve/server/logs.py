"""The log of a server, to standard error: a line of text or of JSON for each request and event, never with tensors."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from typing import Any

__all__ = ["ACCESS", "SERVER", "new_request_id", "request_id_of", "start_logging"]

#: Logs one line for each request.
ACCESS = logging.getLogger("lite_serve.access")
#: Logs events and faults of the server.
SERVER = logging.getLogger("lite_serve.server")
#: What a client may call its request: nothing that could end a line of the log or a header.
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


def new_request_id() -> str:
    """Return a name for a request, which no other request has."""
    return os.urandom(8).hex()


def request_id_of(given: str | None) -> str:
    """Return the name that a client gave its request; empty if there is none, or one that cannot be logged."""
    return given if given and _REQUEST_ID.fullmatch(given) else ""


def start_logging(log_format: str, level: int = logging.INFO) -> None:
    """Write the logs of the servers to standard error.

    Args:
        log_format: ``"text"`` or ``"json"``.
        level: the least level.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if log_format == "json" else _TextLines())
    for name, least in (("lite_serve", level), ("uvicorn", max(level, logging.WARNING)), ("grpc", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(least)


def _moment(record: logging.LogRecord) -> str:
    """Return the time of a line in ISO 8601, in milliseconds and UTC."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class _JsonLines(logging.Formatter):
    """Lines of JSON: fixed fields, then those of the event."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _TextLines(logging.Formatter):
    """Lines of text: the time, the event, and its fields as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        words = [f"{name}={_word(value)}" for name, value in fields.items() if value not in ("", None)]
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = " ".join([_moment(record), f"{level}{record.getMessage()}", *words])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _word(value: object) -> str:
    """Return a value as one word: quoted like JSON if it has spaces, or what may not be on a line."""
    text = str(value)
    return text if re.fullmatch(r"[\x21\x23-\x7e]+", text) else json.dumps(text)
