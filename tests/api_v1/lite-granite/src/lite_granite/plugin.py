"""The hooks of lite-granite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lite_core import KernelBackend, hookimpl
from lite_core.ops import OpDef
from lite_core.passes import Pass

from lite_granite.backend import Granite
from lite_granite.formats import GraniteFormat
from lite_granite.kernels import sand
from lite_granite.operators import SHRINKAGE
from lite_granite.passes import DoubleNegation, FindShrinkage

if TYPE_CHECKING:
    import click

LITE_API_VERSION = 1


@hookimpl
def lite_backends() -> Sequence[Granite | KernelBackend]:
    return [Granite(), sand]


@hookimpl
def lite_ops() -> Sequence[OpDef]:
    return [SHRINKAGE]


@hookimpl
def lite_passes() -> Sequence[Pass]:
    return [DoubleNegation(), FindShrinkage()]


@hookimpl
def lite_formats() -> Sequence[GraniteFormat]:
    return [GraniteFormat()]


@hookimpl
def lite_commands() -> Sequence[click.Command]:
    from lite_tools.commands import LazyCommand

    return [LazyCommand("granite", "Show the chip", "lite_granite.command")]
