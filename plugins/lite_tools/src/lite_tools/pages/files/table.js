// The table of all results: sorting by a column, searching, filtering by judgement.

function makeTable(table, filters, onChoose) {
  const body = table.tBodies[0];
  const lines = [...body.rows];
  const texts = lines.map((line) => line.textContent.toLowerCase());
  let sorted = { column: 0, descending: false };

  function sortBy(column, kind) {
    const isSame = sorted.column === column;
    sorted = { column, descending: isSame ? !sorted.descending : kind === "number" && column > 0 };
    const keyOf = (line) => {
      const cell = line.cells[column];
      return kind === "number" ? (cell.dataset.value === "" ? null : Number(cell.dataset.value)) : cell.textContent;
    };
    const keys = new Map(lines.map((line, i) => [line, [keyOf(line), i]]));
    const direction = sorted.descending ? -1 : 1;
    const compare = (a, b) => {
      const [[x, i], [y, j]] = [keys.get(a), keys.get(b)];
      if (x === y) return i - j;
      if (x === null || y === null) return x === null ? 1 : -1; // rows without a number stay at the end
      return (typeof x === "string" ? x.localeCompare(y) : x - y) * direction;
    };
    body.append(...[...lines].sort(compare));
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const text = head.textContent;
    head.replaceChildren(h("button", { type: "button", onclick: () => sortBy(column, head.dataset.kind) }, text));
  });

  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line && !String(getSelection())) onChoose(line.id);
  });
  lines.forEach((line) => { line.tabIndex = -1; });
  if (lines[0]) lines[0].tabIndex = 0;
  body.addEventListener("keydown", (event) => {
    const line = event.target.closest("tr");
    const shown = [...body.rows].filter((row) => !row.hidden);
    const at = shown.indexOf(line);
    const goal = { ArrowDown: shown[at + 1], ArrowUp: shown[at - 1], Home: shown[0], End: shown[shown.length - 1] }[event.key];
    if (event.key === "Enter" && line) onChoose(line.id);
    if (!goal) return;
    event.preventDefault();
    goal.focus();
    onChoose(goal.id, true);
  });

  if (filters) makeFilters(filters, lines, texts);

  return {
    choose(id) {
      for (const line of lines) {
        line.classList.toggle("chosen", line.id === id);
        line.tabIndex = line.id === id ? 0 : -1;
      }
    },
  };
}

function makeFilters(filters, lines, texts) {
  const statuses = [...new Set(lines.map((line) => line.dataset.status))];
  const field = h("input", { type: "search", placeholder: "Search results", "aria-label": "Search results", spellcheck: "false" });
  const choice = h("select", { "aria-label": "Judgement" }, h("option", { value: "" }, "every judgement"),
    statuses.map((status) => h("option", { value: status }, `${status} (${count(lines.filter((line) => line.dataset.status === status).length)})`)));
  const result = h("output", { class: "found" });
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    lines.forEach((line, i) => {
      line.hidden = !((!choice.value || line.dataset.status === choice.value) && words.every((word) => texts[i].includes(word)));
      shown += line.hidden ? 0 : 1;
    });
    result.textContent = words.length || choice.value ? `${count(shown)} of ${count(lines.length)}` : "";
  };
  field.addEventListener("input", apply);
  choice.addEventListener("change", apply);
  filters.append(field, choice, result);
  filters.hidden = false;
}
