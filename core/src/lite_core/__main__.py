"""``python -m lite_core`` is the command ``lite``."""

from lite_core.launcher import main

main()
