"""Connections to Dask: a running scheduler, or a cluster of processes on this machine."""

from __future__ import annotations

import asyncio
import importlib.util
import ipaddress
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from lite_core.errors import BackendUnavailableError, InputError
from lite_core.processors import useful_threads

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["connected", "exposes_scheduler"]

#: Packages of which scheduler and workers must have the driver's version, because parts travel between them.
_ALIKE = ("lite_core", "lite_serve")
#: Seconds to reach a scheduler, and to wait for its first worker.
_CONNECT, _FIRST_WORKER = 20, 60
_INSTALL = "pip install 'lite-serve[dask]'"


@contextmanager
def connected(address: str, workers: int | None, note: Callable[[str], None]) -> Iterator[Client]:
    """Connect to a scheduler, or start one with workers, until the end of the context.

    Args:
        address: the address of a running scheduler, such as ``tcp://10.0.0.5:8786``; empty to start a scheduler and
            workers on this machine, which end with the context.
        workers: the number of workers to start; None for one per core.
        note: called with what the user should know.

    Raises:
        InputError: the address is none.
        BackendUnavailableError: Dask is not installed, the scheduler cannot be reached, or it has no usable worker.
    """
    if importlib.util.find_spec("distributed") is None:
        raise _unavailable("Dask is not installed, and --dask needs it", _INSTALL)
    from distributed import Client

    _be_quiet()
    with ExitStack() as stack:
        if address:
            _check_address(address)
            if exposes_scheduler(address):
                note(
                    f"{address} is neither this machine nor encrypted: whoever reaches the scheduler runs code on all "
                    "workers, and reads the data. Use tls:// with certificates, or a network that only you reach"
                )
            try:
                client = stack.enter_context(Client(address, timeout=_CONNECT, set_as_default=False))
            except (OSError, asyncio.TimeoutError) as error:  # one class from Python 3.11 on
                told = f"no Dask scheduler answers at {address} within {_CONNECT} s: {error}"
                raise _unavailable(told, "dask scheduler") from error
        else:
            cluster = stack.enter_context(_own_cluster(workers or useful_threads(), note))
            client = stack.enter_context(Client(cluster, set_as_default=False))
        _wait_for_worker(client, note)
        _check_versions(client)
        yield client


def exposes_scheduler(address: str) -> bool:
    """Return whether an address is reached over a network without encryption."""
    parts = urlsplit(address)
    if parts.scheme != "tcp":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname != "localhost"


def _check_address(address: str) -> None:
    from distributed.security import Security

    parts = urlsplit(address)
    try:
        is_complete = bool(parts.hostname and parts.port)
    except ValueError:
        is_complete = False
    if parts.scheme not in {"tcp", "tls", "ws", "wss"} or not is_complete:
        raise InputError(
            f"{address!r} is no address of a Dask scheduler: expected tcp://HOST:PORT or tls://HOST:PORT, as "
            "`dask scheduler` prints it"
        )
    if parts.scheme in {"tls", "wss"} and Security().get_connection_args("client")["ssl_context"] is None:
        raise InputError(
            f"{address} needs certificates, and Dask's configuration names none: set "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
        )


@contextmanager
def _own_cluster(workers: int, note: Callable[[str], None]) -> Iterator[Any]:
    """Start a scheduler and workers on the loopback interface, each worker a process with one thread.

    Whoever reaches a scheduler runs code as its user, so that connections need certificates, which are made in memory
    for this cluster: other users of this machine have none.
    """
    from distributed import LocalCluster
    from distributed.security import Security

    security: Any = None
    if importlib.util.find_spec("cryptography") is None:
        note(f"other users of this machine could reach this scheduler: cryptography is not installed; {_INSTALL}")
    else:
        security = Security.temporary()
    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        security=security,
        silence_logs=logging.CRITICAL,
        preload=["lite_serve.mapping.dask_worker"],
    ) as cluster:
        yield cluster


def _wait_for_worker(client: Client, note: Callable[[str], None]) -> None:
    if client.nthreads():
        return
    address = client.scheduler.address if client.scheduler is not None else ""
    note(f"the scheduler has no workers yet; waiting {_FIRST_WORKER} s. To start one: dask worker {address}")
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
    except TimeoutError as error:
        raise _unavailable(f"the scheduler at {address} has no workers", f"dask worker {address}") from error


def _check_versions(client: Client) -> None:
    """Compare the versions of Lite and of Python in the cluster with those here; the scheduler reads tasks, too.

    Raises:
        BackendUnavailableError: the scheduler or a worker has another one, or none.
    """
    found = client.get_versions(packages=list(_ALIKE))
    own = _of_interest(found["client"])
    members = {"the scheduler": found["scheduler"]}
    members.update({f"the worker {address}": about for address, about in found["workers"].items()})
    for name, about in members.items():
        theirs = _of_interest(about)
        others = [package for package in own if theirs[package] != own[package]]
        if others:
            wrong = "; ".join(
                f"{package} {theirs[package] or 'missing'} there, {own[package]} here" for package in others
            )
            raise _unavailable(f"{name} does not fit: {wrong}. Every machine needs the same versions", _INSTALL)


def _unavailable(message: str, next_command: str) -> BackendUnavailableError:
    """Return an error with the command to type next."""
    error: Any = BackendUnavailableError(message)
    error.next_command = next_command
    return cast("BackendUnavailableError", error)


def _of_interest(about: dict[str, Any]) -> dict[str, Any]:
    packages = dict(about["packages"])
    python = ".".join(str(about["host"]["python"]).split(".")[:2])
    return {"Python": python, **{name.replace("_", "-"): packages.get(name) for name in _ALIKE}}


def _be_quiet() -> None:
    """Let Dask be silent: what concerns the user, this command says itself."""
    for name in ("distributed", "distributed.client", "distributed.nanny", "distributed.scheduler"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    from distributed.versions import VersionMismatchWarning

    warnings.simplefilter("ignore", VersionMismatchWarning)  # compared below, as far as they matter
