// The chart of the errors along the network: logarithmic, a place on the x axis for each row.

function makeChart(root, rows, first, onChoose) {
  const sizes = (row) => [row.local_size, row.accumulated_size, row.floor_size];
  const logs = rows.flatMap(sizes).filter((size) => typeof size === "number" && size > 0).map(Math.log10);
  const low = Math.floor(logs.reduce((a, b) => Math.min(a, b), -7));
  const high = Math.max(low + 3, Math.ceil(logs.reduce((a, b) => Math.max(a, b), -4)));
  const hasNan = rows.some((row) => sizes(row).some((size) => typeof size === "string"));
  const hover = h("output", { class: "hover" });
  const holder = h("div", {});
  let geometry = null;
  let chosen = -1;

  function draw() {
    const width = Math.max(260, root.clientWidth);
    const height = width < 500 ? 220 : 280;
    const area = { left: 44, right: width - 10, top: hasNan ? 34 : 20, bottom: height - 40 };
    const step = (area.right - area.left) / Math.max(1, rows.length);
    const x = (i) => area.left + step * (i + 0.5);
    const y = (size) => {
      if (typeof size === "string") return area.top - 14;
      if (size === 0) return area.bottom + 14;
      return area.bottom - ((Math.log10(size) - low) / (high - low)) * (area.bottom - area.top);
    };
    geometry = { x, y, area, step, height };
    const every = high - low > 9 ? 2 : 1;
    const grid = [];
    const tick = (at, text) => grid.push(
      s("line", { class: "grid", x1: area.left, x2: area.right, y1: at, y2: at }), s("text", { x: area.left - 6, y: at + 4, "text-anchor": "end" }, text));
    for (let decade = low; decade <= high; decade += every) tick(y(10 ** decade), decade === 0 ? "1" : `1e${decade}`);
    tick(y(0), "0");
    if (hasNan) tick(y("nan"), "NaN");
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" },
      gaps(rows, x, step, area), grid,
      s("path", { class: "floor", d: rows.map((row, i) => floorMark(row, x(i), y, step)).join("") }),
      s("path", { class: "stems", d: rows.length > 250 ? "" : rows.map((row, i) => (known(row.local_size) ? `M${x(i)},${y(0)}V${y(row.local_size)}` : "")).join("") }),
      s("path", { class: "accumulated", d: linePath(rows, x, y) }),
      s("path", { class: "local", "stroke-width": Math.min(6, Math.max(2.4, step * 0.7)), d: rows.map((row, i) => (known(row.local_size) ? `M${x(i)},${y(row.local_size)}h0` : "")).join("") }),
      s("path", { class: "broken", d: rows.map((row, i) => ([row.local_size, row.accumulated_size].some((size) => typeof size === "string") ? `M${x(i)},${y("nan")}h0` : "")).join("") }),
      firstMark(),
      s("text", { x: area.right, y: height - 4, "text-anchor": "end" }, `step 0 to ${rows.length - 1}, in the order of the run`),
      s("line", { class: "hover-line", y1: area.top, y2: area.bottom + 14, visibility: "hidden" }), s("g", { class: "chosen-marks" }));
    holder.replaceChildren(svg);
    mark();
  }

  function firstMark() {
    if (first === null || first === undefined || !rows[first]) return "";
    const { x, area } = geometry;
    const isRight = x(first) > (area.left + area.right) / 2;
    const room = (isRight ? x(first) - area.left : area.right - x(first)) / 7 - 8;
    const name = shorter(rows[first].nodes.join(" + ") || rows[first].value, Math.min(40, Math.floor(room)));
    return s("g", {},
      s("line", { class: "first-line", x1: x(first), x2: x(first), y1: area.top - 8, y2: area.bottom + 18 }),
      s("text", { class: "first-text", x: x(first) + (isRight ? -6 : 6), y: 11, "text-anchor": isRight ? "end" : "start" }, `first: ${name}`));
  }

  function mark() {
    if (!geometry || !rows[chosen]) return;
    const { x, y, area } = geometry;
    const marks = holder.querySelector(".chosen-marks");
    const point = (size, colour) => (known(size) ? s("circle", { class: `chosen-point at-${colour}`, cx: x(chosen), cy: y(size), r: 4.5 }) : "");
    fill(marks, {}, []).replaceChildren(
      ...[s("line", { class: "chosen-line", x1: x(chosen), x2: x(chosen), y1: area.top - 4, y2: area.bottom + 20 }),
        point(rows[chosen].accumulated_size, "accumulated"), point(rows[chosen].local_size, "local")].filter(Boolean));
  }

  function rowAt(event) {
    const left = holder.getBoundingClientRect().left;
    return Math.max(0, Math.min(rows.length - 1, Math.floor((event.clientX - left - geometry.area.left) / geometry.step)));
  }

  const describe = (i) => {
    const row = rows[i];
    return `${i}  ${row.nodes.join(" + ") || row.value}: local ${figure(row.local_size)}, accumulated ${figure(row.accumulated_size)}, ${row.status}`;
  };
  holder.addEventListener("pointermove", (event) => {
    if (!rows.length) return;
    const i = rowAt(event);
    hover.textContent = describe(i);
    const line = holder.querySelector(".hover-line");
    line.setAttribute("x1", geometry.x(i));
    line.setAttribute("x2", geometry.x(i));
    line.setAttribute("visibility", "visible");
  });
  holder.addEventListener("pointerleave", () => {
    holder.querySelector(".hover-line").setAttribute("visibility", "hidden");
    hover.textContent = rows[chosen] ? describe(chosen) : "";
  });
  holder.addEventListener("click", (event) => { if (rows.length) onChoose(rowAt(event)); });

  root.replaceChildren(holder, hover, chartKey(rows, first));
  fill(root, { tabindex: "0", role: "slider", "aria-label": "Result along the network", "aria-valuemin": "0", "aria-valuemax": String(rows.length - 1) }, []);
  root.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -rows.length, End: rows.length };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    onChoose(Math.max(0, Math.min(rows.length - 1, chosen + steps[event.key])));
  });
  new ResizeObserver(draw).observe(root);
  draw();

  return {
    choose(i) {
      chosen = i;
      mark();
      hover.textContent = describe(i);
      root.setAttribute("aria-valuenow", String(i));
      root.setAttribute("aria-valuetext", describe(i));
    },
  };
}

