"""The page of a report that says what happened and how to repeat it."""

from __future__ import annotations

from typing import Protocol

from lite_tools.reporting.processes import End

__all__ = ["replay_page"]


class _Result(Protocol):
    """The part of a report's result that the page tells."""

    outcome: str
    summary: str
    command: str
    replay: str
    node: list[str]
    node_command: str
    node_replay: str


def replay_page(result: _Result, end: End) -> str:
    """Return the page in Markdown.

    Args:
        result: the report's result.
        end: the end of the process that ran the model.
    """
    lines = ["# What happened", "", f"{result.summary}.", "", "# Repeat it", ""]
    if not result.command:
        lines += ["The model could not be read, so that there is nothing to run: see `error.txt` and `graph.txt`."]
        return "\n".join([*lines, ""])
    lines += ["Unpack this file into an empty folder, and run there:", "", f"    {result.command}", ""]
    lines += [_tried(result.replay, result.outcome)]
    if result.node_replay:
        lines += ["", f"The kernel that failed computes {', '.join(result.node)}. These nodes by themselves:", ""]
        lines += [f"    {result.node_command}", "", _tried(result.node_replay, result.outcome)]
    if end.kind == "crashed":
        lines += ["", "`LITE_LOG=debug` before the command shows each kernel before it starts: the last one crashed."]
    return "\n".join([*lines, ""])


def _tried(found: str, expected: str) -> str:
    """Return a sentence about the trial of a command."""
    words = {"ran": "ran without an error", "failed": "failed", "crashed": "crashed", "hung": "did not end in time"}
    if found == expected:
        return f"Tried when this report was made: it {words[found]}, too."
    return f"Tried when this report was made: it {words[found]}, so it does NOT repeat what happened."
