"""Tests of deploy/: manifests fit the server and the schemas of Kubernetes and KServe; the image file installs Lite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from serving_process import CLIENTS, serving, write_repository

from workspace import ROOT

DEPLOY = ROOT / "deploy"
MANIFESTS = (DEPLOY / "kubernetes.yaml", DEPLOY / "kserve.yaml")
CONTAINER = DEPLOY / "Dockerfile"
VALIDATOR = Path(__file__).with_name("manifest_schemas.py")


def parts_of(kind: str) -> list[dict[str, Any]]:
    """Return the manifests of a kind."""
    everything = [part for file in MANIFESTS for part in yaml.safe_load_all(file.read_text("utf-8"))]
    found = [part for part in everything if part["kind"] == kind]
    assert found, kind
    return found


def containers() -> list[dict[str, Any]]:
    """Return the container of the Deployment and that of KServe's runtime."""
    deployment, runtime = parts_of("Deployment")[0], parts_of("ServingRuntime")[0]
    return [*deployment["spec"]["template"]["spec"]["containers"], *runtime["spec"]["containers"]]


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Return the parameters of `lite serve` with these arguments; an unknown option raises click's UsageError."""
    from lite_serve.cli.serve import command

    with command.make_context(
        "serve", [str(ROOT if argument == "/mnt/models" else argument) for argument in arguments]
    ) as context:
        return dict(context.params)


def arguments_of_image() -> list[str]:
    """Return the arguments that the container file gives to `lite serve`."""
    (line,) = re.findall(r"^CMD (\[.*\])$", CONTAINER.read_text("utf-8"), re.MULTILINE)
    return list(yaml.safe_load(line))


def test_server_knows_arguments() -> None:
    for arguments in (arguments_of_image(), *(container["args"] for container in containers())):
        parameters = parsed(arguments)
        assert (parameters["http_port"], parameters["host"]) == (8080, "0.0.0.0")
    with pytest.raises(click.UsageError):
        parsed(["/mnt/models", "--no-such-option"])


def test_pods_may_finish_their_requests() -> None:
    limits = [parsed(container["args"]) for container in containers()]
    pods = [parts_of("Deployment")[0]["spec"]["template"]["spec"], parts_of("InferenceService")[0]["spec"]["predictor"]]
    for pod, limit in zip(pods, limits, strict=True):
        assert limit["drain_delay"] > 0
        assert pod["terminationGracePeriodSeconds"] >= limit["drain_delay"] + limit["request_seconds"] + 10


