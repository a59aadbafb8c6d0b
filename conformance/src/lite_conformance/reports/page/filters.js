// The filters: their state, the URL's hash that stores it, and the toolbar that changes it.

const filters = { q: "", status: new Set(), level: new Set(), dtype: "", report: "", cell: "", side: "", case: "" };

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const several = (key, known) => new Set((given.get(key) || "").split(",").filter((value) => known.includes(value)));
  filters.q = given.get("q") || "";
  filters.status = several("status", data.severity);
  filters.level = several("level", levels.map(String));
  filters.dtype = dtypes.includes(given.get("dtype")) ? given.get("dtype") : "";
  filters.report = reports.some((_, r) => letter(r) === given.get("report")) ? given.get("report") : "";
  filters.cell = given.get("cell") || "";
  filters.side = given.get("side") || "";
  filters.case = given.get("case") || "";
}

function hashOf(state) {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const text = value instanceof Set ? [...value].join(",") : value;
    if (text) out.set(key, text);
  }
  return out.toString();
}

function writeHash() {
  const hash = hashOf(filters);
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

// True for records that match all filters except the status; cells of the matrix count these.
function inScope(record, query) {
  if (filters.level.size && !filters.level.has(String(record.level))) return false;
  if (filters.dtype && (record.dtype || "") !== filters.dtype) return false;
  if (filters.report && letter(record.report) !== filters.report) return false;
  if (filters.case && record.case !== filters.case) return false;
  return query.every((word) => haystack(record).includes(word));
}

const words = () => filters.q.toLowerCase().split(/\s+/).filter(Boolean);
const hasStatus = (record) => filters.status.size === 0 || filters.status.has(record.status);
const isFiltered = () => Boolean(filters.q || filters.status.size || filters.level.size || filters.dtype || filters.report || filters.case);

function toggle(set, value) {
  if (!set.delete(value)) set.add(value);
}

function makeToolbar(onChange) {
  const search = h("input", {
    type: "search", id: "search", placeholder: "Search cases, operators, reasons", "aria-label": "Search cases, operators, reasons",
    autocomplete: "off", spellcheck: "false",
  });
  let waiting = 0;
  search.addEventListener("input", () => {
    filters.q = search.value;
    clearTimeout(waiting);
    waiting = setTimeout(onChange, 90);
  });

  const totals = countBy(records, (record) => record.status);
  const chip = (set, value, label, title, extra) =>
    h("button", {
      type: "button", class: "chip", "data-value": value, title, "aria-pressed": "false",
      onclick: () => { toggle(set(), value); onChange(); }, ...extra,
    }, label);
  const statuses = data.severity.filter((status) => totals.get(status)).map((status) =>
    chip(() => filters.status, status, [sign(status), status, h("span", { class: "n" }, count(totals.get(status)))],
      STATUS[status].word, { "data-status": status }));
  const levelChips = levels.map((level) =>
    chip(() => filters.level, String(level), `L${level}`, data.levels[level] || `level ${level}`));

  const option = (value, label) => h("option", { value }, label);
  const select = (key, label, options) => {
    const element = h("select", { id: key, "aria-label": label }, options);
    element.addEventListener("change", () => { filters[key] = element.value; onChange(); });
    return element;
  };
  const dtype = select("dtype", "Element type", [
    option("", "all types"), ...dtypes.filter(Boolean).map((name) => option(name, name)),
  ]);
  const report = several
    ? select("report", "Report", [option("", "all reports"), ...reports.map((r, i) => option(letter(i), `${letter(i)} ${r.name}`))])
    : null;

  const clear = h("button", {
    type: "button", class: "plain", id: "clear",
    onclick: () => {
      Object.assign(filters, { q: "", dtype: "", report: "", cell: "", side: "", case: "" });
      filters.status.clear();
      filters.level.clear();
      onChange();
      search.focus();
    },
  }, "Clear");
  const shown = h("output", { id: "shown", "aria-live": "polite" });
  const only = h("span", { class: "only", hidden: true });

  const element = h("div", { class: "toolbar", role: "search" },
    h("div", { class: "inner" },
      search,
      h("div", { class: "chips statuses", role: "group", "aria-label": "Status" }, statuses),
      h("div", { class: "chips", role: "group", "aria-label": "Level" }, levelChips),
      dtypes.filter(Boolean).length > 1 ? dtype : null, report,
      h("span", { class: "result" }, only, shown, clear)));

  function update(matched) {
    if (search.value !== filters.q) search.value = filters.q;
    dtype.value = filters.dtype;
    if (report) report.value = filters.report;
    for (const button of statuses) button.setAttribute("aria-pressed", filters.status.has(button.dataset.value));
    for (const button of levelChips) button.setAttribute("aria-pressed", filters.level.has(button.dataset.value));
    only.hidden = !filters.case;
    only.textContent = filters.case ? `only ${filters.case}` : "";
    shown.textContent = isFiltered() ? `${count(matched.length)} of ${count(records.length)}` : plural(records.length, "case");
    clear.hidden = !isFiltered();
  }
  return { element, update };
}
