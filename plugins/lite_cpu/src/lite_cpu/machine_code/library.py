"""The compiled kernels of a process: taken from the cache or compiled, loaded, and called by address."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lite_cpu.machine import Machine
from lite_cpu.machine_code.image import CodeImage, CodeImageError
from lite_cpu.machine_code.loading import LoadedCode, load
from lite_cpu.sources import sources_version

if TYPE_CHECKING:
    from lite_cpu.kernels.base import Kernel
    from lite_cpu.machine_code.cache import KernelCache

__all__ = ["KernelLibrary"]

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
    """

    def __init__(self, machine: Machine, cache: KernelCache | None = None) -> None:
        self.machine = machine
        self._cache = cache
        self._lock = threading.Lock()
        self._addresses: dict[Kernel, int] = {}
        self._mapped: dict[str, _Mapped] = {}
        self._loaded: list[LoadedCode] = []

    @property
    def cache(self) -> KernelCache:
        """The cache of compiled kernels."""
        if self._cache is None:
            from lite_cpu.machine_code.cache import KernelCache, default_folder

            self._cache = KernelCache(default_folder())
        return self._cache

    @property
    def identity(self) -> str:
        """Machine and version of the code; libraries of equal identity may exchange compiled kernels."""
        return f"{self.machine.name}, lite_cpu {sources_version()}"

    def addresses(self, kernels: Iterable[Kernel]) -> dict[Kernel, int]:
        """Return the addresses of kernels; new ones are compiled and loaded."""
        with self._lock:
            found = {k: self._addresses.get(k, 0) for k in kernels}
            new = {k: k.key(self.machine) for k, address in found.items() if not address}
            if new:
                missing = {key: k for k, key in new.items() if key not in self._mapped}
                if missing:
                    requests = [(key, self._builder(k)) for key, k in missing.items()]
                    self._map(dict(zip(missing, self.cache.get_many(requests, _COMPILE_THREADS))))
                self._addresses.update((k, self._mapped[key].address) for k, key in new.items())
                found.update((k, self._addresses[k]) for k in new)
            return found

    def images(self, keys: Iterable[str]) -> dict[str, CodeImage]:
        """Return the images of loaded kernels by key, for :meth:`provide` of another library."""
        return {key: self._mapped[key].image for key in keys}

    def provide(self, images: Mapping[str, CodeImage]) -> dict[str, int]:
        """Load kernels that were compiled elsewhere and return their addresses by key; they are not compiled again.

        Raises:
            CodeLoadError: the kernels are for another processor.
            CodeImageError: a kernel has several entry points, or none.
        """
        with self._lock:
            self._map({key: image for key, image in images.items() if key not in self._mapped})
            return {key: self._mapped[key].address for key in images}

    def _map(self, images: Mapping[str, CodeImage]) -> None:
        if not images:
            return
        for key, image in images.items():
            if len(image.entries) != 1:
                raise CodeImageError(f"kernel {key}: expected one entry point, found {sorted(image.entries)}")
        loaded = load(list(images.values()))
        self._loaded.append(loaded)
        for number, (key, image) in enumerate(images.items()):
            (symbol,) = image.entries
            self._mapped[key] = _Mapped(image, loaded.address(number, symbol))

    def _builder(self, kernel: Kernel) -> Callable[[], CodeImage]:
        def build() -> CodeImage:
            # Imported here, because a warm start needs no compiler front end.
            from lite_cpu.emitter import Emitter
            from lite_cpu.machine_code.objects import compile_ir

            k = Emitter(self.machine)
            kernel.emit(k)
            return compile_ir(k.text(), self.machine, optimize=kernel.optimize)

        return build
