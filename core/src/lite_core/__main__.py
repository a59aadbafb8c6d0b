"""``python -m lite_core``, the same as the command ``lite``."""

from lite_core.launcher import main

main()
