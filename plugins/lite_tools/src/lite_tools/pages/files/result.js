// The chosen result: names, kernels, errors, histogram and picture.

const ERRORS = [
  ["relative", "relative"], ["max_abs", "max abs"], ["mean_abs", "mean abs"], ["max_rel", "max relative"],
  ["max_ulp", "max ULP"], ["cosine", "cosine"],
];

function showResult(panel, row) {
  const parts = h("div", { class: "parts" }, errorTable(row));
  parts.append(h("div", { class: "figures" },
    row.histogram ? histogramFigure(row.histogram) : null, row.picture ? pictureFigure(row.picture) : null));
  panel.replaceChildren(
    h("div", { class: "top" }, h("h2", {}, `${row.index}  ${row.op || "?"}`), h("span", { class: "status", "data-status": row.status }, row.status)),
    h("p", { class: "value" }, row.value, row.occurrence ? `, pass ${row.occurrence} of the loop` : ""),
    ...(row.reason ? [h("p", { class: "reason" }, row.reason)] : []), parts, aboutResult(row));
}

function aboutResult(row) {
  const facts = [
    ["kernel of a", row.kernel_a || "–"], ["kernel of b", row.kernel_b || "–"],
    ["device of a", row.device_a || "–"], ["device of b", row.device_b || "–"], ["type", row.type], ["nodes", row.nodes.join(", ")], ["origin", row.origin], ["reads", (row.inputs || []).join(", ")],
    ...Object.entries(row.attributes || {}).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ];
  return h("dl", { class: "about" },
    facts.filter(([, text]) => text).map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text))));
}

function errorTable(row) {
  const sides = [row.local, row.accumulated];
  if (!row.local && !row.accumulated) return null;
  const line = (label, cell, className) =>
    h("tr", {}, h("th", { scope: "row" }, label), sides.map((errors) => h("td", { class: className }, errors ? cell(errors) : "–")));
  const both = (name) => (errors) => `${figure(errors[`${name}_a`])} / ${figure(errors[`${name}_b`])}`;
  const some = (name) => sides.some((errors) => errors && (errors[`${name}_a`] || errors[`${name}_b`]));
  const table = h("table", { class: "errors" },
    h("thead", {}, h("tr", {}, h("th", {}, "error"), h("th", { scope: "col" }, "local"), h("th", { scope: "col" }, "accumulated"))),
    h("tbody", {},
      ERRORS.map(([key, label]) => line(label, (errors) => (key === "cosine" ? cosine(errors[key]) : figure(errors[key])))),
      ["nan", "inf"].filter(some).map((name) => line(`${name === "nan" ? "NaN" : "Inf"} in a / b`, both(name))),
      line("different", (errors) => `${count(errors.different)} of ${count(errors.elements)}`, "place"),
      line("worst at", (errors) => `[${(errors.at || []).join(", ")}]`, "place"),
      line("a there", (errors) => exact(errors.value_a)),
      line("b there", (errors) => exact(errors.value_b))));
  return h("div", { class: "numbers" }, table, noiseLine(row));
}

function noiseLine(row) {
  if (!row.noise) return null;
  return h("p", { class: "note" }, `Against float64: a is ${figure(row.noise.a)} away, b ${figure(row.noise.b)}; rounding explains ${figure(row.noise.floor)}.`);
}

const exact = (value) => (typeof value === "number" ? String(Number(value.toPrecision(8))) : figure(value));
const cosine = (value) => (typeof value === "number" ? (value === 1 ? "1" : value.toFixed(7)) : "–");
