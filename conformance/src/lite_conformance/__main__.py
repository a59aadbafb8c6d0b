"""``python -m lite_conformance`` is ``lite-conformance``."""

from lite_conformance.cli import main

main()
