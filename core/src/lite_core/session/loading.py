"""``load``, the entry point of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lite_core.collector import collector_paused
from lite_core.plugins import PluginManager
from lite_core.session.opening import Model, open_model
from lite_core.session.session import MOST_PLANS, Session, Taps

__all__ = ["load"]


def load(
    model: Model,
    backend: str | Sequence[str] = "auto",
    threads: int | None = None,
    precision: str | Mapping[str, str] | None = None,
    *,
    exact: bool = False,
    tune: bool = False,
    fallback: str = "host",
    placement: Mapping[str, str] | None = None,
    optimize: bool = True,
    plans: int = MOST_PLANS,
    saved: str | None = None,
    plugins: PluginManager | None = None,
    backend_options: Mapping[str, Mapping[str, Any]] | None = None,
    reader_options: Mapping[str, Any] | None = None,
    taps: Taps | None = None,
) -> Session:
    """Load a model and return a session that runs it.

    Args:
        model: a .lite file, a file or folder that an installed plugin reads, or a graph; or the content of a file:
            bytes, any other object with the buffer protocol, or a file that is open in binary mode. Content is copied
            to a temporary file, which is deleted when the model was read. Models of several files need a path.
        backend: ``"auto"`` selects the best device for each node; for a .lite file, the devices it was converted for,
            in its order. The name of a backend or of one of its devices, ``"NAME:1"``, or several in order of
            preference, restricts the session to these (and ``host`` for nodes that they cannot run). The environment
            variable ``LITE_BACKEND`` overrides it, and ``LITE_BACKENDS`` lists the backends that may be used at all.
        threads: maximum number of threads of the backends; by default one for each core that is of use:
            not for efficient cores beside faster ones, nor above the affinity and the quota of the process.
        precision: ``"float32"``, or ``"float16"`` / ``"bfloat16"`` to let backends compute in that type; or a mapping
            of node name patterns to these, as in ``{"softmax_*": "float32", "*": "float16"}``. The first pattern that
            matches a node decides; ``"*"`` is for all others, by default ``"float32"``. Nodes in sub-graphs that one
            device runs as a whole have the precision of the node around them. By default that of a .lite file, else
            ``"float32"``.
        exact: forbid algorithms that trade accuracy for speed, such as Winograd convolution.
        tune: let backends measure which of their kernels are fastest on this machine when they first compile a layer,
            and store the result for later sessions. It takes seconds to minutes; a backend without tunable kernels
            ignores it.
        fallback: ``"never"`` forbids running nodes on ``host`` that the named backends refuse.
        placement: node name pattern to backend, for nodes that must run there.
        optimize: run the graph passes first. A .lite file is already optimized.
        plans: maximum number of cached plans; each is for one set of input shapes.
        saved: use of the code in a .lite file: ``"own"``, the default, uses code that this user made on this machine or
            trusts (`lite trust`), ``"trust"`` any code, ``"ignore"`` none. Without it, the model is compiled again. The
            environment variable ``LITE_SAVED`` sets the default.
        plugins: the plugins to use instead of the installed ones, for tests.
        backend_options: options of backends, by the backend's name: ``{"NAME": {"option": value}}``. Each backend
            checks its own options; an error message lists the valid ones.
        reader_options: options of the reader of the model's format, such as ``{"params": path}``.
        taps: patterns of values that each run returns beside the outputs, as in ``["conv_*"]``, or a mapping of
            patterns to functions that each run calls with these values; see :mod:`lite_tools.taps`. By default
            those stored in the model, which are printed; ``()`` for none.

    Raises:
        ModelFormatError: no installed reader recognises the file, or it is damaged.
        UntrustedCodeError: the code of the file is not trusted, and nothing else here can run the model.
        UnsupportedOperatorError: operators cannot be lowered or run; all are listed.
        InputError: an argument or option is unknown or invalid, or there is no such file or folder.
        BackendUnavailableError: a backend requested by name cannot be used.
    """
    with collector_paused():
        opened = open_model(model, plugins=plugins, reader_options=reader_options)
        placed = partial(Session, backend=backend, fallback=fallback, placement=placement, plugins=plugins)
        computing = partial(placed, threads=threads, precision=precision, exact=exact, tune=tune, optimize=optimize)
        return computing(opened, plans=plans, saved=saved, backend_options=backend_options, taps=taps)
