"""Show that one distribution works in the environment of this interpreter: ``python smoke.py lite-x86``.

``scripts/release.py`` runs it where only this distribution and what it requires are installed, so it imports nothing
of the workspace. It imports the package, reads the metadata, loads the plugins, and computes a softmax on ``host`` and
on each backend of the distribution that has a device here.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util

import numpy as np

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.plugins import PluginManager, backend_sources, default_plugins, installed_backends


def check(distribution: str) -> list[str]:
    """Return one line for each thing that was done.

    Raises:
        Exception: something does not work.
    """
    package = importlib.import_module(distribution.replace("-", "_"))
    metadata = importlib.metadata.metadata(distribution)
    done = [f"{distribution} {metadata['Version']} imported from {package.__name__}"]
    plugins = default_plugins()
    own = {name for name, source in backend_sources(plugins).items() if source.startswith(f"{distribution} ")}
    for backend in sorted({"host", *own} - {"null"}):  # null computes nothing
        found = installed_backends(plugins)[backend].probe()
        if isinstance(found, Unavailable):
            done.append(f"{backend}: not available here: {found.reason}")
        else:
            compute(backend, plugins)
            done.append(f"{backend}: computes")
    # Only lite-tools asks for commands, and they import it.
    with_tools = importlib.util.find_spec("lite_tools") is not None
    for hook in ("lite_formats", *(["lite_commands"] if with_tools else [])):
        names = [item.name for record, item in plugins.ask(hook) if record.distribution == distribution]
        done += [f"{hook}: {', '.join(sorted(names))}"] if names else []
    for entry in importlib.metadata.distribution(distribution).entry_points:
        if entry.group != "pytest11":  # pytest loads these, and it may be an extra
            entry.load()
            done.append(f"{entry.group}: {entry.name}")
    failed = [f"{record.label}: {record.error}" for record in plugins.records() if record.failed]
    if failed:
        raise RuntimeError(f"plugins failed: {'; '.join(failed)}")
    return done


def compute(backend: str, plugins: PluginManager) -> None:
    """Compute a softmax on one backend alone, and compare it with NumPy's."""
    b = lite.GraphBuilder("smoke")
    b.output(b.add("Softmax", [b.input("x", "float32", ["n", 3])]), "y")
    fallback = "host" if backend == "host" else "never"
    session = lite.load(b.build(), backend=backend, fallback=fallback, plugins=plugins)
    x = np.array([[0.0, 1.0, -2.0], [3.0, 3.0, 3.0]], np.float32)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(session.run(x=x)["y"], e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("distribution", help="such as lite-x86")
    print("\n".join(check(parser.parse_args().distribution)))


if __name__ == "__main__":
    main()
