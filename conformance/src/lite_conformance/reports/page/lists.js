// The lists: cases that need attention, all cases, and unsupported or skipped cases and expected failures by reason.

const OPEN_AT_ONCE = 3;

function makeAttention(parent) {
  const part = section("attention", "Needs attention");
  parent.append(part.element);
  const all = records.filter((record) => bad.has(record.status));
  return {
    update(matched) {
      const broken = matched.filter((record) => bad.has(record.status))
        .sort((a, b) => worstFirst(a, b) || (b.weight || 0) - (a.weight || 0));
      part.heading.replaceChildren("Needs attention ", h("span", { class: "n" }, count(broken.length)));
      part.hint.textContent = broken.length ? "The worst first, then the most used operators." : "";
      if (!broken.length) {
        part.body.replaceChildren(h("p", { class: "empty" },
          all.length ? "No such case among those shown." : "Nothing failed, crashed or hung."));
        return;
      }
      part.body.replaceChildren(lazyList(broken, (record) => caseRow(record, { open: all.length <= OPEN_AT_ONCE }), { first: 12, step: 50 }));
    },
  };
}

function makeCases(parent) {
  const part = section("cases", "Cases");
  parent.append(part.element);
  const orders = {
    suite: ["in the suite's order", null],
    time: ["slowest first", (a, b) => (b.seconds || 0) - (a.seconds || 0)],
    used: ["least tolerance left first", (a, b) => usedRank(b) - usedRank(a)],
    worst: ["worst status first", worstFirst],
  };
  let current = [];
  const order = h("select", { "aria-label": "Order of the cases", id: "order", onchange: () => draw() },
    Object.entries(orders).map(([key, [label]]) => h("option", { value: key }, label)));
  part.hint.before(order);
  function draw() {
    const compare = orders[order.value][1];
    const sorted = compare ? [...current].sort(compare) : current;
    part.body.replaceChildren(sorted.length
      ? lazyList(sorted, (record) => caseRow(record, { open: Boolean(filters.case) }), { first: 25, step: 200 })
      : h("p", { class: "empty" }, "No case matches."));
  }
  return {
    update(matched) {
      current = matched;
      part.heading.replaceChildren("Cases ", h("span", { class: "n" }, count(matched.length)));
      draw();
    },
  };
}

const usedRank = (record) => (record.used === undefined ? -1 : typeof record.used === "number" ? record.used : Infinity);

function makeReasons(parent, id, title, status) {
  const part = section(id, title);
  parent.append(part.element);
  const exists = records.some((record) => record.status === status);
  part.element.hidden = !exists;
  return {
    update(matched) {
      if (!exists) return;
      const groups = [...groupBy(matched.filter((record) => record.status === status), (record) => record.group)]
        .sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
      part.heading.replaceChildren(`${title} `, h("span", { class: "n" }, count(groups.reduce((sum, [, cases]) => sum + cases.length, 0))));
      part.body.replaceChildren(groups.length
        ? lazyList(groups, ([reason, cases]) => reasonGroup(reason, cases), { first: 30, step: 100, className: "groups" })
        : h("p", { class: "empty" }, "No such case among those shown."));
    },
  };
}

function makeLoosened(parent) {
  const part = section("loosened", "Loosened tolerances");
  parent.append(part.element);
  const exists = records.some(isLoosened);
  part.element.hidden = !exists;
  return {
    update(matched) {
      if (!exists) return;
      const list = matched.filter(isLoosened);
      const groups = [...groupBy(list, (r) => JSON.stringify([r.tolerance.reason, r.tolerance.rtol, r.tolerance.atol, r.tolerance.default]))]
        .sort((a, b) => b[1].length - a[1].length);
      part.heading.replaceChildren("Loosened tolerances ", h("span", { class: "n" }, count(list.length)));
      part.body.replaceChildren(groups.length
        ? lazyList(groups, ([, cases]) => {
            const { rtol, atol, default: standard, reason } = cases[0].tolerance;
            return reasonGroup(reason || "no reason given", cases,
              `rtol ${figure(rtol)} for ${figure(standard[0])}, atol ${figure(atol)} for ${figure(standard[1])}`);
          }, { first: 30, step: 100, className: "groups" })
        : h("p", { class: "empty" }, "No such case among those shown."));
    },
  };
}

// A reason with its cases, which are rendered when it is opened.
function reasonGroup(reason, cases, extra) {
  const operators = [...new Set(cases.map((record) => record.op).filter(Boolean))];
  const named = operators.slice(0, 6).join(", ") + (operators.length > 6 ? ` and ${operators.length - 6} more` : "");
  const group = h("details", { class: "group" },
    h("summary", {}, h("span", { class: "n" }, count(cases.length)),
      h("span", { class: "what" }, reason, extra ? h("span", { class: "quiet figures" }, extra) : null), h("span", { class: "quiet ops" }, named)));
  group.addEventListener("toggle", () => {
    if (group.open && group.childElementCount === 1) group.append(lazyList(cases, (record) => caseRow(record, { known: reason }), { first: 25, step: 100 }));
  });
  return group;
}
