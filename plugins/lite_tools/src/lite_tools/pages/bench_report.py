"""The page of `lite bench --html`: charts and tables of one measurement, as one file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lite_tools.benchmark.document import code_text
from lite_tools.benchmark.option_table import option_rows
from lite_tools.pages.bench_charts import Distribution, PhaseBar, course_chart, distribution_chart, phase_chart
from lite_tools.pages.page import assemble_page, escaped, page_file

__all__ = ["bench_page"]

_PHASES = (("load", "load_ms"), ("compile", "compile_ms"), ("first run", "first_run_ms"))
_LATENCIES = ("mean", "std", "min", "p50", "p90", "p95", "p99", "max")
_PEAKS = ("load", "compile", "first_run", "runs", "concurrent_runs")


def bench_page(document: Mapping[str, Any]) -> str:
    """Return the page of a document with latencies, see :func:`lite_tools.benchmark.document.with_latencies`."""
    title = f"lite bench {document['model']}"
    parts = [_header(document), _latencies(document), _against(document), _phases(document), _memory(document)]
    parts += [_nodes(document), _options(document)]
    return assemble_page(title, "\n".join(filter(None, parts)), {}, [page_file("bench.css")], [])


def _header(document: Mapping[str, Any]) -> str:
    place = document["environment"]
    inputs = ", ".join(f"{name} {type_}" for name, type_ in document["input_types"].items())
    facts = [place["processor"], f"{place['cores_of_use']} cores of use", place["system"], f"Python {place['python']}"]
    agreement = document["agreement"]
    verdict = ""
    if agreement["sentences"]:
        kind = "good" if agreement["ok"] else "bad"
        lines = "<br>".join(escaped(line) for line in agreement["sentences"])
        verdict = f'<p class="verdict {kind}">{lines[:1].upper()}{lines[1:]}</p>'
    notes = "".join(f"<p>Note: {escaped(note)}</p>" for note in document["notes"])
    return (
        f"<h1>{escaped(document['model'])}</h1>"
        f'<p class="quiet">{escaped(" · ".join(facts))}<br>{escaped(" · ".join(place["packages"]))}<br>'
        f"Inputs: {escaped(inputs)}</p>{verdict}{notes}"
    )


def _latencies(document: Mapping[str, Any]) -> str:
    single, rows, table = [], [], []
    for number, result in enumerate(document["results"]):
        single.append(Distribution(result["name"], result["latencies_ms"], number))
        rows.append(single[-1])
        table.append((result["name"], result, result["runs"]))
        loaded = result["under_load"]
        if loaded:
            name = f"{result['name']}, {loaded['concurrent']} at once"
            rows.append(Distribution(name, result["latencies_under_load_ms"], number))
            table.append((name, loaded, loaded["runs"]))
    cells = [
        (name, *(_number(figures[f"latency_{key}_ms"]) for key in _LATENCIES), runs,
         _number(figures["throughput_per_second"]))
        for name, figures, runs in table
    ]  # fmt: skip
    heads = ("", *_LATENCIES, "runs", "runs per second")
    course = ""
    if max(len(row.turns) for row in single) > 2:
        keys = "".join(f'<span class="key c{row.colour % 6}"></span>{escaped(row.name)}' for row in single)
        course = (
            "<h2>Course of the measurement</h2>" + course_chart(single) + f'<p class="legend">{keys}</p>'
            '<p class="quiet">Median of each turn. Steps and slopes come from the machine: load, heat, clocks.</p>'
        )
    return (
        f"<h2>Latency</h2>{distribution_chart(rows)}"
        '<p class="legend">Thick line: median. Dashed: p95. Dotted: p99.</p>'
        f"{_table(heads, cells, numbers=range(1, len(heads)))}"
        f'<p class="quiet">Latencies in milliseconds.</p>{course}'
    )


def _phases(document: Mapping[str, Any]) -> str:
    results = document["results"]
    bars = [PhaseBar(r["name"], [(name, r[key]) for name, key in _PHASES]) for r in results]
    legend = "".join(f'<span class="key phase{n}"></span>{name}' for n, (name, _) in enumerate(_PHASES))
    rows = [(r["name"], *(_number(r[key]) for _, key in _PHASES), code_text(r)) for r in results]
    heads = ("", *(f"{name}, ms" for name, _ in _PHASES), "plan and kernels")
    return (
        f'<h2>Before the measured runs</h2>{phase_chart(bars)}<p class="legend">{legend}</p>'
        f"{_table(heads, rows, numbers=(1, 2, 3))}"
    )


def _memory(document: Mapping[str, Any]) -> str:
    results = document["results"]
    phases = [phase for phase in _PEAKS if any(phase in r["peak_rss_mib"] for r in results)]
    rows = [
        (r["name"], _mib(r["rss_before_mib"]), *(_mib(r["peak_rss_mib"].get(phase)) for phase in phases))
        for r in results
    ]
    heads = ("", "before, MiB", *(f"{phase.replace('_', ' ')}, MiB" for phase in phases))
    return (
        f"<h2>Peak memory by phase</h2>{_table(heads, rows, numbers=range(1, len(heads)))}"
        '<p class="quiet">Highest resident set size of the process, which keeps all sessions loaded.</p>'
    )


def _nodes(document: Mapping[str, Any]) -> str:
    rows = [(r["name"], device, count) for r in document["results"] for device, count in r["nodes"].items()]
    refusals = [
        (r["name"], each["op"], each["nodes"], each["device"], each["refused_by"], each["reason"])
        for r in document["results"]
        for each in r["refusals"]
    ]
    table = _table(("", "device", "nodes"), rows, numbers=(2,))
    if refusals:
        heads = ("", "operator", "nodes", "ran on", "refused by", "reason")
        table += f"<h2>Refusals</h2>{_table(heads, refusals, numbers=(2,))}"
    notes = [f"<li>{escaped(r['name'])}: {escaped(note)}</li>" for r in document["results"] for note in r["notes"]]
    return f"<h2>Devices</h2>{table}" + (f"<ul>{''.join(notes)}</ul>" if notes else "")


def _options(document: Mapping[str, Any]) -> str:
    return f"<h2>Effective options</h2>{_table(('option', 'value', 'from'), option_rows(document))}"


def _against(document: Mapping[str, Any]) -> str:
    found = document["against"]
    if found is None:
        return ""
    unlike = "".join(f"<li>{escaped(line)}</li>" for line in found["unlike"])
    rows = [_change(change) for change in found["changes"]]
    heads = "<tr><th></th><th></th><th class='number'>then, ms</th><th class='number'>now, ms</th><th>change</th></tr>"
    return (
        f"<h2>Against {escaped(found['file'])}</h2>"
        + (f"<p>These differ beside the figures:</p><ul>{unlike}</ul>" if unlike else "")
        + f'<div class="scroll"><table>{heads}{"".join(rows)}</table></div>'
    )


def _change(change: Mapping[str, Any]) -> str:
    """Return a row of the table of changes; the change has the colour of its verdict."""
    texts = "".join(f"<td>{escaped(change[key])}</td>" for key in ("name", "figure"))
    numbers = "".join(f'<td class="number">{_number(change[key])}</td>' for key in ("before_ms", "after_ms"))
    return f'<tr>{texts}{numbers}<td class="{escaped(change["verdict"])}">{escaped(change["text"])}</td></tr>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """Return a table; the columns whose positions are in ``numbers`` are aligned to the right."""
    kinds = [' class="number"' if position in numbers else "" for position in range(len(heads))]
    head = "".join(f"<th{kind}>{escaped(text)}</th>" for kind, text in zip(kinds, heads))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{escaped(cell)}</td>' for kind, cell in zip(kinds, row))}</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _mib(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0f}"
