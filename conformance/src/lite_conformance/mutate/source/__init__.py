"""Mutants of the source text of references and of their helpers."""

from lite_conformance.mutate.source.mutants import source_mutants

__all__ = ["source_mutants"]
