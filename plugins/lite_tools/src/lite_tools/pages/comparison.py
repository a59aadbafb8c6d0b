"""The page of a comparison: verdict, chart of the errors, drawing of the network, and a table of all results.

The verdict, the summary and the tables are HTML, readable without scripts; scripts add the chart, the details of a
result, and sorting and searching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lite_tools.pages.comparison_tables import outputs_table, rows_table
from lite_tools.pages.graph import graph_data, viewer_html
from lite_tools.pages.page import assemble_page, escaped, page_file
from lite_tools.pictures import (
    Edge,
    Layout,
    LayoutError,
    Picture,
    PictureNode,
    error_size,
    has_layout,
    lay_out,
    picture_style,
    severity,
)

__all__ = ["comparison_page", "picture_of_comparison"]

_SCRIPTS = ("dom.js", "picture.js", "chart.js", "difference.js", "result.js", "table.js", "comparison.js")
#: Kinds of verdicts by their colour.
_VERDICTS = {"agree": "good", "differ": "bad", "not deterministic": "bad", "cannot be compared": "unsure"}
_VERDICT_WORDS = {"agree": "They agree", "differ": "They differ", "not deterministic": "Not deterministic"}


def comparison_page(report: Mapping[str, Any]) -> str:
    """Return the page of a report of ``lite compare``, as its JSON has it. All texts of the model are escaped.

    The drawing of the network needs the layout library; without it, the page says how to get it.
    """
    rows: Sequence[Mapping[str, Any]] = report["rows"]
    inside: Sequence[Mapping[str, Any]] = report.get("inside") or ()
    picture, boxes = picture_of_comparison(report)
    layout, missing = _layout(picture)
    graph = None if layout is None else graph_data(picture, layout, has_facts=False)
    data = {
        "rows": [_shown_row(row) for row in rows],
        "inside": [_shown_row(row) for row in inside],
        "first": report.get("first"),
        "a": report["a"]["label"],
        "b": report["b"]["label"],
        "graph": graph,
        "boxes": boxes,
    }
    drawing = viewer_html(picture, layout) if layout is not None else f'<p class="quiet">{escaped(missing)}</p>'
    body = f"""<a class="skip" href="#results">Skip to the table</a>
{_header(report)}
<main>
<div class="stage">
<section id="growth" aria-labelledby="growth-title"><h2 id="growth-title">Errors along the network</h2>
<p class="note">The difference of {escaped(report["b"]["label"])} from {escaped(report["a"]["label"])} as a share of the
largest element: <b>local</b> with the true inputs of each step, <b>accumulated</b> since the inputs of the model.</p>
<div id="chart"><noscript><p class="quiet">The chart needs scripts; the table below has all its numbers.</p>
</noscript></div>
</section>
<section id="result" aria-live="polite" aria-label="The chosen result"></section>
<section id="network" aria-label="The network">{drawing}</section>
</div>
{_results(rows, report.get("first"))}
{_inside(report, inside)}
{_more(report)}
</main>"""
    title = f"{report['a']['label']} against {report['b']['label']}: {report['model']}"
    styles = [picture_style(), page_file("base.css"), page_file("comparison.css")]
    return assemble_page(title, body, data, styles, _SCRIPTS)


def picture_of_comparison(report: Mapping[str, Any]) -> tuple[Picture, list[int]]:
    """Return the picture of the compared steps, and for each row the index of its box.

    Results of one step share a box, and so do all passes of a loop; it has the worst of their errors.
    """
    nodes: list[PictureNode] = []
    producers: dict[str, int] = {}
    for given in report.get("inputs", ()):
        producers[given["name"]] = len(nodes)
        nodes.append(PictureNode(given["name"], given.get("type", ""), "input"))
    steps: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in report["rows"]:
        steps.setdefault(_step_of(row), []).append(row)
    box_of: dict[tuple[str, ...], int] = {}
    for step, found in steps.items():
        box_of[step] = len(nodes)
        producers.update((row["value"], len(nodes)) for row in found)
        nodes.append(_box(found))
    read = {name for row in report["rows"] for name in row.get("inputs", ())}
    for missing in report.get("not_compared", ()):
        if missing["value"] in read and missing["value"] not in producers:
            producers[missing["value"]] = len(nodes)
            nodes.append(PictureNode(missing["value"], "not compared", status="not compared"))
    edges = {
        (producers[name], box_of[step]): name
        for step, found in steps.items()
        for row in found
        for name in row.get("inputs", ())
        if name in producers and producers[name] != box_of[step]
    }
    picture = Picture(report["model"], nodes, (), [Edge(a, b, name) for (a, b), name in edges.items()])
    return picture, [box_of[_step_of(row)] for row in report["rows"]]


def _step_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row.get("nodes") or (row["value"],))


def _box(rows: Sequence[Mapping[str, Any]]) -> PictureNode:
    sizes = [error_size(row.get("local") or row.get("accumulated")) for row in rows]
    worst = min(rows, key=lambda row: severity(row["status"]))
    names = rows[0].get("nodes") or (rows[0]["value"],)
    return PictureNode(
        names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1}",
        rows[0].get("op") or "?",
        device=rows[0].get("device_b") or "",
        error=max((size for size in sizes if size is not None), default=None),
        status=worst["status"],
    )


def _layout(picture: Picture) -> tuple[Layout | None, str]:
    """Return the layout, or None and the reason."""
    if not has_layout():
        return None, "To see the network here, install its layout: pip install 'lite-tools[pictures]'"
    try:
        return lay_out(picture), ""
    except LayoutError as error:
        return None, f"The network is not drawn: {error}"


def _shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a row, and its errors as single numbers for the chart."""
    noise = row.get("noise")
    errors = row.get("local") or {}
    relative, absolute = errors.get("relative"), errors.get("max_abs")
    scale = relative / absolute if relative and absolute else None
    return {
        **{key: value for key, value in row.items() if value or key in ("index", "nodes", "op")},
        "local_size": error_size(row.get("local")),
        "accumulated_size": error_size(row.get("accumulated")),
        "floor_size": noise["floor"] * scale if noise and scale and noise.get("floor") is not None else None,
    }


