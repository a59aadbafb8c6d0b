"""The conformance suite as tests of this package."""

from lite_conformance.pytest_plugin import conformance_tests

test_conformance = conformance_tests("granite", level="L1", cases=["probe[*"])
