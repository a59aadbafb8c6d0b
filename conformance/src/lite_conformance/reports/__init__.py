"""A run as people and other programs want it: a terminal summary, one HTML page, JUnit XML."""

from __future__ import annotations

from lite_conformance.reports.html import write_html
from lite_conformance.reports.junit import write_junit
from lite_conformance.reports.terminal import print_summary

__all__ = ["print_summary", "write_html", "write_junit"]
