"""Model file formats: the contract of readers and writers, and choosing one for a file by its content."""

from lite_core.formats.formats import Format, read_model

__all__ = ["Format", "read_model"]
