"""A matrix product of another library, which a backend may offer to the lowering."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ExternalSgemm", "no_external_sgemm"]


class ExternalSgemm(NamedTuple):
    """A function with the signature of ``cblas_sgemm``.

    It must stay loaded for the life of the process, may be called by several threads at once, and starts none.

    Attributes:
        name: the library, for example ``MKL``; shown in profiles.
        address: of the function; its integers are 32 bits wide.
        convention: LLVM's name of its calling convention where that is not C's on Linux: ``win64cc``.
    """

    name: str
    address: int
    convention: str = ""


def no_external_sgemm() -> ExternalSgemm | None:
    """The answer of a backend that has none."""
    return None
