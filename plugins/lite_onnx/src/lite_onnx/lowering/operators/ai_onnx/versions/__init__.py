"""Adapters from older versions of operators, from opset 1 on.

An adapter registered with ``until=V`` converts nodes of opset V and older to the meaning of opset V + 1. The adapters
of an operator run one after another, oldest first, until the node has the meaning of opset 22. An operator without an
adapter for a version has the same meaning there: ONNX only added element types, or optional attributes and inputs.
``tests/test_versions_table.py`` checks that no version is missing. Each module contains one kind of change. The sources
are ONNX's Operators.md and Changelog.md, and ONNX Runtime where these leave a question open.
"""
