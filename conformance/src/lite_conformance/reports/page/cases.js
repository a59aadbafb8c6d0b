// A case: one line that expands to its details.

let otherReports = null; // suite and name of a case -> its records, built on first use

function sameCase(record) {
  if (!otherReports) otherReports = groupBy(records, (r) => `${r.suite}\n${r.case}`);
  return otherReports.get(`${record.suite}\n${record.case}`).filter((r) => r.report !== record.report);
}

function caseRow(record, { open = false, known = "" } = {}) {
  const reason = record.reason || record.expectation || "";
  const row = h("details", { class: "case", "data-status": record.status },
    h("summary", {},
      sign(record.status),
      h("span", { class: "name" }, tag(record.report), h("code", {}, record.case)),
      h("span", { class: "why" }, reason === known ? "" : reason),
      h("span", { class: "used", title: record.used === undefined ? null : "of the tolerance used" }, usedTolerance(record)),
      h("span", { class: "time" }, duration(record.seconds))));
  row.fill = () => {
    if (row.childElementCount === 1) row.append(caseBody(record));
  };
  row.addEventListener("toggle", () => { if (row.open) row.fill(); });
  if (open) {
    row.open = true;
    row.fill();
  }
  return row;
}

function caseBody(record) {
  const facts = [
    ["status", STATUS[record.status].word],
    ["level", `L${record.level} ${data.levels[record.level] || ""}`],
    ["suite", record.suite],
    ["operator", record.op],
    ["type", record.dtype],
    ["device", record.device],
    ["examples", record.examples ? count(record.examples) : ""],
    ["seed", String(record.seed || 0)],
    ["time", duration(record.seconds)],
  ].filter(([, text]) => text);
  return h("div", { class: "about" },
    record.reason ? h("p", { class: "reason" }, record.reason) : null,
    record.expectation && record.expectation !== record.reason
      ? h("p", { class: "reason" }, h("span", { class: "label" }, "the package says"), record.expectation) : null,
    record.tolerance || record.measured ? h("div", { class: "numbers" }, toleranceTable(record), measuredTable(record)) : null,
    record.measured && record.measured.worst
      ? h("p", { class: "worst" }, h("span", { class: "label" }, "worst element"), h("code", {}, record.measured.worst)) : null,
    record.details ? detailsBlock(record.details) : null,
    record.repro ? h("div", {}, h("span", { class: "label" }, "repeat it"), command(record.repro)) : null,
    inOtherReports(record),
    h("p", { class: "facts" },
      facts.map(([label, text]) => h("span", {}, h("i", {}, label), " ", text)),
      h("a", { href: `#${hashOf({ case: record.case })}` }, "link to this case")));
}

function detailsBlock(text) {
  const lines = text.split("\n").length;
  return h("details", { class: "output", open: lines <= 14 },
    h("summary", {}, `details, ${plural(lines, "line")}`),
    h("pre", { tabindex: "0" }, text));
}

function toleranceTable(record) {
  const tolerance = record.tolerance;
  if (!tolerance) return null;
  const needed = record.measured || null;
  const line = (name, used, standard, required) => {
    const loose = typeof used === "number" && used > standard;
    const over = needed && (typeof required !== "number" || required > used) && required !== undefined;
    return h("tr", {},
      h("th", { scope: "row" }, name),
      h("td", {}, figure(used)),
      h("td", { class: loose ? "was" : "" }, figure(standard)),
      needed ? h("td", { class: over ? "over" : "" }, figure(required)) : null);
  };
  const m = needed || {};
  return h("div", { class: "block" },
    h("table", { class: "small" },
      h("thead", {}, h("tr", {}, h("th", {}, "tolerance"), h("th", { scope: "col" }, "used"), h("th", { scope: "col" }, "default"),
        needed ? h("th", { scope: "col" }, "required") : null)),
      h("tbody", {},
        line("rtol", tolerance.rtol, tolerance.default[0], m.required_rtol),
        line("atol", tolerance.atol, tolerance.default[1], m.required_atol))),
    tolerance.loosened
      ? h("p", { class: "loose" }, h("span", { class: "badge" }, "loosened"), tolerance.reason || "no reason given",
          tolerance.source && tolerance.source !== "default" ? h("span", { class: "quiet" }, ` (${tolerance.source})`) : null)
      : tolerance.source && tolerance.source !== "default" ? h("p", { class: "quiet" }, tolerance.source) : null);
}

function measuredTable(record) {
  const m = record.measured;
  if (!m) return null;
  const wrong = m.elements ? `${count(m.wrong || 0)} of ${count(m.elements)}` : "none compared";
  const pairs = [
    ["max abs", figure(m.max_abs)], ["max rel", figure(m.max_rel)], ["max ULP", figure(m.max_ulp)],
    ["NMSE", figure(m.nmse)], ["out of tolerance", wrong],
  ];
  return h("dl", { class: "measured" }, pairs.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text))));
}

function inOtherReports(record) {
  if (!several) return null;
  const others = sameCase(record);
  return h("p", { class: "other-reports" }, h("span", { class: "label" }, "in the other reports"),
    others.length
      ? others.map((other) => h("span", { class: "other" }, tag(other.report), sign(other.status), STATUS[other.status].word,
          other.used === undefined ? "" : ` ${usedTolerance(other)}`))
      : "no such case");
}
