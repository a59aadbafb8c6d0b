// Several reports: the changes from the first to each of the others.

function makeChanges(parent) {
  if (!several) return;
  const part = section("changes", "What changed");
  data.changes.forEach((changes, index) => part.body.append(oneComparison(changes, index + 1)));
  parent.append(part.element);
}

function oneComparison(changes, r) {
  const before = reports[0].records;
  const after = reports[r].records;
  const pairs = (list) => list.map(([i, j]) => ({ from: before[i], to: after[j] }));
  const [a, b] = [letter(0), letter(r)];
  const groups = [
    { id: "regressed", short: "pass → fail", title: `Passed in ${a}, bad in ${b}`, rows: pairs(changes.regressed), open: true },
    { id: "fixed", short: "fail → pass", title: `Bad in ${a}, passed in ${b}`, rows: pairs(changes.fixed) },
    { id: "moved", short: "other status", title: "Other changes of status", rows: pairs(changes.moved) },
    { id: "grown", short: "tolerance grew", title: `Needs more than ${figure(data.growth)}× the tolerance`, rows: pairs(changes.grown), growth: true },
    { id: "added", short: "new", title: `New in ${b}`, rows: changes.added.map((j) => ({ from: null, to: after[j] })) },
    { id: "gone", short: "gone", title: `Gone from ${b}`, rows: changes.gone.map((i) => ({ from: before[i], to: null })) },
  ];
  const some = groups.filter((group) => group.rows.length);
  return h("div", { class: "comparison" },
    h("p", { class: "from-to" }, tag(0), reports[0].name, h("span", { class: "arrow" }, "→"), tag(r), reports[r].name),
    changes.settings.length
      ? h("ul", { class: "settings", "aria-label": "Differences of the runs" }, changes.settings.map((text) => h("li", {}, text))) : null,
    h("ul", { class: "legend" }, groups.map((group) =>
      h("li", { class: group.rows.length ? "" : "zero" }, h("span", {}, h("b", {}, count(group.rows.length)), ` ${group.short}`)))),
    some.length ? some.map(changeGroup) : h("p", { class: "empty" }, "Nothing changed."));
}

function changeGroup({ id, title, rows, open, growth }) {
  rows.sort((a, b) => worstFirst(a.to || a.from, b.to || b.from) || ((b.to || b.from).weight || 0) - ((a.to || a.from).weight || 0));
  const body = h("div", {});
  const group = h("details", { class: "group", "data-change": id, open },
    h("summary", {}, h("b", {}, title), h("span", { class: "n" }, count(rows.length))), body);
  const fill = () => {
    if (!body.childElementCount) body.append(lazyList(rows, (row) => changeRow(row, growth), { first: 20, step: 100 }));
  };
  group.fill = fill;
  group.addEventListener("toggle", () => { if (group.open) fill(); });
  if (open) fill();
  return group;
}

function changeRow({ from, to }, growth) {
  const row = caseRow(to || from);
  const marks = growth ? requiredBeforeAfter(from, to) : h("span", { class: "marks" },
    from ? sign(from.status) : h("span", { class: "sign none" }, "·"), h("span", { class: "arrow" }, "→"),
    to ? sign(to.status) : h("span", { class: "sign none" }, "·"));
  row.querySelector("summary").replaceChild(marks, row.querySelector(".sign"));
  row.classList.add(growth ? "grew" : "change");
  return row;
}

function requiredBeforeAfter(from, to) {
  const times = (key) => {
    const [x, y] = [from.measured[key] || 0, to.measured[key] || 0];
    if (typeof y !== "number") return Infinity;
    return y === 0 ? 1 : x === 0 ? Infinity : y / x;
  };
  const key = times("required_rtol") >= times("required_atol") ? "required_rtol" : "required_atol";
  const grown = times(key);
  return h("span", { class: "marks numbers-marks" }, `${key.slice(9)} ${figure(from.measured[key])}`, h("span", { class: "arrow" }, "→"),
    figure(to.measured[key]), Number.isFinite(grown) ? h("b", {}, ` ${figure(grown)}×`) : null);
}
