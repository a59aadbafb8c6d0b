"""Program that lays out a graph: it reads Graphviz's language, and writes JSON; its arguments become ``sys.path``."""

from __future__ import annotations

import sys


def main() -> None:
    """Lay out the graph of the standard input."""
    sys.path[:] = sys.argv[1:]
    import pygraphviz

    graph = pygraphviz.AGraph(string=sys.stdin.read())
    sys.stdout.buffer.write(graph.draw(format="json", prog="dot"))


if __name__ == "__main__":
    main()
