"""Adapters: what older versions of operators said differently, from opset 1 on.

An adapter that is registered with ``until=V`` takes what nodes of opset V and older say to what V + 1 says; the
adapters of an operator run one after another, the oldest first, until the node means what it means at opset 22. An
operator that has no adapter for a version means there what it means now: ONNX only added element types to it, or
attributes and inputs that can be left out. ``tests/test_versions_table.py`` holds that no version is forgotten. The
modules are one table, a family of changes each; the texts that they follow are ONNX's (Operators.md, Changelog.md), and
ONNX Runtime where these leave a question open.
"""
