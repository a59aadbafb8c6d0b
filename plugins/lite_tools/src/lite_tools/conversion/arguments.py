"""Checks of the arguments of ``convert`` before it starts long work."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lite_core.checks import path_of, require
from lite_core.errors import InputError
from lite_core.plugins import PluginManager

__all__ = ["check_kinds", "output_path"]


def _is_text_or_texts(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, Sequence) and all(isinstance(text, str) for text in given))


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 1


def _is_counts(given: Any) -> bool:
    is_several = isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 0
    return given is None or _is_count(given) or (is_several and all(map(_is_count, given)))


def _is_shapes(given: Any) -> bool:
    is_several = isinstance(given, Sequence) and not isinstance(given, str)
    return given is None or isinstance(given, Mapping) or (is_several and all(isinstance(g, Mapping) for g in given))


def _is_share(given: Any) -> bool:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return given is None or (is_number and given >= 0 and math.isfinite(given))


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool) and not math.isnan(given)


def _is_seed(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool)


#: For each argument: the check of its kind, and the kind in words.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "targets": (_is_text_or_texts, "'auto' or names of backends, such as ['x86', 'opencl']"),
    "cpu": (_is_text_or_texts, "names of levels of processors"),
    "shapes": (_is_shapes, "a mapping of input names to shapes, or a list of such mappings"),
    "threads": (_is_counts, "a positive whole number, or several of them"),
    "data": (lambda given: given is None or isinstance(given, Mapping), "a mapping of input names to arrays"),
    "limit": (_is_share, "a share of an output's range, such as 1e-3"),
    "seed": (_is_seed, "a whole number, at least 0"),
    "percentile": (_is_share, "a number of percent, such as 99.99"),
    "calibration_samples": (lambda given: given is None or _is_count(given), "a positive whole number"),
    "keep_weights": (lambda given: not isinstance(given, str) and _is_text_or_texts(given), "a list of patterns"),
    "weights_block": (_is_count, "a multiple of 16"),
    "keep_float": (lambda given: not isinstance(given, str) and _is_text_or_texts(given), "a list of patterns"),
    "min_snr": (lambda given: given is None or _is_number(given), "a number of decibels"),
    "prepare": (lambda given: given is None or _is_flag(given), "True, False or None"),
    "plugins": (lambda given: given is None or isinstance(given, PluginManager), "a PluginManager"),
    "progress": (lambda given: given is None or callable(given), "a function that takes a text"),
    **dict.fromkeys(("strip", "exact", "tune", "allow_fallback", "verify", "force"), (_is_flag, "True or False")),
}


def check_kinds(**given: object) -> None:
    """Check that arguments of ``convert``, given by their names, are of the right kind.

    Raises:
        InputError: names an argument that is not, with what is expected.
    """
    for name, value in given.items():
        fits, wanted = _KINDS[name]
        require(fits(value), name, wanted, value)


def output_path(given: object) -> Path:
    """Return the path of the file to write.

    Raises:
        InputError: it is no path, a folder, a pipe or a device, its folder does not exist, or its ending is not .lite.
    """
    path = path_of("output", given)
    folder = str(path.parent)
    if path.suffix.lower() not in ("", ".lite"):
        raise InputError(
            f"output {str(path)!r:.300}: a .lite file is written, and the name ends in {path.suffix!r:.40}; end it in "
            ".lite (`lite convert` also writes the formats of plugins, such as model.onnx)"
        )
    if not os.path.isdir(folder):
        raise InputError(f"output {str(path)!r:.300} cannot be written: there is no folder {folder!r:.300}")
    if os.path.isdir(path):
        raise InputError(f"output {str(path)!r} is a folder; name a file, such as {str(path / 'model.lite')!r}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"output {str(path)!r} is a pipe or a device, which a file would replace; name a file")
    try:
        path.with_name(f"{path.name}{'x' * _LONGEST_ENDING}").lstat()  # names of temporary files are longer
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"output {str(path)!r:.300} cannot be written: {error.strerror}") from None
    return path


#: Characters that temporary files have behind the name of the file that they become.
_LONGEST_ENDING = 40
