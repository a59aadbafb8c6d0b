"""A matrix product of another library, which a backend may offer to the lowering."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ExternalSgemm", "no_external_sgemm"]


class ExternalSgemm(NamedTuple):
    """A function with the signature of ``cblas_sgemm``.

    It must stay loaded for the lifetime of the process, allow calls from several threads at once, and start no threads.

    Attributes:
        name: the library, for example ``MKL``; shown in profiles.
        address: address of the function; its integers are 32 bits wide.
        convention: LLVM's name of its calling convention if that differs from C's on Linux: ``win64cc``.
    """

    name: str
    address: int
    convention: str = ""


def no_external_sgemm() -> ExternalSgemm | None:
    """Return None: the backend offers no matrix product of another library."""
    return None
