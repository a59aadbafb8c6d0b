"""The values that a shell offers for an option or an argument, by the kind of what it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from click.shell_completion import CompletionItem

__all__ = ["offered"]

Names = Mapping[str, Mapping[str, str]]

#: Endings of files that commands take as inputs; `lite run --help` lists them.
_ARRAYS = (".npy", ".npz", ".png", ".jpg", ".jpeg", ".bmp", ".webp")


def offered(kind: str, names: Names, incomplete: str) -> list[CompletionItem]:
    """Return what completes a text; an item of the type ``files`` lets the shell offer files with some endings.

    Args:
        kind: ``backend``, ``operator`` or ``precision`` for a name; ``backends`` for names separated by commas;
            ``models``, ``arrays``, ``file`` or ``folder`` for a path.
        names: for each kind of name, the names with a text about each.
        incomplete: what is typed so far.
    """
    if kind in ("file", "folder"):
        return [CompletionItem(incomplete, type="dir" if kind == "folder" else "file")]
    if kind in ("models", "arrays"):
        endings = names["suffix"] if kind == "models" else _ARRAYS
        return [CompletionItem("|".join(ending.removeprefix(".") for ending in endings), type="files")]
    if kind == "backends":
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        known = {name: text for name, text in names["backend"].items() if name not in taken}
        return _named({**({} if comma else {"auto": ""}), **known}, last, f"{before}{comma}")
    if kind == "precision":
        before, equals, last = incomplete.rpartition("=")
        return _named(names["precision"], last, f"{before}{equals}")
    return _named(names.get(kind, {}), incomplete)


def _named(known: Mapping[str, str] | Iterable[str], incomplete: str, prefix: str = "") -> list[CompletionItem]:
    """Return the names that begin with a text, in any case, behind a prefix that stays as it is."""
    found = dict(known) if isinstance(known, Mapping) else dict.fromkeys(known, "")
    return [
        CompletionItem(prefix + name, help=text or None)
        for name, text in found.items()
        if name.lower().startswith(incomplete.lower())
    ]
