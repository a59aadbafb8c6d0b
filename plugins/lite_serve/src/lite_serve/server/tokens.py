"""Tokens: where they are read from, and whether a request carries one.

Only digests are kept: a token cannot be read from the memory of the server, nor from the time that a comparison takes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from lite_core.errors import InputError
from lite_serve.protocol.errors import UnauthenticatedError

__all__ = ["VARIABLE", "check_token", "digests", "read_tokens"]

#: The environment variable with tokens, separated by white space.
VARIABLE = "LITE_SERVE_TOKENS"
#: Fewer characters are guessed.
_LEAST = 16


def read_tokens(file: Path | None, environment: Mapping[str, str]) -> tuple[tuple[bytes, ...], list[str]]:
    """Return the digests of the tokens in a file and in the environment variable, and notes about them.

    Args:
        file: a file with one token per line; lines that begin with ``#`` are comments.
        environment: the environment variables.

    Raises:
        InputError: the file cannot be read or has no token, the variable is there but empty, or a token is too short.
    """
    notes: list[str] = []
    found: list[tuple[str, str]] = []
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
            mode = file.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the file of tokens {str(file)!r} cannot be read: {error}") from None
        tokens = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not tokens:
            raise InputError(f"the file of tokens {str(file)!r} has none: write one on each line")
        found += [(str(file), token) for token in tokens]
        if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
            notes.append(f"other users of this machine may read the tokens in {file}: chmod 600 {file}")
    if VARIABLE in environment:
        tokens = environment[VARIABLE].split()
        if not tokens:
            raise InputError(f"the environment variable {VARIABLE} is set, but has no token: unset it, or set one")
        found += [(VARIABLE, token) for token in tokens]
    for source, token in found:
        if len(token) < _LEAST or not token.isascii() or any(c.isspace() for c in token):
            raise InputError(
                f"a token in {source} has {len(token)} characters; it must have at least {_LEAST} of ASCII and no "
                'spaces: python -c "import secrets; print(secrets.token_urlsafe())" prints one'
            )
    return digests(token for _, token in found), notes


def digests(tokens: Iterable[str]) -> tuple[bytes, ...]:
    """Return the digests of tokens."""
    return tuple(_digest(token.encode()) for token in tokens)


def check_token(known: Iterable[bytes], authorization: bytes | None) -> None:
    """Check the value of the header ``Authorization``, in constant time.

    Args:
        known: the digests of the tokens.
        authorization: the value, ``Bearer TOKEN``; None if the request has no such header.

    Raises:
        UnauthenticatedError: it has no token, or a wrong one.
    """
    scheme, _, token = (authorization or b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise UnauthenticatedError("this server needs a token: send the header 'Authorization: Bearer TOKEN'")
    given = _digest(token.strip())
    found = [hmac.compare_digest(given, each) for each in known]  # all of them, whichever it is
    if True not in found:
        raise UnauthenticatedError("the token is not one of this server's")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
