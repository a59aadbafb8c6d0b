"""Loading a model: the door to everything else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lite_core.collector import collector_paused
from lite_core.ir import Graph
from lite_core.plugins import PluginManager
from lite_core.session.opening import open_model
from lite_core.session.session import MOST_PLANS, Session

__all__ = ["load"]


def load(
    model: str | os.PathLike[str] | Graph,
    backend: str | Sequence[str] = "auto",
    threads: int | None = None,
    precision: str = "float32",
    *,
    exact: bool = False,
    tune: bool = False,
    fallback: str = "host",
    placement: Mapping[str, str] | None = None,
    optimize: bool = True,
    plans: int = MOST_PLANS,
    plugins: PluginManager | None = None,
    backend_options: Mapping[str, Mapping[str, Any]] | None = None,
    reader_options: Mapping[str, Any] | None = None,
) -> Session:
    """Load a model and prepare it for running.

    Args:
        model: a .lite file, a file or folder that an installed plugin reads, or a graph.
        backend: ``"auto"`` takes the best device for each node, or those that a .lite file was made for, in its order;
            the name of a backend or of one of its devices, ``"NAME:1"``, or several in order of preference, uses these
            only (and ``host`` for what they cannot run). From outside, ``LITE_BACKEND`` overrides it, and
            ``LITE_BACKENDS`` names the backends that may be used at all.
        threads: how many threads the backends may use; all processors when omitted.
        precision: ``"float32"``, or ``"float16"`` / ``"bfloat16"`` to let backends compute in that type.
        exact: forbid algorithms that trade accuracy for speed, such as Winograd's convolution.
        tune: let backends measure which of their kernels are fastest on this machine, the first time that they meet a
            layer, and keep that for later sessions. It takes seconds to minutes; a backend that has nothing to measure
            ignores it.
        fallback: ``"never"`` forbids ``host`` to run what the named backends cannot.
        placement: node name pattern to backend, for nodes that must run there.
        optimize: run the graph passes first; those of a .lite file were run when it was made.
        plans: how many plans, one for each set of input shapes, are kept at most.
        plugins: the plugins to use instead of the installed ones, for tests.
        backend_options: options of backends, by the backend's name: ``{"NAME": {"option": value}}``. Each backend
            checks its own and says which it has.
        reader_options: options of the reader of the model's format, such as ``{"params": path}``.

    Raises:
        ModelFormatError: the file is not a model that can be read here, or is damaged.
        UnsupportedOperatorError: operators cannot be lowered or run; all are listed.
        InputError: an argument or option is unknown or does not fit.
        BackendUnavailableError: a backend asked for by name cannot be used.
    """
    with collector_paused():
        return Session(
            open_model(model, plugins=plugins, reader_options=reader_options),
            backend=backend,
            threads=threads,
            precision=precision,
            exact=exact,
            tune=tune,
            fallback=fallback,
            placement=placement,
            optimize=optimize,
            plans=plans,
            plugins=plugins,
            backend_options=backend_options,
        )