def test_containers_have_few_rights() -> None:
    for container in containers():
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} == set(container["resources"]["limits"])
    assert parts_of("Deployment")[0]["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert re.findall(r"^USER (.*)$", CONTAINER.read_text("utf-8"), re.MULTILINE) == ["10001:10001"]


def test_services_select_pods_and_their_ports() -> None:
    template = parts_of("Deployment")[0]["spec"]["template"]
    ports = {port["name"] for container in template["spec"]["containers"] for port in container["ports"]}
    for service in parts_of("Service"):
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert (
        parts_of("InferenceService")[0]["spec"]["predictor"]["model"]["runtime"]
        == parts_of("ServingRuntime")[0]["metadata"]["name"]
    )


@pytest.mark.full("serving")
def test_probes_of_manifests_are_answered(tmp_path: Path) -> None:
    with serving(write_repository(tmp_path / "models")) as server:
        for container in containers():
            probes = [
                container[name] for name in ("startupProbe", "readinessProbe", "livenessProbe") if name in container
            ]
            assert len(probes) >= 2
            for probe in probes:
                # A kubelet sends the pod's address as the host.
                request = urllib.request.Request(
                    server.http + probe["httpGet"]["path"], headers={"Host": "10.1.2.3:8080"}
                )
                with urllib.request.urlopen(request, timeout=30) as answer:
                    assert answer.status == 200


@pytest.mark.full("serving")
def test_kserve_finds_model_by_its_name(tmp_path: Path) -> None:
    """KServe copies the files of one model into /mnt/models, and asks for it under the name of the InferenceService."""
    write_repository(tmp_path / "all")
    mounted = tmp_path / "models"
    mounted.mkdir()
    (tmp_path / "all/sum.lite").rename(mounted / "model.lite")
    name = parts_of("InferenceService")[0]["metadata"]["name"]
    (container,) = parts_of("ServingRuntime")[0]["spec"]["containers"]
    assert container["args"][:3] == ["/mnt/models", "--name", "{{.Name}}"]
    with (
        serving(mounted, "--name", name) as server,
        urllib.request.urlopen(f"{server.http}/v2/models/{name}/ready", timeout=60) as answer,
    ):
        assert answer.status == 200


def validate(*files: Path) -> tuple[int, list[str]]:
    done = subprocess.run([CLIENTS, VALIDATOR, *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.splitlines()


def require_clients() -> None:
    if not CLIENTS.exists():
        pytest.skip("the schemas are in .venv-clients: make clients")


@pytest.mark.full("serving")
def test_manifests_are_valid() -> None:
    require_clients()
    code, lines = validate(*MANIFESTS)
    assert code == 0, lines
    assert len(lines) == 7
    assert all(line.endswith(": valid") for line in lines)


@pytest.mark.full("serving")
@pytest.mark.parametrize(
    ("file", "right", "wrong", "said"),
    [
        ("kubernetes.yaml", "readinessProbe:", "readynessProbe:", "'readynessProbe' was unexpected"),
        ("kubernetes.yaml", "containerPort: 8080", "containerPort: eighty", "'eighty' is not of type"),
        ("kubernetes.yaml", "kind: Deployment", "kind: Deploiment", "there is no 'Deploiment'"),
        ("kubernetes.yaml", "targetPort: http", "targetport: http", "'targetport' was unexpected"),
        ("kubernetes.yaml", "  selector:\n    match", "  selected:\n    match", "'selector' is a required"),
        ("kserve.yaml", "storageUri:", "storageURI:", "'storageURI' was unexpected"),
        ("kserve.yaml", "protocolVersions: [v2, grpc-v2]", "protocolVersions: v2", "'v2' is not of type 'array'"),
        ("kserve.yaml", "      modelFormat: {name: onnx}\n", "", "'modelFormat' is a required"),
        ("kserve.yaml", "path: /v2/health/live", "paths: /v2/health/live", "'paths' was unexpected"),
        ("kserve.yaml", "v1beta1", "v1beta2", "there is no 'InferenceService'"),
    ],
)  # fmt: skip
def test_validation_finds_planted_mistakes(file: str, right: str, wrong: str, said: str, tmp_path: Path) -> None:
    require_clients()
    text = (DEPLOY / file).read_text("utf-8")
    assert right in text
    spoilt = tmp_path / file
    spoilt.write_text(text.replace(right, wrong), "utf-8")
    code, lines = validate(spoilt)
    assert code == 1
    assert any(said in line for line in lines), lines


@pytest.mark.full("serving")
def test_linter_accepts_container_file(tmp_path: Path) -> None:
    linter = CLIENTS.with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is in .venv-clients: make clients")
    done = subprocess.run([linter, CONTAINER], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    spoilt = tmp_path / "Dockerfile"
    spoilt.write_text(CONTAINER.read_text("utf-8") + "RUN sudo pip install lite-serve\n", "utf-8")
    done = subprocess.run([linter, spoilt], capture_output=True, text=True)
    assert done.returncode == 1
    assert "DL3004" in done.stdout, "sudo"


@pytest.mark.full("serving")
def test_commands_of_container_file_install_a_server(tmp_path: Path) -> None:
    """The first stage's commands, in a folder instead of an image: a container engine is not needed."""
    wheels = tmp_path / "dist"
    folders = [ROOT / "core", *sorted(ROOT.glob("plugins/lite_*"))]
    built = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        wheels,
    ]
    subprocess.run([*built, *folders], check=True)
    text = re.sub(r"\\\n", " ", CONTAINER.read_text("utf-8"))
    (run,) = re.findall(r"^RUN (python -m venv.*)$", text, re.MULTILINE)
    defaults = dict(re.findall(r"^ARG (\w+)=(.*)$", text, re.MULTILINE))
    image = tmp_path / "lite"
    (tmp_path / "bin").mkdir()
    # The pip of the base image is one of its Python, not of the new environment.
    (tmp_path / "bin/pip").write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --disable-pip-version-check "$@"\n')
    (tmp_path / "bin/pip").chmod(0o755)
    (tmp_path / "bin/python").symlink_to(sys.executable)
    script = run.replace("/opt/lite", str(image)).replace("/dist", str(wheels))
    path = {**os.environ, **defaults, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", script], check=True, env=path)
    assert not list(image.glob("lib/python*/site-packages/pip"))
    models = write_repository(tmp_path / "models")
    variables = {"LITE_CACHE_DIR": "off", "LITE_CONFIG_DIR": "/etc/lite"}
    with (
        serving(models, python=str(image / "bin/python"), **variables) as server,
        urllib.request.urlopen(f"{server.http}/v2/models/sum/ready", timeout=60) as answer,
    ):
        assert answer.status == 200
