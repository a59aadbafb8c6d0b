// A table whose cells are buttons: one of them is a tab stop, the arrow keys lead to the others.

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
