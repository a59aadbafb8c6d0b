// The overview: verdict, counts, levels, the slowest cases.

function makeHeader() {
  const any = (test) => records.some(test);
  const jumps = [
    several && ["changes", "What changed"],
    ["attention", "Needs attention"], ["levels", "Levels"],
    subjects.length > 1 && ["sides", "Side by side"],
    any((record) => record.op) && ["matrix", "Matrix"],
    ["cases", "Cases"],
    any((record) => record.status === "unsupported") && ["unsupported", "Unsupported"],
    any((record) => record.status === "xfail") && ["xfail", "Expected failures"],
    any(isLoosened) && ["loosened", "Loosened"],
  ].filter(Boolean);
  document.getElementById("top").append(
    h("div", { class: "inner" },
      h("div", { class: "title" },
        h("h1", {}, several ? "Conformance, side by side" : h("span", {}, "Conformance of ", h("b", {}, reports[0].name))),
        h("nav", { "aria-label": "On this page" },
          jumps.map(([id, label]) => h("a", { href: `#${id}`, onclick: (event) => { event.preventDefault(); goTo(id); } }, label)))),
      h("div", { class: several ? "cards many" : "cards" }, reports.map(card))));
}

function outcome(report) {
  const broken = data.bad.reduce((sum, status) => sum + report.counts[status], 0);
  if (report.incomplete) return { kind: broken ? "failed" : "skipped", text: `Not complete: ${report.incomplete}` };
  if (broken) return { kind: "failed", text: `${plural(broken, "case needs", "cases need")} attention` };
  if (!report.counts.executed) return { kind: "skipped", text: "Nothing was executed" };
  const { executed, xfail } = report.counts;
  const but = xfail ? `, but for ${plural(xfail, "expected failure")}` : "";
  return { kind: "passed", text: executed === 1 ? `The executed case passed${but}` : `All ${count(executed)} executed cases passed${but}` };
}

function card(report, r) {
  const { kind, text } = outcome(report);
  const total = report.records.length;
  const tile = (value, label, title) => h("div", { class: "tile", title }, h("b", {}, value), h("span", {}, label));
  const order = ["passed", "failed", ...data.severity.filter((status) => status !== "passed" && status !== "failed")];
  return h("article", { class: "card", "data-kind": kind },
    several ? h("h2", { class: "who" }, h("span", { class: "tag" }, letter(r)), report.name) : null,
    h("p", { class: "verdict" }, sign(kind), text),
    statusBar(report.counts, total),
    h("ul", { class: "legend" },
      order.filter((status) => report.counts[status] || status === "passed" || status === "failed").map((status) =>
        h("li", { "data-status": status, class: report.counts[status] ? null : "zero" }, sign(status), h("span", {}, h("b", {}, count(report.counts[status])), ` ${status}`)))),
    h("div", { class: "tiles" },
      tile(count(report.counts.executed), `executed of ${count(total)}`),
      tile(report.rate, "weighted pass rate", report.rate_text),
      tile(duration(report.seconds) || "–", "duration")),
    h("dl", { class: "where" }, report.facts.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value)))));
}

function makeLevels(parent) {
  const part = section("levels", "Levels and time");
  const rows = levels.map((level) => {
    const lines = reports.map((report, r) => {
      const cases = report.records.filter((record) => record.level === level);
      const counts = Object.fromEntries(countBy(cases, (record) => record.status));
      const broken = cases.filter((record) => bad.has(record.status)).length;
      const time = cases.reduce((sum, record) => sum + (typeof record.seconds === "number" ? record.seconds : 0), 0);
      return h("tr", { "data-level": level },
        r === 0 ? h("th", { scope: "row", rowspan: reports.length }, h("b", {}, `L${level}`), ` ${data.levels[level] || ""}`) : null,
        several ? h("td", {}, tag(r)) : null,
        h("td", { class: "wide" }, cases.length ? statusBar(counts, cases.length) : h("span", { class: "quiet" }, "no cases")),
        h("td", { class: "num" }, cases.length ? `${count(counts.passed || 0)}/${count(cases.length)}` : ""),
        h("td", { class: broken ? "num over" : "num quiet" }, cases.length ? count(broken) : ""),
        h("td", { class: "num quiet" }, duration(time)));
    });
    return lines;
  });
  const table = h("table", { class: "levels" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "level"), several ? h("th", {}, "") : null, h("th", { scope: "col", class: "wide" }, ""),
      h("th", { scope: "col", class: "num" }, "passed"), h("th", { scope: "col", class: "num" }, "bad"),
      h("th", { scope: "col", class: "num" }, "time"))),
    h("tbody", {}, rows.flat()));
  part.body.append(h("div", { class: "columns" }, table, slowest()));
  parent.append(part.element);
}

function slowest() {
  const timed = records.filter((record) => typeof record.seconds === "number" && record.seconds > 0);
  const top = timed.sort((a, b) => b.seconds - a.seconds).slice(0, 5);
  if (!top.length) return null;
  return h("div", { class: "slowest" }, h("h3", {}, "Slowest cases"),
    h("ol", {}, top.map((record) => h("li", {},
      h("a", { href: `#${hashOf({ case: record.case })}` }, tag(record.report), h("code", {}, record.case)),
      h("span", { class: "track" }, h("span", { width: `${(100 * record.seconds) / top[0].seconds}%` })),
      h("span", { class: "num" }, duration(record.seconds))))));
}
