"""CI services that a new plugin is tested by, and the steps that all of them run."""

from __future__ import annotations

from dataclasses import dataclass

from lite_tools.cli.new_plugin_kinds import NewPlugin

__all__ = ["SERVICES", "Service", "ci_steps"]


@dataclass(frozen=True, slots=True)
class Service:
    """A CI service.

    Attributes:
        file: the file that it reads.
        step: a step in this file.
    """

    file: str
    step: str

    def steps(self, plugin: NewPlugin) -> str:
        """Return all steps as text."""
        return "\n".join(self.step.format(title=title, command=command) for title, command in ci_steps(plugin))


SERVICES = {
    "github": Service(".github/workflows/test.yml", "      - name: {title}\n        run: {command}"),
    "gitlab": Service(".gitlab-ci.yml", "    # {title}\n    - {command}"),
    "azure": Service("azure-pipelines.yml", "  - script: {command}\n    displayName: {title}"),
}


def ci_steps(plugin: NewPlugin) -> list[tuple[str, str]]:
    """Return the title and the command of each step. NOTE: YAML reads some characters in them, such as a colon."""
    steps = [
        ("Install", "python -m pip install '.[test]'"),
        ("Style", "ruff check . && ruff format --check ."),
        ("Types", "mypy"),
        ("Tests", "pytest --junit-xml=reports/tests.xml"),
        ("Package", "lite plugins validate ."),
    ]
    if plugin.has_backend:
        reports = "--junit reports/conformance.xml --html reports/conformance.html"
        suite = f"lite-conformance --backend {plugin.name} --quiet {reports}"
        # Machines of CI services have no such device: only there, and only code 3, is accepted.
        steps.append(("Conformance (exit code 3 means that there is no device)", f"{suite} || test $? -eq 3"))
    return steps