def _header(report: Mapping[str, Any]) -> str:
    verdict = report["verdict"]
    kind = _VERDICTS.get(verdict, "unsure")
    word = _VERDICT_WORDS.get(verdict, verdict.capitalize())
    sides = "".join(f"<div><dt>{key}</dt><dd>{_side(report[key])}</dd></div>" for key in ("a", "b"))
    inputs = "".join(
        f"<li><code>{escaped(i['name'])}</code> {escaped(i.get('type', ''))}, {escaped(i.get('source', ''))}</li>"
        for i in report.get("inputs", ())
    )
    notes = "".join(f'<p class="quiet">{escaped(note)}</p>' for note in report.get("notes") or ())
    return f"""<header>
<p class="eyebrow">{escaped(report["model"])}</p>
<h1><b>{escaped(report["a"]["label"])}</b> against <b>{escaped(report["b"]["label"])}</b></h1>
<div class="verdict {kind}"><strong>{escaped(word)}</strong><p>{escaped(report["summary"])}</p></div>
{notes}<dl class="sides">{sides}<div><dt>inputs</dt><dd><ul>{inputs}</ul></dd></div></dl>
</header>"""


def _side(side: Mapping[str, Any]) -> str:
    options = [f"{name} {_word(value)}" for name, value in (side.get("options") or {}).items()]
    versions = [f"{name} {version}" for name, version in (side.get("versions") or {}).items()]
    lines = [", ".join(side.get("devices") or ()), ", ".join(options), str(side.get("file") or ""), ", ".join(versions)]
    text = "".join(f"<span>{escaped(line)}</span>" for line in lines if line)
    hidden = "" if side.get("can_be_observed", True) else "<span>its kernels are not observed, only partitions</span>"
    return f"<b>{escaped(side['label'])}</b>{text}{hidden}"


def _word(value: object) -> str:
    return {"True": "on", "False": "off", "None": "default"}.get(str(value), str(value))


def _results(rows: Sequence[Mapping[str, Any]], first: int | None) -> str:
    return f"""<section id="results" aria-labelledby="results-title"><h2 id="results-title">All results
<span class="n">{len(rows)}</span></h2><div class="filters" hidden></div>
{rows_table(rows, "r", first)}</section>"""


def _inside(report: Mapping[str, Any], inside: Sequence[Mapping[str, Any]]) -> str:
    if not inside:
        return ""
    first = report.get("first")
    step = " + ".join(report["rows"][first].get("nodes") or ()) if first is not None else ""
    return f"""<section id="inside" aria-labelledby="inside-title"><h2 id="inside-title">Inside the first diverging step
</h2><p class="note">The nodes of {escaped(step)}, each computed alone with the true inputs.</p>
{rows_table(inside, "i", None)}</section>"""


def _more(report: Mapping[str, Any]) -> str:
    parts = []
    if report.get("outputs"):
        parts.append(f"<h2>Outputs of the model</h2>{outputs_table(report['outputs'])}")
    runs = report.get("runs")
    if runs and (runs.get("count", 0) > 1 or runs.get("changing")):
        changing = runs.get("changing") or ()
        items = "".join(f"<li><code>{escaped(name)}</code></li>" for name in changing)
        text = f"{len(changing)} result(s) changed" if changing else "no result changed"
        count = escaped(runs.get("count"))
        parts.append(f"<h2>Repeated runs</h2><p>{count} runs with equal inputs: {text}.</p><ul>{items}</ul>")
    if repro := report.get("repro"):
        parts.append(
            f"<h2>Repeat the diverging step alone</h2><p><code>{escaped(repro['script'])}</code> runs it with the "
            f"arrays of <code>{escaped(repro['arrays'])}</code>:</p><pre>python {escaped(repro['script'])}</pre>"
        )
    if missing := report.get("not_compared"):
        items = "".join(
            f"<li><code>{escaped(entry['value'])}</code> {escaped(entry.get('reason', ''))}</li>" for entry in missing
        )
        parts.append(
            f"<h2>Not compared <span class='n'>{len(missing)}</span></h2><details><summary>Results that only one side "
            f"has in memory</summary><ul>{items}</ul></details>"
        )
    facts = {**(report.get("settings") or {}), **(report.get("environment") or {})}
    shown = "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(_word(v))}</dd></div>" for k, v in facts.items())
    parts.append(f'<h2>Settings and environment</h2><dl class="facts">{shown}</dl>')
    return '<div class="more">' + "".join(f"<section>{part}</section>" for part in parts) + "</div>"
