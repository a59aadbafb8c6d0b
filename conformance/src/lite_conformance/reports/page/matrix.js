// The matrix: operators by weight, element types, and for each report or backend the number of cases that passed.

const ALWAYS_SHOWN = 30;

function makeMatrix(parent, onChange) {
  const part = section("matrix", "Operators by element type");
  const operators = [...groupBy(records.filter((record) => record.op), (record) => record.op)]
    .map(([op, cases]) => ({ op, cases, weight: Math.max(...cases.map((record) => record.weight || 0)) }))
    .sort((a, b) => b.weight - a.weight || (a.op < b.op ? -1 : 1));
  const heaviest = operators.length ? operators[0].weight : 0;
  const columns = dtypes.filter((dtype) => operators.some(({ cases }) => cases.some((record) => (record.dtype || "") === dtype)));
  let showAll = false;
  const grid = makeGrid(part, "cell", (button) =>
    lazyList(button.scoped.filter(hasStatus).sort(worstFirst), (record) => caseRow(record), { first: 25, step: 100 }), onChange);
  parent.append(part.element);

  const keyOf = (op, dtype, s) => [op, dtype, ...(subjects.length > 1 ? [subjects[s].label] : [])].join("|");

  function headRows() {
    const top = h("tr", {}, h("th", { scope: "col", class: "op", rowspan: subjects.length > 1 ? 2 : null }, "operator"),
      h("th", { scope: "col", class: "weight", rowspan: subjects.length > 1 ? 2 : null, title: "share of the nodes of real models" }, "weight"),
      columns.map((dtype) => h("th", { scope: "colgroup", colspan: subjects.length, title: dtype, class: "first" }, shortType(dtype))));
    if (subjects.length < 2) return [top];
    return [top, h("tr", { class: "sub" }, columns.flatMap(() => subjects.map((subject, s) =>
      h("th", { scope: "col", title: subject.name, class: s === 0 ? "first" : "" }, subject.label))))];
  }

  function cell(op, dtype, s, cases, query) {
    const scoped = cases.filter((record) => (record.dtype || "") === dtype && isOf(record, subjects[s]) && inScope(record, query));
    const edge = s === 0 && subjects.length > 1 ? "first" : "";
    if (!scoped.length) return { element: h("td", { role: "gridcell", class: edge }), matched: 0 };
    const passed = scoped.filter((record) => record.status === "passed").length;
    const worst = [...scoped].sort(worstFirst)[0].status;
    const matched = scoped.filter(hasStatus).length;
    const label = `${op} ${dtype}${subjects.length > 1 ? ` ${subjects[s].name}` : ""}: ${passed} of ${scoped.length} passed`;
    const button = gridButton("cell", keyOf(op, dtype, s), worst, {
      passed, total: scoped.length, faded: !matched,
      "aria-label": worst === "passed" ? label : `${label}, worst: ${STATUS[worst].word}`,
    });
    button.scoped = scoped;
    return { element: h("td", { role: "gridcell", class: edge }, button), matched };
  }

  function update() {
    const query = words();
    const rows = h("tbody", {});
    let held = 0;
    for (const [index, { op, cases, weight }] of operators.entries()) {
      const cells = columns.flatMap((dtype) => subjects.map((_, s) => cell(op, dtype, s, cases, query)));
      if (!cells.some(({ matched }) => matched)) continue;
      const urgent = cells.some(({ element }) => element.firstChild && bad.has(element.firstChild.dataset.status));
      const wanted = filters.cell.split("|")[0] === op;
      if (!showAll && !isFiltered() && index >= ALWAYS_SHOWN && !urgent && !wanted) {
        held += 1;
        continue;
      }
      rows.append(h("tr", { "data-op": op },
        h("th", { scope: "row", class: "op" }, op),
        h("td", { class: "weight" }, weight
          ? [h("span", { class: "track" }, h("span", { width: `${(100 * weight) / heaviest}%` })), h("span", { class: "num" }, share(weight))] : ""),
        cells.map(({ element }) => element)));
    }
    part.hint.textContent = operators.length ? `${plural(operators.length, "operator")}, the most used first. A cell says how many cases passed and has the colour of its worst.` : "";
    part.element.hidden = operators.length === 0;
    grid.show("matrix", h("thead", {}, headRows()), rows, {
      more: moreButton(held, `Show ${plural(held, "more operator")}`, () => { showAll = true; update(); }),
      empty: "No operator case matches.",
    });
  }

  return { update };
}

function share(weight) {
  const value = weight * 100;
  return value >= 10 ? `${value.toFixed(0)} %` : value >= 0.095 ? `${value.toFixed(1)} %` : "<0.1 %";
}
