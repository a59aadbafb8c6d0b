"""Targets: entries of the caches on disk, which are read and never executed, and the user's configuration."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fuzz.bundles import pack, unpack, write_files
from fuzz.environment import environment
from fuzz.mutation import mutated_bytes, mutated_json
from fuzz.targets import FuzzTarget
from lite_compiler.disk_cache import DiskCache
from lite_core import storage
from lite_core.container import trust
from lite_core.errors import LiteError

__all__ = ["Configuration", "KernelEntry", "OtherEntries"]


class KernelEntry(FuzzTarget):
    """An entry of the cache of CPU kernels. The code in it is not mapped, and nothing is executed."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        from lite_cpu.machine_code import cache, image

        self._cache_class, self._image_class = cache.KernelCache, image.CodeImage
        self._image = self._image_class(b"\xc3" * 80, {"kernel": 0, "other": 64}, "x86_64")
        with tempfile.TemporaryDirectory() as folder:
            self._cache_class(Path(folder)).get("key", lambda: self._image)
            (file,) = Path(folder).glob("*.kernel")
            self._name, self._entry = file.name, file.read_bytes()

    def seeds(self) -> Iterable[bytes]:
        """Return an entry, and an image as it is inside."""
        yield self._entry
        yield self._image.to_bytes()

    def run(self, data: bytes, folder: Path) -> None:
        """Read the bytes as an entry of the cache, and as an image."""
        write_files({self._name: data}, folder)
        assert isinstance(self._cache_class(folder).get("key", lambda: self._image), self._image_class)
        self._image_class.from_bytes(data)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change bytes; mostly repair the checksum of an entry."""
        head = 12  # magic and the length of the key; the checksum and the content follow
        if chance.random() < 0.2 or len(data) < head + 32 or not data.startswith(self._entry[:8]):
            return mutated_bytes(data, chance)
        content = mutated_bytes(data[head + 32 :], chance)
        return data[:head] + hashlib.sha256(content).digest() + content


class OtherEntries(FuzzTarget):
    """Tables of tuned kernels, measurements of MKL and processors, and OpenCL binaries, which no driver is given."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        from lite_compiler.tournaments.choice import Choice
        from lite_cpu.machine import X86_64_V3
        from lite_cpu.tuning import Tuning
        from lite_opencl.programs import binary_cache
        from lite_opencl.tuning import table
        from lite_x86 import mkl_choice, tunings

        # The two fields of a device that name its file.
        device: Any = SimpleNamespace(identity="a device", compute_units=4)
        self._device = device
        self._tables, self._choice, self._binaries = table.TuningTable, Choice, binary_cache.BinaryCache
        self._read_times = mkl_choice._read_times
        self._read_tuning, self._machine, self._tuning = tunings.read, X86_64_V3, Tuning
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self._tables(self._device, folder).add("conv", self._choice("a", 1e-3, "b", 2e-3))
            self._binaries(folder).write("program", b"binary")
            tunings.write(X86_64_V3, Tuning(is_measured=True), self._json(folder))
            self._files = {file.name: file.read_bytes() for file in folder.iterdir()}
        self._files["times.json"] = json.dumps({"mkl_seconds": 1e-3, "own_seconds": 2e-3}).encode()

    def seeds(self) -> Iterable[bytes]:
        """Return one entry of each kind."""
        for name, content in self._files.items():
            yield pack({name: content})

    def run(self, data: bytes, folder: Path) -> None:
        """Read the entry."""
        for name in self._files:
            (folder / name).unlink(missing_ok=True)
        try:
            write_files({name: content for name, content in unpack(data).items() if name in self._files}, folder)
        except ValueError:
            return
        table = self._tables(self._device, folder)
        table.find("conv", ["a", "b"])
        table.describe()
        self._binaries(folder).read("program")
        self._read_times(self._json(folder), "times")
        assert isinstance(self._read_tuning(self._machine, self._json(folder)), self._tuning | None)

    def _json(self, folder: Path) -> DiskCache:
        return DiskCache(folder, ".json", logging.getLogger("lite.fuzz"))

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change the entry: JSON by its structure, a binary by its bytes, with its checksum."""
        try:
            files = unpack(data)
        except ValueError:
            return mutated_bytes(data, chance)
        for name, content in files.items():
            if name.endswith(".json"):
                files[name] = mutated_json(content, chance)
            elif chance.random() < 0.5 and len(content) > 40:
                binary = mutated_bytes(content[40:], chance)
                files[name] = content[:8] + hashlib.sha256(binary).digest() + binary
            else:
                files[name] = mutated_bytes(content, chance)
        return pack(files)


class Configuration(FuzzTarget):
    """The files in the configuration folder: settings, the key of the seals, and the list of trusted code."""

    allowed = (LiteError,)

    def seeds(self) -> Iterable[bytes]:
        """Return settings of the core and of plugins, with a key and a list."""
        settings = {"cache_folder": "/tmp/x", "cache_limit_mib": 64, "trusted": ["a" * 64], "x86": {"mkl": "never"}}
        files = {"config.json": json.dumps(settings).encode(), "key": b"k" * 32, "trusted": b"b" * 64 + b" 'm.lite'\n"}
        yield pack(files)
        yield pack({"config.json": b'{"cache_folder": "off", "cache_limit_mib": "off"}'})

    def run(self, data: bytes, folder: Path) -> None:
        """Read every setting of the core, and ask whether some code is trusted."""
        for name in ("config.json", "key", "trusted"):
            (folder / name).unlink(missing_ok=True)
        try:
            files = unpack(data)
        except ValueError:
            return
        write_files({name: files[name] for name in files if name in ("config.json", "key", "trusted")}, folder)
        with environment(LITE_CONFIG_DIR=str(folder), LITE_CACHE_DIR=None, LITE_CACHE_LIMIT=None):
            _forget_settings()
            dict(storage.configuration())
            storage.cache_folder("kernels")
            storage.cache_limit()
            assert trust.is_trusted("c" * 64, "") in (True, False)
            assert trust.is_trusted("b" * 64, "00") in (True, False)
        _forget_settings()

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change one of the files."""
        try:
            files = unpack(data)
        except ValueError:
            return mutated_bytes(data, chance)
        if files:
            name = chance.choice([*files, "config.json"])
            change = mutated_json if name == "config.json" else mutated_bytes
            files[name] = change(files.get(name, b"{}"), chance)
        return pack(files)


def _forget_settings() -> None:
    """Forget settings, which are read once in each process."""
    for kept in vars(storage).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()
