"""The models of a server: which there are, which are loaded, and the way of a request to its model."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lite_core.errors import InputError, LiteError
from lite_serve.models.folder import FoundVersion, find_versions, fingerprint
from lite_serve.models.metrics import Metrics
from lite_serve.models.served import ServedVersion
from lite_serve.models.settings import ModelSettings
from lite_serve.protocol.errors import NotFoundError, UnavailableModelError
from lite_serve.protocol.messages import InferRequest, InferResponse, ModelMetadata

__all__ = ["READY", "UNAVAILABLE", "IndexEntry", "Repository"]

logger = logging.getLogger("lite.serve.models")

READY = "READY"
UNAVAILABLE = "UNAVAILABLE"


class IndexEntry(NamedTuple):
    """A version of a model in the index.

    Attributes:
        name: the model's name.
        version: the version.
        state: ``READY`` or ``UNAVAILABLE``.
        reason: why it is unavailable, or what is wrong with the files of a version that is ready.
    """

    name: str
    version: str
    state: str
    reason: str


@dataclass(slots=True)
class _Model:
    """A model of the repository.

    Attributes:
        found: its versions in the folder, newest first.
        served: the loaded versions.
        problems: for each version, why it, or a change of its files, was not loaded.
        is_unloaded: True if a client unloaded it.
        lock: held while versions are loaded or unloaded.
    """

    found: list[FoundVersion]
    served: dict[str, ServedVersion] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    is_unloaded: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Repository:
    """The models in a file or folder, see :mod:`lite_serve.models.folder`. Its coroutines belong to one event loop.

    The constructor loads the newest version of each model, or all versions, and blocks until that is done. A version
    that fails to load is listed with the reason, and does not stop the others; the next older one takes its place.

    A request that names no version is answered by the newest version that is loaded. The first request that names an
    older version loads it.

    Args:
        source: a file of a model, the folder of a model, or a folder of models.
        settings: the settings of all models.
        metrics: counts runs.

    Raises:
        InputError: there is no such file or folder.
    """

    def __init__(self, source: Path, settings: ModelSettings, metrics: Metrics) -> None:
        self._source = source
        self._settings = settings
        self._metrics = metrics
        self._models: dict[str, _Model] = {}
        self._is_closed = False
        self._names_left_out: list[str] = []
        for name, versions in self._scan().items():
            model = self._models[name] = _Model(versions)
            for found in versions:
                if settings.versions == "all" or not model.served:  # the newest one that loads
                    self._load_version(model, found)

    # **** questions ****

    @property
    def notes(self) -> list[str]:
        """One line for each thing to know: what is not served, what a file may not run, how models are batched."""
        lines = list(self._names_left_out)
        about: dict[str, list[str]] = {}
        for name, model in self._models.items():
            lines += [f"{name}, version {version} is not loaded: {why}" for version, why in model.problems.items()]
            for version, served in model.served.items():
                for note in served.notes:
                    about.setdefault(note, []).append(name if len(model.found) == 1 else f"{name}, version {version}")
        return lines + [f"{_listed(names)}: {note}" for note, names in about.items()]

    def index(self) -> list[IndexEntry]:
        """Return every version of every model in the folder, newest first, with its state."""
        entries = []
        for name, model in self._models.items():
            for version in dict.fromkeys([*(found.version for found in model.found), *model.served]):
                is_ready = version in model.served and not self._is_closed
                reason = model.problems.get(version, "") or ("" if is_ready else self._why_not_loaded(model))
                entries.append(IndexEntry(name, version, READY if is_ready else UNAVAILABLE, reason))
        return entries

    def is_ready(self, name: str, version: str = "") -> bool:
        """Return True if a model, in a version or its newest loaded one, answers requests.

        Raises:
            NotFoundError: there is no such model or version.
        """
        model = self._model(name, version)
        return not self._is_closed and (version in model.served if version else bool(model.served))

    def metadata(self, name: str, version: str = "") -> ModelMetadata:
        """Return the metadata of a loaded version.

        Raises:
            NotFoundError: there is no such model or version.
            UnavailableModelError: it is not loaded.
        """
        served = self._served(name, version)
        model, signature = self._models[name], served.signature
        answering = {*model.served, *(each.version for each in model.found)} - (model.problems.keys() - model.served)
        versions = tuple(sorted(answering, key=int))
        return ModelMetadata(name, versions, served.platform, signature.inputs, signature.outputs, served.properties)

    # **** requests ****

    async def infer(self, request: InferRequest, timeout: float | None = None) -> InferResponse:
        """Run a model.

        Args:
            request: the request.
            timeout: seconds within which it must be answered, or None.

        Raises:
            ProtocolError: the request does not fit, the model is not there or fails, or the time is over. A cancelled
                call leaves the queue.
        """
        if request.version and not self._is_closed:
            await self._load_older(self._model(request.model, request.version), request.version)
        served = self._served(request.model, request.version)
        inputs = served.signature.checked_inputs(request)
        names = served.signature.wanted_outputs(request)
        answer = await served.run(inputs, timeout, request.id)
        outputs = {name: answer.outputs[name] for name in names}
        parameters = {"batch_size": answer.rows, "batch_requests": answer.requests}
        return InferResponse(served.model, served.version, request.id, outputs, parameters)

    # **** loading ****

    async def load(self, name: str) -> None:
        """Load a model's newest version; of loaded versions, load those whose files changed.

        The old session answers until the new one takes over, and finishes what it accepted.

        Raises:
            NotFoundError: there is no such model in the folder.
            UnavailableModelError: it cannot be loaded; a version that was loaded before still answers.
        """
        self._require_open()
        try:
            found = (await asyncio.to_thread(self._scan)).get(name)
        except InputError as error:
            raise UnavailableModelError(str(error)) from None
        if found is None and name not in self._models:
            raise NotFoundError(f"there is no model {name!r}; {self._listing()}")
        model = self._models.setdefault(name, _Model(found or []))
        async with model.lock:
            model.found = found or []
            model.is_unloaded = False
            model.problems.clear()
            kept: set[str] = set()
            for each in model.found:
                if self._settings.versions == "newest" and kept:
                    break
                served = model.served.get(each.version)
                if served is None or served.files != fingerprint(each):
                    await self._replace(model, each)
                if each.version in model.served:
                    kept.add(each.version)
            await self._retire(model, [version for version in model.served if version not in kept])
        if not model.found:
            del self._models[name]
            raise NotFoundError(f"the files of model {name!r} are no longer there; {self._listing()}")
        newest = model.found[0].version
        if newest in model.problems:
            raise UnavailableModelError(f"model {name!r}, version {newest} cannot be loaded: {model.problems[newest]}")

    async def unload(self, name: str) -> None:
        """Unload all versions of a model, after the requests that were accepted.

        Raises:
            NotFoundError: there is no such model.
        """
        model = self._model(name)
        async with model.lock:
            model.is_unloaded = True
            await self._retire(model, list(model.served))

    async def close(self) -> None:
        """Accept no more requests, finish those that were accepted, and free all models."""
        self._is_closed = True
        for model in self._models.values():
            async with model.lock:
                await self._retire(model, list(model.served))

    # **** internals ****

    def _scan(self) -> dict[str, list[FoundVersion]]:
        found, self._names_left_out = find_versions(self._source, self._settings.name)
        models: dict[str, list[FoundVersion]] = {}
        for each in found:
            models.setdefault(each.model, []).append(each)
        return models

    def _load_version(self, model: _Model, found: FoundVersion) -> ServedVersion | None:
        """Load a version, or note why it cannot be. Blocks."""
        self._metrics.know(found.model, found.version)
        problem = found.problem
        served = None
        if not problem:
            try:
                served = ServedVersion(found, self._settings, self._metrics)
            except LiteError as error:
                # Clients read it in the index: they need not know where the folder is.
                problem = str(error).replace(f"{found.path.parent if found.path else ''}{os.sep}", "")
            except Exception as error:
                logger.exception("loading model %r, version %s failed", found.model, found.version)
                problem = f"loading failed with {type(error).__name__}; the server's log says more"
        if served is None:
            logger.warning("model %r, version %s is not loaded: %s", found.model, found.version, problem)
            model.problems[found.version] = problem
            return None
        model.problems.pop(found.version, None)
        model.served[found.version] = served
        return served

    async def _replace(self, model: _Model, found: FoundVersion) -> None:
        """Load a version beside the one that answers; if that succeeds, retire the old one."""
        old = model.served.get(found.version)
        new = await asyncio.to_thread(self._load_version, model, found)
        if new is not None and old is not None:
            await asyncio.to_thread(old.close)

    async def _load_older(self, model: _Model, version: str) -> None:
        """Load an older version at its first request."""
        if version in model.served or model.is_unloaded or version in model.problems:
            return
        async with model.lock:
            found = next((each for each in model.found if each.version == version), None)
            if found is not None and version not in model.served and not model.is_unloaded:
                await asyncio.to_thread(self._load_version, model, found)

    async def _retire(self, model: _Model, versions: Iterable[str]) -> None:
        retired = [model.served.pop(version) for version in versions]
        await asyncio.gather(*(asyncio.to_thread(served.close) for served in retired))

    def _model(self, name: str, version: str = "") -> _Model:
        model = self._models.get(name)
        if model is None:
            raise NotFoundError(f"there is no model {name!r}; {self._listing()}")
        if version and version not in model.served and version not in {found.version for found in model.found}:
            listed = ", ".join(found.version for found in model.found)
            raise NotFoundError(f"model {name!r} has no version {version!r}, its versions are: {listed}")
        return model

    def _served(self, name: str, version: str = "") -> ServedVersion:
        self._require_open()
        model = self._model(name, version)
        version = version or max(model.served, key=int, default="")
        served = model.served.get(version)
        if served is None:
            newest = version or (model.found[0].version if model.found else "")
            why = model.problems.get(newest) or self._why_not_loaded(model)
            raise UnavailableModelError(f"model {name!r}, version {newest} is not loaded: {why}")
        return served

    def _why_not_loaded(self, model: _Model) -> str:
        if self._is_closed:
            return "the server is shutting down"
        return "it was unloaded" if model.is_unloaded else "the first request for this older version loads it"

    def _require_open(self) -> None:
        if self._is_closed:
            raise UnavailableModelError("the server is shutting down")

    def _listing(self) -> str:
        names = list(self._models)
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"the models are: {shown}" if names else "there are no models"


def _listed(names: list[str]) -> str:
    """Return names as text, the first ones if they are many."""
    shown = "; ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown}; and {len(names) - 4} more"
