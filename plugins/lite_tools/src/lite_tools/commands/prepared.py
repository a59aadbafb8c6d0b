"""Notes on model files for devices that cannot compile."""

from __future__ import annotations

from lite_core.backend import No, Unavailable
from lite_core.container import TargetRecord
from lite_core.plugins import available_backends, default_plugins
from lite_core.saved_kernels import SavesKernels
from lite_core.schedule import Candidate
from lite_core.schedule.placement import ask
from lite_core.schedule.probing import probe
from lite_core.session import Session

__all__ = ["compiler_notes"]


def compiler_notes(session: Session) -> list[str]:
    """Return a line for each device of a session that runs only what its model file brings, because nothing compiles.

    Args:
        session: a session of a model file, or of another model, for which there are no lines.
    """
    lines: list[str] = []
    for record in session.file.targets if session.file else ():
        reason = _refusal_of_all(record.backend, session) if record.plans or record.kernels else ""
        if reason and record.backend in session.devices:
            lines.append(f"{record.backend}: {reason}. {_prepared(record)}")
    return lines


def _refusal_of_all(name: str, session: Session) -> str:
    """Return why a backend could compile no node of a model; empty if it could compile some."""
    backend = available_backends(default_plugins()).get(name)
    devices = probe(backend) if backend is not None else Unavailable("it is not installed")
    if backend is None or isinstance(devices, Unavailable) or not isinstance(backend, SavesKernels):
        return ""
    answers = [ask(Candidate(backend, devices[0]), node) for node in session.graph.nodes]
    reasons = [answer.reason for answer in answers if isinstance(answer, No)]
    return reasons[0] if reasons and len(reasons) == len(answers) else ""


def _prepared(record: TargetRecord) -> str:
    shapes = dict.fromkeys(
        " ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in plan.shapes.items()) for plan in record.plans
    )
    others = "by the kernels in the file, and on host where it lacks one" if record.kernels else "not at all"
    return f"Prepared are {', '.join(shapes) or 'no sizes'}; other sizes run {others}"