const known = (size) => size !== null && size !== undefined;

function linePath(rows, x, y) {
  let path = "";
  let isOpen = false;
  rows.forEach((row, i) => {
    if (known(row.accumulated_size)) path += `${isOpen ? "L" : "M"}${x(i).toFixed(1)},${y(row.accumulated_size).toFixed(1)}${isOpen ? "" : "h0.1"}`;
    isOpen = known(row.accumulated_size);
  });
  return path;
}

function floorMark(row, x, y, step) {
  if (!row.floor_size) return "";
  const half = Math.max(5, step / 2);
  return `M${x - half},${y(row.floor_size)}h${2 * half}`;
}

// Grey columns where neither error is known.
function gaps(rows, x, step, area) {
  const found = [];
  rows.forEach((row, i) => {
    if (known(row.local_size) || known(row.accumulated_size)) return;
    const last = found[found.length - 1];
    if (last && last.end === i) last.end = i + 1;
    else found.push({ start: i, end: i + 1 });
  });
  return found.map(({ start, end }) =>
    s("rect", { class: "gap", x: x(start) - step / 2, y: area.top, width: step * (end - start), height: area.bottom - area.top + 18 }));
}

function chartKey(rows, first) {
  const entries = [["local", "local", true], ["accumulated", "accumulated", true],
    ["floor", "noise floor: what rounding explains", rows.some((row) => row.floor_size)],
    ["first", "first to diverge", known(first)],
    ["gap", "not compared", rows.some((row) => !known(row.local_size) && !known(row.accumulated_size))]];
  return h("ul", { class: "key" }, entries.filter(([, , isShown]) => isShown).map(([name, text]) => h("li", {}, h("i", { class: name }), text)));
}
