// A table whose cells are buttons: one of them is a tab stop, the arrow keys lead to the others, and each opens a panel.

function setTabStop(body, button) {
  for (const other of body.querySelectorAll('button.cell[tabindex="0"]')) other.tabIndex = -1;
  button.tabIndex = 0;
}

// Handles a key in a grid whose rows have `data-op`; `escape` closes what a cell has opened.
function moveInGrid(event, grid, escape) {
  const button = event.target.closest("button.cell");
  if (!button) return;
  if (event.key === "Escape") {
    escape();
    return;
  }
  const row = button.closest("tr");
  const rows = [...grid.querySelectorAll("tr[data-op]")];
  const column = button.parentElement.cellIndex;
  const inRow = [...row.querySelectorAll("button.cell")];
  const vertical = (step) => {
    for (let i = rows.indexOf(row) + step; i >= 0 && i < rows.length; i += step) {
      const found = rows[i].cells[column] && rows[i].cells[column].querySelector("button");
      if (found) return found;
    }
    return null;
  };
  const targets = {
    ArrowRight: () => inRow[inRow.indexOf(button) + 1],
    ArrowLeft: () => inRow[inRow.indexOf(button) - 1],
    ArrowDown: () => vertical(1),
    ArrowUp: () => vertical(-1),
    Home: () => inRow[0],
    End: () => inRow[inRow.length - 1],
  };
  if (!targets[event.key]) return;
  event.preventDefault();
  const next = targets[event.key]();
  if (!next) return;
  setTabStop(grid, next);
  next.focus();
}

// A grid in a section. A cell opens a panel with its cases below its row; the filter `name` stores which one, by the cells'
// attribute `data-<name>`. `casesOf` returns the list for the panel of a button.
function makeGrid(part, name, casesOf, onChange) {
  let openButton = null;

  function close() {
    if (!openButton) return;
    openButton.setAttribute("aria-expanded", "false");
    openButton.closest("tr").nextElementSibling.remove();
    openButton = null;
    filters[name] = "";
  }

  function open(button, byHand) {
    const again = button === openButton;
    close();
    if (!again) {
      const label = button.getAttribute("aria-label");
      const shut = h("button", { type: "button", class: "plain", onclick: () => { close(); onChange.hash(); button.focus(); } }, "Close");
      const panel = h("div", { class: "panel", role: "region", "aria-label": label },
        h("div", { class: "panel-head" }, h("b", {}, label), shut), casesOf(button));
      panel.addEventListener("keydown", (event) => { if (event.key === "Escape") shut.click(); });
      const row = button.closest("tr");
      row.after(h("tr", { class: "panel-row" }, h("td", { colspan: row.childElementCount }, panel)));
      button.setAttribute("aria-expanded", "true");
      openButton = button;
      filters[name] = button.dataset[name];
    }
    if (byHand) onChange.hash();
    setTabStop(part.body, button);
  }

  // Replaces what the section shows: `rows` is the table's body; `more` is the button that shows the rows left out.
  function show(className, head, rows, { more, empty }) {
    const table = h("table", { class: className, role: "grid", "aria-labelledby": part.heading.id }, head, rows);
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button.cell");
      if (button) open(button, true);
    });
    table.addEventListener("keydown", (event) => moveInGrid(event, rows, () => { close(); onChange.hash(); }));
    const frame = h("div", { class: "frame" }, table);
    part.body.replaceChildren(rows.childElementCount ? frame : h("p", { class: "empty" }, empty), more);
    frame.classList.toggle("scrolls", table.scrollWidth > frame.clientWidth);
    const buttons = [...rows.querySelectorAll("button.cell")];
    if (buttons.length) buttons[0].tabIndex = 0;
    openButton = null;
    const wanted = filters[name] && buttons.find((button) => button.dataset[name] === filters[name]);
    if (wanted) open(wanted, false);
  }

  return { show };
}

// The button of a cell: the sign of its worst status, how many cases passed, and what else is given.
function gridButton(name, key, worst, { passed, total, faded, ...attributes }, extra) {
  return h("button", {
    type: "button", class: faded ? "cell faded" : "cell", "data-status": worst, [`data-${name}`]: key, tabindex: "-1",
    "aria-expanded": "false", ...attributes,
  }, h("span", { class: "mark", "aria-hidden": "true" }, STATUS[worst].sign), h("span", {}, `${passed}/${total}`), extra);
}

// The button that shows the rows that a table leaves out at first.
const moreButton = (held, text, onclick) => h("button", { type: "button", class: "more", hidden: held === 0, onclick }, text);
