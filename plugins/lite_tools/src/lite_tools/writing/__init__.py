"""Writing of ``.lite`` files, which :mod:`lite_core.container` reads."""

from lite_tools.writing.file_metadata import write_with_metadata
from lite_tools.writing.model_file import write_model
from lite_tools.writing.sealing import seal

__all__ = ["seal", "write_model", "write_with_metadata"]
