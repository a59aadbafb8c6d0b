"""Tests of connections to Dask: real schedulers and workers, on the loopback interface."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs lite-serve[dask]")

from dask_processes import dask_cluster as dask_cluster_of
from dask_processes import dask_process

from lite_core.errors import BackendUnavailableError, InputError
from lite_serve.mapping import dask_cluster
from lite_serve.mapping.dask_cluster import connected, exposes_scheduler


@pytest.mark.parametrize(
    ("address", "is_exposed"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://10.0.0.5:8786", False),
        ("tcp://10.0.0.5:8786", True),
        ("tcp://scheduler.example:8786", True),
    ],
)
def test_unprotected_addresses_are_known(address: str, is_exposed: bool) -> None:
    assert exposes_scheduler(address) is is_exposed


@pytest.mark.parametrize(
    "address", ["10.0.0.5:8786", "tcp://10.0.0.5", "http://10.0.0.5:8786", "tcp://:8786", "tcp://h:x"]
)
def test_addresses_of_no_scheduler_are_refused(address: str) -> None:
    with pytest.raises(InputError, match="expected tcp://HOST:PORT"), connected(address, None, print):
        pass


def test_encrypted_address_needs_certificates() -> None:
    with pytest.raises(InputError, match="DASK_DISTRIBUTED__COMM__TLS__CA_FILE"), connected("tls://h:1", None, print):
        pass


@pytest.mark.full("serving")
def test_unreachable_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "_CONNECT", 1)
    refused = pytest.raises(BackendUnavailableError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 ")
    with refused, connected("tcp://127.0.0.1:9", None, print):
        pass


def test_user_is_warned_of_unprotected_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "_CONNECT", 0.1)
    notes: list[str] = []
    unassigned = "tcp://192.0.2.1:8786"
    with pytest.raises(BackendUnavailableError, match="no Dask scheduler"), connected(unassigned, None, notes.append):
        pass
    assert f"{unassigned} is neither this machine nor encrypted" in notes[0]


@pytest.mark.full("serving")
def test_own_cluster_accepts_nobody_else() -> None:
    from distributed import Client
    from distributed.security import Security

    pytest.importorskip("cryptography")
    with connected("", 2, print) as client:
        assert sum(client.nthreads().values()) == 2
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        others = Security.temporary()  # certificates of another authority
        with pytest.raises(OSError), Client(address, security=others, timeout=3, set_as_default=False):
            pass
        assert client.submit(sum, [1, 2]).result(60) == 3


@pytest.mark.full("serving")
def test_certificates_of_the_configuration_are_used(tmp_path: Path) -> None:
    import dask
    from distributed.security import Security

    pytest.importorskip("cryptography")
    made = Security.temporary()
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    certificate.write_text(made.tls_ca_file)
    key.write_text(made.tls_client_key)
    variables = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    variables["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(certificate)
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        variables[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(certificate)
        variables[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(key)
    with dask_cluster_of(**variables) as address:
        assert address.startswith("tls://")
        # Dask reads its variables when it is imported: what follows is what it reads.
        files = {"ca-file": certificate, "client.cert": certificate, "client.key": key}
        settings = {f"distributed.comm.tls.{name}": str(file) for name, file in files.items()}
        with dask.config.set(settings), connected(address, None, print) as client:
            assert client.submit(sum, [1, 2]).result(60) == 3


@pytest.mark.full("serving")
def test_scheduler_without_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "_FIRST_WORKER", 1)
    notes: list[str] = []
    options = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    refused = pytest.raises(BackendUnavailableError, match="the scheduler at tcp://.* has no workers")
    with (
        dask_process(*options, line=r"Scheduler at: +(\S+)") as (address, _),
        refused,
        connected(address, None, notes.append),
    ):
        pass
    assert "no workers yet" in notes[0]


@pytest.mark.full("serving")
@pytest.mark.parametrize("of", ["scheduler", "worker"])
def test_other_versions_are_named(tmp_path: Path, of: str) -> None:
    other = tmp_path / "lite_core-9.9.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: lite-core\nVersion: 9.9\n")
    variables = {member: {"PYTHONPATH": str(tmp_path)} if of == member else {} for member in ("scheduler", "worker")}
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    refused = pytest.raises(BackendUnavailableError, match=rf"the {of} .*does not fit: lite-core 9.9 there")
    with (
        dask_process(*scheduler, line=r"Scheduler at: +(\S+)", **variables["scheduler"]) as (address, _),
        dask_process("worker", address, "--no-dashboard", line=r"(Registered to)", **variables["worker"]),
        refused,
        connected(address, None, print),
    ):
        pass
