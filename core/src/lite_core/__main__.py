"""``python -m lite_core`` is the command ``lite``."""

from lite_tools.cli import main

main()
