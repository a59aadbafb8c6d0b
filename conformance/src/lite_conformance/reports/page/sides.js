// Reports side by side: a row for each operator, or other part of the suite; a column for each report.

const SIDES_SHOWN = 40;
const partOf = (record) => record.op || record.case.split("[")[0];

// suite, name and occurrence of a case -> its record in each column, or undefined.
function casesBySubject() {
  const found = new Map();
  subjects.forEach((subject, s) => {
    const seen = new Map();
    for (const record of reports[subject.report].records) {
      if (!isOf(record, subject)) continue;
      const name = `${record.suite}\n${record.case}`;
      seen.set(name, (seen.get(name) || 0) + 1);
      const key = `${name}\n${seen.get(name)}`;
      if (!found.has(key)) found.set(key, subjects.map(() => undefined));
      found.get(key)[s] = record;
    }
  });
  return found;
}

const differs = (sides) => sides.some((record) => !record || record.status !== (sides[0] && sides[0].status));

function makeSides(parent, onChange) {
  if (subjects.length < 2) return { update() {} };
  const part = section("sides", "Side by side");
  const all = [...casesBySubject().values()].map((sides) => ({ sides, differs: differs(sides), any: sides.find(Boolean) }));
  const rows = [...groupBy(all, ({ any }) => partOf(any))]
    .map(([name, cases]) => ({
      name, cases, weight: Math.max(...cases.map(({ any }) => any.weight || 0)), count: cases.filter((item) => item.differs).length,
    }))
    .sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1));
  const total = rows.reduce((sum, row) => sum + row.count, 0);
  let onlyDifferent = false;
  let showAll = false;
  const grid = makeGrid(part, "side", panelOf, onChange);
  const toggleButton = h("button", {
    type: "button", class: "chip", id: "only-different", "aria-pressed": "false", disabled: total === 0,
    onclick: () => { onlyDifferent = !onlyDifferent; update(); },
  }, "only what differs", h("span", { class: "n" }, count(total)));
  part.hint.before(toggleButton);
  part.hint.textContent = "A cell says how many cases passed, and has the colour of the worst. ≠ counts the cases that have another status elsewhere.";
  parent.append(part.element);

  const head = () => h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "op" }, "operator or part"),
    subjects.map((subject) => h("th", { scope: "col", title: subject.name }, h("span", { class: "tag" }, subject.label), subject.name))));

  function cell(row, s, query) {
    const shown = row.cases.filter(({ sides, differs: isOther }) => sides[s] && inScope(sides[s], query) && (!onlyDifferent || isOther));
    if (!shown.length) return { element: h("td", { role: "gridcell" }), matched: 0 };
    const list = shown.map(({ sides }) => sides[s]);
    const counts = countBy(list, (record) => record.status);
    const passed = counts.get("passed") || 0;
    const other = shown.filter((item) => item.differs);
    const worst = [...list].sort(worstFirst)[0].status;
    const matched = list.filter(hasStatus).length;
    const parts = [...data.severity].filter((status) => counts.get(status)).map((status) => `${count(counts.get(status))} ${STATUS[status].word}`);
    const label = `${row.name}, ${subjects[s].name}: ${parts.join(", ")}${other.length ? `; ${plural(other.length, "differs", "differ")}` : ""}`;
    const button = gridButton("side", `${row.name}|${subjects[s].label}`, worst,
      { passed, total: list.length, faded: !matched, "aria-label": label, title: label },
      other.length ? h("span", { class: "unequal" }, `≠ ${count(other.length)}`) : null);
    button.shown = other.length ? other : shown;
    button.side = s;
    return { element: h("td", { role: "gridcell" }, button), matched };
  }

  function update() {
    const query = words();
    const body = h("tbody", {});
    let held = 0;
    for (const [index, row] of rows.entries()) {
      const cells = subjects.map((_, s) => cell(row, s, query));
      if (!cells.some(({ matched }) => matched)) continue;
      const isWanted = row.count || !row.cases[0].any.op || filters.side.split("|")[0] === row.name;
      if (!showAll && !onlyDifferent && !isFiltered() && index >= SIDES_SHOWN && !isWanted) {
        held += 1;
        continue;
      }
      body.append(h("tr", { "data-op": row.name }, h("th", { scope: "row", class: "op" }, row.name), cells.map(({ element }) => element)));
    }
    toggleButton.setAttribute("aria-pressed", String(onlyDifferent));
    grid.show("matrix sides", head(), body, {
      more: moreButton(held, `Show ${plural(held, "more operator")} without differences`, () => { showAll = true; update(); }),
      empty: "No case matches.",
    });
  }

  function panelOf(button) {
    const items = button.shown.filter(({ sides }) => hasStatus(sides[button.side]))
      .sort((a, b) => worstFirst(a.sides[button.side], b.sides[button.side]));
    return lazyList(items, ({ sides }) => sideRow(sides, button.side), { first: 25, step: 100 });
  }

  return { update };
}

// A case with its status in every column.
function sideRow(sides, s) {
  const row = caseRow(sides[s]);
  const marks = h("span", { class: "marks" }, sides.map((record, index) => h("span", { class: "side", title: subjects[index].name },
    h("span", { class: "tag" }, subjects[index].label), record ? sign(record.status) : h("span", { class: "sign none", title: "no such case" }, "·"))));
  row.querySelector("summary").replaceChild(marks, row.querySelector(".sign"));
  row.classList.add("sided");
  return row;
}
