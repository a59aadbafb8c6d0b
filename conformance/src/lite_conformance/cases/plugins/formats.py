"""Checks of the formats of a package: files that it brings, damaged copies of them, foreign files, and round trips.

Files are read and computed with the references, without a backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.graphs.draft import GraphCase
from lite_conformance.cases.plugins.brought import file_tables
from lite_conformance.cases.plugins.damage import check_flipped, check_truncated
from lite_conformance.cases.plugins.files import FileCase
from lite_conformance.cases.plugins.foreign_files import foreign_files
from lite_conformance.cases.plugins.passes import suite_graphs
from lite_conformance.cases.plugins.reading import as_arrays, claims, computed, opened
from lite_conformance.judge.checks import Allowance, check_expected, check_outcome
from lite_conformance.judge.compare import Array, Expected
from lite_conformance.judge.outcome import Failure, Outcome, Refused, Skipped, merged
from lite_core.errors import LiteError, UnsupportedOperatorError
from lite_core.formats import Format, WritesModels
from lite_core.ir import Graph

__all__ = ["check_file", "check_foreign_files", "check_round_trip", "check_written_again", "format_cases"]

#: Damaged copies for each drawn example that the settings ask for.
_COPIES_PER_EXAMPLE = 10
#: The graph whose file is damaged if the package brings no file and the format can be written.
_WRITTEN = "f32,graph-conv-bn"


def format_cases(format: Format) -> Iterator[Case]:
    """Yield the cases of a format: ``format[acme,LABEL]``, ``format[acme,LABEL,truncated]``, and so on."""
    prefix = f"format[{format.name}"
    yield Case(f"{prefix},foreign-files]", 1, "formats", lambda context: check_foreign_files(format))
    own = list(file_tables.get(format.name, ()))
    for case in own:
        yield Case(f"{prefix},{case.label}]", 1, "formats", partial(_run_file, format=format, case=case))
    damaged = own or ([_written(format)] if isinstance(format, WritesModels) else [])
    for case in damaged:
        for what in ("truncated", "bit-flips"):
            run = partial(_run_damaged, format=format, case=case, what=what)
            yield Case(f"{prefix},{case.label},{what}]", 1, "formats", run, timeout_factor=4)
    if not damaged:
        yield Case(f"{prefix},no-files]", 1, "formats", partial(_no_files, format=format))
    if isinstance(format, WritesModels):
        for case in own:
            again = partial(_run_written_again, format=format, case=case)
            yield Case(f"{prefix},{case.label},round-trip]", 1, "formats", again)
        for name, graph in suite_graphs():
            run = partial(_run_round_trip, format=format, case=graph)
            yield Case(f"{prefix},round-trip,{name}]", 3, "formats", run, graph.op, graph.dtype.value)


def _run_file(context: Context, format: Format, case: FileCase) -> Outcome:
    return check_file(format, case)


def _run_damaged(context: Context, format: Format, case: FileCase, what: str) -> Outcome:
    count = _COPIES_PER_EXAMPLE * context.settings.examples
    with opened(format, case) as reader:
        return (
            check_truncated(reader, count)
            if what == "truncated"
            else check_flipped(reader, count, context.settings.seed)
        )


def _run_written_again(context: Context, format: Format, case: FileCase) -> Outcome:
    return check_written_again(format, case)


def _run_round_trip(context: Context, format: Format, case: GraphCase) -> Outcome:
    return check_round_trip(format, case, context.settings.seed)


def _no_files(context: Context, format: Format) -> Outcome:
    raise Skipped(
        f"the reader of format {format.name!r} is hardly tested: its package brings no file; "
        f"bring one in a table, file_table({format.name!r})"
    )


def check_file(format: Format, case: FileCase) -> Outcome:
    """Read a file twice, and compare what the model computes with the expected outputs.

    Raises:
        Failure: the file is not recognised or read, the second graph differs, or an output is wrong.
    """
    with opened(format, case) as reader:
        graph = reader.read()
        if str(reader.read()) != str(graph):
            raise Failure("the file gave another graph when it was read again")
        if case.expected is None:
            return Outcome(note="the case has no expected outputs: only reading was checked")
        actual = computed(graph, case.inputs)
        wanted = as_arrays(case.expected(*case.inputs))
        if len(wanted) != len(graph.outputs):
            raise Failure(f"the model has {len(graph.outputs)} output(s), the case expects {len(wanted)}")
        pairs = list(zip(graph.outputs, wanted))
        expected = [
            Expected(v.name, v.dtype, a.astype(np.float64 if v.dtype.is_floating else v.dtype.numpy), _largest(a))
            for v, a in pairs
        ]
        return check_expected(graph, case.inputs, actual, expected, case.numerics, Allowance())


def check_written_again(format: Format, case: FileCase) -> Outcome:
    """Read a file, write its graph in the same format, and check the new file like the first.

    Raises:
        Refused: the format has no form for an operator of the graph.
        Failure: writing failed, or the new file is not recognised, not read, or gives wrong outputs.
    """
    with opened(format, case) as reader:
        graph = reader.read()
    written = FileCase(case.label, lambda: _bytes_of(format, graph), case.inputs, case.expected, case.numerics)
    return check_file(format, written)


def check_foreign_files(format: Format) -> Outcome:
    """Require that the format claims no file of another kind, under each of its own suffixes; nor an empty folder.

    Raises:
        Failure: ``sniff`` claims a foreign file, raises, or answers neither True nor False.
    """
    contents = foreign_files()
    for name, table in file_tables.items():
        if name != format.name:
            for case in table:
                if isinstance(case.content, bytes):
                    contents[f"the file {case.label!r} of format {name!r}"] = case.content
    with TemporaryDirectory(prefix="lite-conformance-") as folder:
        count = 0
        for what, content in contents.items():
            for suffix in (*format.suffixes, ".bin"):
                path = Path(folder, f"model{suffix}" if suffix.startswith(".") else suffix)
                path.write_bytes(content)
                if claims(format, path):
                    raise Failure(f"sniff() claims {what}, named {path.name!r}; it must examine the content")
                path.unlink()
                count += 1
        empty = Path(folder, "empty")
        empty.mkdir()
        if claims(format, empty):
            raise Failure("sniff() claims an empty folder")
    return Outcome(examples=count + 1)


def check_round_trip(format: Format, case: GraphCase, seed: int) -> Outcome:
    """Write a graph in the format and read it again: inputs, outputs and results must be the same.

    Raises:
        Refused: the format has no form for an operator of the graph.
        Failure: writing or reading failed, or the graph that was read has other inputs, outputs or results.
    """
    drafted = case.draft(seed)
    graph = drafted.graph
    with opened(format, FileCase("round-trip", lambda: _bytes_of(format, graph))) as reader:
        again = reader.read()
    for kind in ("inputs", "outputs"):
        before, after = getattr(graph, kind), getattr(again, kind)
        # The second name of a value that is an output twice may differ: most formats cannot repeat an output.
        firsts = [i for i, value in enumerate(before) if before.index(value) == i]
        names = [[after[i].name if i < len(after) else "" for i in firsts], [before[i].name for i in firsts]]
        if names[0] != names[1] or [v.dtype for v in before] != [v.dtype for v in after]:
            shown = [", ".join(f"{v.name}: {v.dtype}" for v in side) or "none" for side in (before, after)]
            raise Failure(f"the {kind} ({shown[0]}) became ({shown[1]})")
    outcomes = []
    for number, sizes in list(enumerate(case.signatures or ({}, {})))[:2]:
        arrays = drafted.arrays(number, sizes)
        actual = computed(again, arrays)
        outcomes.append(check_outcome(graph, arrays, actual, case.numerics, Allowance(), case.dtype))
    return merged(outcomes)


def _written(format: Format) -> FileCase:
    case = dict(suite_graphs())[_WRITTEN]
    return FileCase(f"written,{_WRITTEN}", lambda: _bytes_of(format, case.draft(0).graph))


def _bytes_of(format: Format, graph: Graph) -> bytes:
    assert isinstance(format, WritesModels)
    suffix = format.suffixes[0]
    with TemporaryDirectory(prefix="lite-conformance-") as folder:
        path = Path(folder, f"model{suffix}" if suffix.startswith(".") else suffix)
        try:
            format.write(graph, path)
        except UnsupportedOperatorError as error:
            raise Refused("the format cannot express the graph", details=str(error)) from error
        except LiteError as error:
            raise Failure(f"write() failed: {error}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise Failure(f"write() raised {type(error).__name__}: {error}; writers raise LiteError") from error
        return path.read_bytes()


def _largest(array: Array) -> float:
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(0)
    return float(finite.max()) if finite.size else 0.0
