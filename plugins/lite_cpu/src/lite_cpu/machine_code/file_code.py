"""The code of model files in executable memory, apart from the code that this process compiled.

A file's code is found by its content only, so that it serves the programs of that file and of files with the same code,
and no others: neither models that are compiled here nor files that are written here.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Sequence

from lite_core.forking import new_lock
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.library import kernel_addresses
from lite_cpu.machine_code.loading import LoadedCode, load
from lite_cpu.runtime.native import Native, load_native

__all__ = ["FileCode", "code_of_file"]


class FileCode:
    """The kernels and the runtime of a saved program.

    Attributes:
        addresses: the address of each kernel, by its key.
        native: the runtime.
    """

    def __init__(self, kernels: dict[str, CodeImage], runtime: bytes) -> None:
        self._loaded: LoadedCode = load(list(kernels.values()))
        self.addresses = kernel_addresses(kernels, self._loaded)
        self.native: Native = load_native(runtime)


_lock = new_lock()
_loaded: weakref.WeakValueDictionary[bytes, FileCode] = weakref.WeakValueDictionary()


def code_of_file(keys: Sequence[str], kernels: Sequence[bytes], runtime: bytes) -> FileCode:
    """Load the code of a saved program; programs with equal code share it as long as one of them lives.

    Args:
        keys: the key of each kernel.
        kernels: the image of each kernel, as bytes.
        runtime: the image of the runtime.

    Raises:
        CodeLoadError: the code is for another processor.
        CodeImageError: an image is damaged, or a kernel does not have exactly one entry point.
    """
    digest = hashlib.sha256()
    for part in (*(key.encode() for key in keys), *kernels, runtime):
        digest.update(len(part).to_bytes(8, "little") + part)
    with _lock:
        code = _loaded.get(digest.digest())
        if code is None:
            images = {key: CodeImage.from_bytes(kernel) for key, kernel in zip(keys, kernels)}
            code = _loaded[digest.digest()] = FileCode(images, runtime)
        return code
