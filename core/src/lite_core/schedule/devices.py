"""Selecting the devices of a session, in order of preference, with reasons for the others."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from lite_core.backend import Backend, Device, Options, TakesOptions, Unavailable
from lite_core.checks import require
from lite_core.errors import BackendUnavailableError, ExecutionError, InputError, LiteError
from lite_core.plugins import PluginManager, allowed_backends, available_backends, backend_sources, left_out_backends
from lite_core.plugins.contracts import fault_text
from lite_core.plugins.known import known_distributions
from lite_core.schedule.probing import probe

__all__ = ["Candidate", "Selection", "select_devices"]

logger = logging.getLogger("lite.schedule")


class Candidate(NamedTuple):
    """A device that a session may use, with its backend.

    Attributes:
        backend: the backend.
        device: one of its devices.
        own_options: backend-specific options from ``load(backend_options={name: ...})``.
        changes: options that differ from the session's, by the names of the fields of
            :class:`lite_core.backend.Options`.
        source: distribution and version of the backend, for messages.
    """

    backend: Backend
    device: Device
    own_options: Mapping[str, Any] = MappingProxyType({})
    changes: Mapping[str, Any] = MappingProxyType({})
    source: str = "unknown package"

    def __str__(self) -> str:
        return f"backend {self.device.label!r} ({self.source.removesuffix(' -')})"

    def blamed(self, error: LiteError) -> LiteError:
        """Return an error in a run with the backend's package as its source, which the message then names, too.

        Errors that are the user's or those of an inner plan, and those of ``host``, are returned as they are.
        """
        if type(error) is ExecutionError and not error.source and self.device.backend != "host":
            error.source = self.source
            error.args = (str(error) if self.source in str(error) else f"{error} ({self.source.removesuffix(' -')})",)
        return error

    def options(self, options: Options) -> Options:
        """Return the session's options with the candidate's changes and the backend-specific options."""
        own: dict[str, Any] = {"own": self.own_options} if self.own_options else {}
        return replace(options, **self.changes, **own) if own or self.changes else options


class Selection(NamedTuple):
    """Devices in order of preference, and a log line for every backend that was considered.

    ``automatic`` is True if the caller named no devices, or listed ``host`` after others: if one fails, the next may be
    used instead. ``notes`` are the lines about names that ``LITE_BACKENDS`` lists in vain, and the reasons why only the
    slow references of ``host`` are left, unless the caller asked for them.
    """

    candidates: tuple[Candidate, ...]
    log: tuple[str, ...]
    automatic: bool = False
    notes: tuple[str, ...] = ()


def select_devices(
    requested: str | Sequence[str],
    plugins: PluginManager,
    *,
    fallback: str = "host",
    targets: Mapping[str, str] = MappingProxyType({}),
    backend_options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Selection:
    """Choose the devices for a session.

    Args:
        requested: ``"auto"``, a backend's name, ``"name:index"`` for one of its devices, or several in
            order of preference. The environment variable ``LITE_BACKEND`` overrides it.
        plugins: the plugins that provide backends.
        fallback: ``"host"`` lets the host backend run nodes that the named ones refuse; ``"never"`` forbids it.
        targets: the backends that the model's file was converted for, the preferred one first, each with the
            distribution and version that it was converted with: ``"auto"`` uses the available ones, and other backends
            only if none of them is available.
        backend_options: options of backends, by the backend's name.

    Raises:
        InputError: an option is unknown to its backend, or its backend does not exist.
        BackendUnavailableError: a backend requested by name is not installed or has no device; the message contains the
            reason. ``"auto"`` logs the reasons, and raises only if no device remains.
    """
    require(fallback in ("host", "never"), "fallback", "'host' or 'never'", fallback)
    forced = os.environ.get("LITE_BACKEND")
    log: list[str] = []
    if forced:
        requested = [name.strip() for name in forced.split(",") if name.strip()]
        log.append(f"LITE_BACKEND={forced} overrides the program's choice of backends")
    backends, left_out = available_backends(plugins), left_out_backends(plugins)
    log += [f"{name}: {why}" for name, why in left_out.items() if name != "null"]  # null is never automatic
    unknown = sorted((allowed_backends() or frozenset()) - backends.keys())
    log += [f"{name}: LITE_BACKENDS names it, but it is not installed: {_how_to_install(name)}" for name in unknown]
    names = _requested_names(requested)
    if names == ["auto"]:
        candidates = _for_targets(targets, plugins, log) if targets else _by_score(backends, plugins, log)
    else:
        candidates = [_by_name(name, plugins, targets, log) for name in names]
    if fallback == "host" and not any(c.device.backend == "host" for c in candidates):
        devices = backends["host"].probe()
        assert not isinstance(devices, Unavailable)
        candidates.append(Candidate(backends["host"], devices[0]))
        log.append("host: the fallback for nodes that the others cannot run")
    candidates = _with_options(candidates, backend_options or {}, [*backends, *left_out], log)
    for line in log:
        logger.info("%s", line)
    if not candidates:
        made_for = f"the model is made for {', '.join(targets)}; " if targets else ""
        raise BackendUnavailableError(
            f"{made_for}no device is available to run it, and fallback='never' forbids host: {'; '.join(log)}. Install "
            "a backend (`lite backends` lists the installed ones), or allow fallback='host'"
        )
    only_host = all(c.device.backend == "host" for c in candidates)
    listed = os.environ.get("LITE_BACKENDS")
    notes = [line for line in log if ": LITE_BACKENDS names it" in line]
    asked_for = names != ["auto"] or [*targets] == ["host"] or "host" in re.split(r"[\s,]+", listed or "")
    if only_host and not asked_for:
        why = f"no other backend is installed: {' or '.join(map(_how_to_install, known_distributions('backends')))}"
        why = why if listed is None else f"LITE_BACKENDS={listed!r} leaves out all others: correct or unset it"
        notes += [line for line in log if ": not available: " in line] or [why]
        notes = [f"everything runs on host, the slow NumPy references: {'; '.join(notes)}"]
    return Selection(tuple(candidates), tuple(log), names == ["auto"] or "host" in names[1:], tuple(notes))


def _for_targets(targets: Mapping[str, str], plugins: PluginManager, log: list[str]) -> list[Candidate]:
    """Return the candidates that a model's file was converted for, or all others if none of its targets is available.

    Other backends are probed only in the second case: probing may take long and start drivers needlessly.
    """
    backends, left_out, listed = available_backends(plugins), left_out_backends(plugins), ", ".join(targets)
    log += [
        f"{name}: the model is made for it, but it is not installed: {_how_to_install(name, targets[name])}"
        for name in targets
        if name not in backends and name not in left_out
    ]
    others = [name for name in backends if name not in (*targets, "host", "null")]
    found = _by_score([name for name in backends if name in targets], plugins, log)
    if len({c.device.backend for c in found}) > 1:
        found.sort(key=lambda c: [*targets].index(c.device.backend))
        log.append(f"taken in the order of the model's targets: {listed}")
    if found or [*targets] == ["host"]:
        log += [f"{name}: not a target of the model ({listed}); name it as backend to use it" for name in others]
        return found
    found = _by_score(others, plugins, log)
    if {*targets} != {"host"}:
        instead = ", ".join(c.device.label for c in found) or "host, the slow references,"
        log.append(f"none of the model's targets ({listed}) is available: {instead} will compile and run it instead")
    return found


def _with_options(
    candidates: Iterable[Candidate], given: Mapping[str, Mapping[str, Any]], installed: Sequence[str], log: list[str]
) -> list[Candidate]:
    """Return the candidates with their backends' options, after the backends have checked them.

    Options of a backend that this session does not use are logged and ignored: the same program may also run on other
    machines.
    """
    fits = isinstance(given, Mapping) and all(isinstance(own, Mapping) for own in given.values())
    require(fits, "backend_options", "like {'NAME': {'option': value}}", given)
    used = {c.device.backend: c for c in candidates}
    for name, own in given.items():
        if name not in used:
            if name not in installed and name not in known_distributions("backends"):
                raise InputError(f"backend_options names {name!r}, which is not installed: {_listed(installed)}")
            log.append(f"{name}: its backend_options are ignored, because this session does not use it")
        elif own:
            if not isinstance(backend := used[name].backend, TakesOptions):
                raise InputError(f"backend {name!r} has no options of its own, given: {_listed(own)}")
            try:
                backend.check_options(own)
            except (KeyError, TypeError, ValueError) as error:  # the contract asks for an InputError
                raise InputError(f"{used[name]} refuses its options: {fault_text(error)}") from error
    return [c._replace(own_options=MappingProxyType(dict(given.get(c.device.backend, {})))) for c in candidates]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(str, names)))


def _requested_names(requested: Any) -> list[str]:
    names = [requested] if isinstance(requested, str) else requested
    fits = isinstance(names, Sequence) and bool(names) and all(isinstance(n, str) and n for n in names)
    require(fits, "backend", "'auto', a backend's name, or a list of names in order of preference", requested)
    return list(names)


def _by_score(names: Iterable[str], plugins: PluginManager, log: list[str]) -> list[Candidate]:
    """Return all available devices of backends except ``host`` and ``null``, highest score first."""
    backends, sources = available_backends(plugins), backend_sources(plugins)
    found: list[Candidate] = []
    for name in (name for name in names if name not in ("null", "host")):
        devices = probe(backends[name], sources[name], automatic=True)
        if isinstance(devices, Unavailable):
            log.append(f"{name}: not available: {_reason(devices)}")
        else:
            found += [Candidate(backends[name], device, source=sources[name]) for device in devices]
    found.sort(key=lambda c: -c.device.score)
    log += [f"{c.device.label}: {c.device.name}, score {c.device.score:g}{_tuning(c.device)}" for c in found]
    return found


def _by_name(name: str, plugins: PluginManager, targets: Mapping[str, str], log: list[str]) -> Candidate:
    backends, left_out = available_backends(plugins), left_out_backends(plugins)
    base, _, index = name.partition(":")
    if base == "auto":
        raise InputError('"auto" cannot be combined: name backends in order of preference, or use backend="auto"')
    if base in left_out:
        raise BackendUnavailableError(f"backend {base!r} is installed, but {left_out[base]}")
    if base not in backends:
        raise BackendUnavailableError(_not_installed(base, [*backends, *left_out], plugins, targets.get(base, "")))
    source = backend_sources(plugins)[base]
    if isinstance(devices := probe(backends[base], source), Unavailable):
        raise BackendUnavailableError(f"backend {base!r} ({source}) is not available: {_reason(devices)}")
    chosen = next((d for d in devices if str(d.index) == (index or "0")), None)
    if chosen is None:
        listed = ", ".join(f"{d.label} ({d.name})" for d in devices)
        raise BackendUnavailableError(f"backend {base!r} has no device {index!r}; it has: {listed}")
    log.append(f"{chosen.label}: requested by name{_tuning(chosen)}")
    return Candidate(backends[base], chosen, source=source)


def _tuning(device: Device) -> str:
    """Return the origin of what the device's choices between kernels depend on, for the log."""
    return f", tuning: {device.details['tuning']}" if "tuning" in device.details else ""


def _how_to_install(backend: str, made_with: str = "") -> str:
    """Return the command that installs a backend; ``made_with``: its package and version, as a model's file says."""
    # A file must not be able to put anything else into a command that users copy.
    stated = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*) [0-9]", made_with)
    distribution = known_distributions("backends").get(backend) or (stated and stated[1])
    return f"pip install {distribution}" if distribution else "none of Lite's packages brings it"


def _not_installed(name: str, installed: Sequence[str], plugins: PluginManager, made_with: str) -> str:
    import difflib  # not at the top: only a mistake needs it

    near = "".join(f"did you mean {each!r}? " for each in difflib.get_close_matches(name.lower(), installed, 1))
    advice = [f"{reason} (`lite plugins {package}`)" for reason, package in plugins.suspects("lite_backends")]
    advice += ["LITE_BACKENDS must also name it"] * (name not in (allowed_backends() or [name]))
    advice += [_how_to_install(name, made_with), "`lite backends` shows what is installed and what failed to load"]
    return f"backend {name!r} is not installed (installed: {_listed(installed)}): {near}{'; '.join(advice)}"


def _reason(answer: Unavailable) -> str:
    return f"{answer.reason}. {answer.remedy}" if answer.remedy else answer.reason
