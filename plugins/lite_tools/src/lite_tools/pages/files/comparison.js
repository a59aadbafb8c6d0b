// The page of a comparison: chart, network and tables show the same chosen result.

document.documentElement.classList.add("scripted");
const panel = byId("result");
const results = { r: data.rows, i: data.inside };
const chart = makeChart(byId("chart"), data.rows, data.first, (index) => choose(`r${index}`));
const tables = [...document.querySelectorAll("table.rows")].map((table) =>
  makeTable(table, table.closest("section").querySelector(".filters"), (id, isMoving) => choose(id, { isFromTable: !isMoving })));
const viewer = data.graph
  ? makeViewer(document.querySelector(".viewer"), data.graph, (box) => {
      const rows = data.boxes.map((_, i) => i).filter((i) => data.boxes[i] === box);
      if (rows.length) choose(`r${worstOf(rows)}`, { isFromNetwork: true });
    })
  : null;

function worstOf(indices) {
  const order = ["diverges", "suspect", "rounding", "equal", "not compared"];
  const rank = (i) => order.indexOf(data.rows[i].status);
  return indices.reduce((best, i) => (rank(i) < rank(best) ? i : best));
}

function choose(id, { isFromNetwork = false, isFromTable = false, isFirst = false } = {}) {
  const [kind, index] = [id[0], Number(id.slice(1))];
  const row = results[kind][index];
  showResult(panel, row);
  tables.forEach((table) => table.choose(id));
  if (kind === "r") {
    chart.choose(index);
    if (viewer && !isFromNetwork) viewer.choose(data.boxes[index], { quiet: true });
  }
  if (isFromTable) panel.scrollIntoView({ block: "nearest" });
  if (!isFirst) history.replaceState(null, "", `#${id}`);
}

function startingRow() {
  const asked = /^#([ri])(\d+)$/.exec(location.hash);
  if (asked && results[asked[1]][asked[2]]) return asked[0].slice(1);
  if (data.first !== null && data.first !== undefined) return `r${data.first}`;
  const size = (row) => (typeof row.local_size === "string" ? Infinity : row.local_size || 0);
  return `r${data.rows.reduce((best, row, i) => (size(row) > size(data.rows[best]) ? i : best), 0)}`;
}

if (data.rows.length) choose(startingRow(), { isFirst: true });
if (viewer) slashGoesTo(document.querySelector(".viewer").searchField);
