"""Sessions, plans, profiles, bindings, graphs and reports as HTML, for notebooks."""

from lite_tools.notebook.views import html

__all__ = ["html"]
