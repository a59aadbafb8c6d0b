"""Writing of ``.lite`` files, which :mod:`lite_core.container` reads."""

from lite_tools.writing.model_file import write_model
from lite_tools.writing.sealing import seal

__all__ = ["seal", "write_model"]
