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
  let openButton = null;
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
    const key = keyOf(op, dtype, s);
    const label = `${op} ${dtype}${subjects.length > 1 ? ` ${subjects[s].name}` : ""}: ${passed} of ${scoped.length} passed`;
    const button = h("button", {
      type: "button", class: matched ? "cell" : "cell faded", "data-status": worst, "data-cell": key, tabindex: "-1",
      "aria-label": worst === "passed" ? label : `${label}, worst: ${STATUS[worst].word}`, "aria-expanded": "false",
    }, h("span", { class: "mark", "aria-hidden": "true" }, STATUS[worst].sign), h("span", {}, `${passed}/${scoped.length}`));
    button.scoped = scoped;
    return { element: h("td", { role: "gridcell", class: edge }, button), matched };
  }

  function update() {
    const query = words();
    const grid = h("tbody", {});
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
      grid.append(h("tr", { "data-op": op },
        h("th", { scope: "row", class: "op" }, op),
        h("td", { class: "weight" }, weight
          ? [h("span", { class: "track" }, h("span", { width: `${(100 * weight) / heaviest}%` })), h("span", { class: "num" }, share(weight))] : ""),
        cells.map(({ element }) => element)));
    }
    const table = h("table", { class: "matrix", role: "grid", "aria-labelledby": "matrix-title" }, h("thead", {}, headRows()), grid);
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button.cell");
      if (button) open(button, true);
    });
    table.addEventListener("keydown", (event) => moveInGrid(event, grid, () => { close(); onChange.hash(); }));
    const frame = h("div", { class: "frame" }, table);
    const more = h("button", { type: "button", class: "more", hidden: held === 0, onclick: () => { showAll = true; update(); } },
      `Show ${plural(held, "more operator")}`);
    part.body.replaceChildren(grid.childElementCount ? frame : h("p", { class: "empty" }, "No operator case matches."), more);
    part.hint.textContent = operators.length ? `${plural(operators.length, "operator")}, the most used first. A cell says how many cases passed and has the colour of its worst.` : "";
    part.element.hidden = operators.length === 0;
    frame.classList.toggle("scrolls", table.scrollWidth > frame.clientWidth);
    const first = grid.querySelector("button.cell");
    if (first) first.tabIndex = 0;
    openButton = null;
    const wanted = filters.cell && [...grid.querySelectorAll("button.cell")].find((button) => button.dataset.cell === filters.cell);
    if (wanted) open(wanted, false);
  }

  function close() {
    if (!openButton) return;
    openButton.setAttribute("aria-expanded", "false");
    openButton.closest("tr").nextElementSibling.remove();
    openButton = null;
    filters.cell = "";
  }

  function open(button, byHand) {
    const again = button === openButton;
    close();
    if (!again) {
      const name = button.getAttribute("aria-label");
      const cases = button.scoped.filter(hasStatus).sort(worstFirst);
      const shut = h("button", { type: "button", class: "plain", onclick: () => { close(); onChange.hash(); button.focus(); } }, "Close");
      const panel = h("div", { class: "panel", role: "region", "aria-label": name },
        h("div", { class: "panel-head" }, h("b", {}, name), shut),
        lazyList(cases, (record) => caseRow(record), { first: 25, step: 100 }));
      panel.addEventListener("keydown", (event) => { if (event.key === "Escape") shut.click(); });
      const row = button.closest("tr");
      row.after(h("tr", { class: "panel-row" }, h("td", { colspan: row.childElementCount }, panel)));
      button.setAttribute("aria-expanded", "true");
      openButton = button;
      filters.cell = button.dataset.cell;
    }
    if (byHand) onChange.hash();
    setTabStop(part.body, button);
  }

  return { update };
}

function share(weight) {
  const value = weight * 100;
  return value >= 10 ? `${value.toFixed(0)} %` : value >= 0.095 ? `${value.toFixed(1)} %` : "<0.1 %";
}
