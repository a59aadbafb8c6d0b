"""Model file formats: the contract of readers and writers, and the choice of a reader by a file's content."""

from lite_core.formats.choosing import FoundModel, find_model, read_model
from lite_core.formats.contract import Format, WritesModels

__all__ = ["Format", "FoundModel", "WritesModels", "find_model", "read_model"]
