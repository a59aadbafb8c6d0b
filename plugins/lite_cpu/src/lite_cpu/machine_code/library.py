"""The compiled kernels of a process: taken from the cache or compiled, loaded, and called by address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lite_core.forking import new_lock, undivided
from lite_cpu.machine import Machine
from lite_cpu.machine_code.image import CodeImage, CodeImageError
from lite_cpu.machine_code.loading import LoadedCode, load

if TYPE_CHECKING:
    from lite_cpu.kernels.base import Kernel
    from lite_cpu.machine_code.cache import KernelCache
    from lite_cpu.runtime.native import Native

__all__ = ["KernelLibrary", "kernel_addresses"]

#: The address of kernels that are compiled to be saved and do not run here: no code, but neither a null pointer.
_NOT_LOADED = 1

#: Number of threads that compile. LLVM runs without the GIL, emitting IR does not.
_COMPILE_THREADS = 2


class _Mapped(NamedTuple):
    """A kernel in executable memory."""

    image: CodeImage
    address: int


class KernelLibrary:
    """Addresses of kernels compiled for one machine. Loaded kernels stay in memory as long as the library.

    Args:
        machine: the machine that kernels are compiled for.
        cache: the cache of compiled kernels; by default the one in the default folder, created when first used.
        runs_here: False if this processor cannot run the machine's kernels, which are compiled for a model file.
    """

    def __init__(self, machine: Machine, cache: KernelCache | None = None, *, runs_here: bool = True) -> None:
        self.machine = machine
        self.runs_here = runs_here
        self._cache = cache
        self._lock = new_lock()
        self._addresses: dict[Kernel, int] = {}
        self._mapped: dict[str, _Mapped] = {}
        self._loaded: list[LoadedCode] = []

    @property
    def native(self) -> Native | None:
        """The runtime that the kernels run in; None for the one that is compiled on this machine."""
        return None

    @property
    def cache(self) -> KernelCache:
        """The cache of compiled kernels."""
        if self._cache is None:
            from lite_cpu.machine_code.cache import KernelCache, default_folder

            self._cache = KernelCache(default_folder())
        return self._cache

    def addresses(self, kernels: Iterable[Kernel]) -> dict[Kernel, int]:
        """Return the addresses of kernels; new ones are compiled, and loaded if they run here."""
        with undivided(), self._lock:
            found = {k: self._addresses.get(k, 0) for k in kernels}
            new = {k: k.key(self.machine) for k, address in found.items() if not address}
            if new:
                missing = {key: k for k, key in new.items() if key not in self._mapped}
                if missing:
                    requests = [(key, partial(_compile, k, self.machine)) for key, k in missing.items()]
                    self._map(dict(zip(missing, self.cache.get_many(requests, _COMPILE_THREADS))))
                self._addresses.update((k, self._mapped[key].address) for k, key in new.items())
                found.update((k, self._addresses[k]) for k in new)
            return found

    def images(self, keys: Iterable[str]) -> dict[str, CodeImage]:
        """Return the images of kernels by key. All were compiled on this machine: none comes from a model file."""
        return {key: self._mapped[key].image for key in keys}

    def _map(self, images: Mapping[str, CodeImage]) -> None:
        if not images:
            return
        if not self.runs_here:
            self._mapped.update((key, _Mapped(image, _NOT_LOADED)) for key, image in images.items())
            return
        loaded = load(list(images.values()))
        self._loaded.append(loaded)
        addresses = kernel_addresses(images, loaded)
        self._mapped.update((key, _Mapped(image, addresses[key])) for key, image in images.items())


def kernel_addresses(images: Mapping[str, CodeImage], loaded: LoadedCode) -> dict[str, int]:
    """Return the addresses of kernels by key; ``loaded`` contains their images in the same order.

    Raises:
        CodeImageError: a kernel has several entry points, or none.
    """
    addresses = {}
    for number, (key, image) in enumerate(images.items()):
        if len(image.entries) != 1:
            raise CodeImageError(f"kernel {key}: expected one entry point, found {sorted(image.entries)}")
        (symbol,) = image.entries
        addresses[key] = loaded.address(number, symbol)
    return addresses


def _compile(kernel: Kernel, machine: Machine) -> CodeImage:
    # Imported here, because a warm start needs no compiler front end.
    from lite_cpu.emitter import Emitter
    from lite_cpu.machine_code.objects import compile_ir

    k = Emitter(machine)
    kernel.emit(k)
    return compile_ir(k.text(), machine, optimize=kernel.optimize)
