"""The compiled kernels of a process: found in the cache or compiled, mapped, and called by address."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from lite_cpu.cache import KernelCache, code_version, default_folder
from lite_cpu.image import CodeImage
from lite_cpu.kernels.base import Kernel
from lite_cpu.loading import LoadedCode, load
from lite_cpu.machine import Machine

__all__ = ["KernelLibrary"]

#: Threads that compile: LLVM runs outside the interpreter's lock, emitting does not.
_COMPILE_THREADS = 2


class KernelLibrary:
    """Addresses of kernels for one machine. What is loaded stays as long as the library."""

    def __init__(self, machine: Machine, cache: KernelCache | None = None) -> None:
        self.machine = machine
        self.cache = cache or KernelCache(default_folder())
        self._lock = threading.Lock()
        self._addresses: dict[Kernel, int] = {}
        self._images: dict[Kernel, CodeImage] = {}
        self._loaded: list[LoadedCode] = []
        self._provided: dict[str, CodeImage] = {}
        self._peak_flops = 0.0

    @property
    def identity(self) -> str:
        """What kernels must have in common to be exchanged with another library: the machine and the code's version."""
        return f"{self.machine.name}, {code_version()}"

    def provide(self, images: Mapping[str, CodeImage]) -> None:
        """Take compiled kernels by key from elsewhere, for example from a model file, instead of compiling them."""
        with self._lock:
            self._provided.update(images)

    def peak_flops(self) -> float:
        """Floating-point operations that one core can do in a second; measured once."""
        from lite_cpu.peak import measure_peak_flops

        self._peak_flops = self._peak_flops or measure_peak_flops(self)
        return self._peak_flops

    def addresses(self, kernels: Iterable[Kernel]) -> dict[Kernel, int]:
        """The entry points of kernels, compiling and mapping those that are new."""
        with self._lock:
            found = {k: self._addresses.get(k, 0) for k in kernels}
            new = [k for k, address in found.items() if not address]
            if new:
                keys = {k: k.key(self.machine) for k in new}
                images = {k: self._provided[key] for k, key in keys.items() if key in self._provided}
                requests = [(k, (key, self._builder(k))) for k, key in keys.items() if k not in images]
                compiled = self.cache.get_many([r for _, r in requests], _COMPILE_THREADS)
                images.update((k, image) for (k, _), image in zip(requests, compiled))
                self._map(images)
                found.update((k, self._addresses[k]) for k in new)
            return found

    def images(self, kernels: Iterable[Kernel]) -> dict[str, CodeImage]:
        """The code of kernels that have been loaded, by key, for :meth:`provide` elsewhere."""
        return {k.key(self.machine): self._images[k] for k in kernels}

    def forget_peak(self) -> None:
        """Measure the peak anew when it is next asked for."""
        self._peak_flops = 0.0

    def _map(self, images: dict[Kernel, CodeImage]) -> None:
        loaded = load(list(images.values()))
        self._loaded.append(loaded)
        self._images.update(images)
        self._addresses.update((k, loaded.address(i, k.symbol)) for i, k in enumerate(images))

    def _builder(self, kernel: Kernel) -> Callable[[], CodeImage]:
        def build() -> CodeImage:
            # Imported late: a warm start needs no compiler front end.
            from lite_cpu.emit import Emitter
            from lite_cpu.objects import compile_ir

            k = Emitter(self.machine)
            kernel.emit(k)
            return compile_ir(k.text(), self.machine, optimize=kernel.optimize)

        return build
