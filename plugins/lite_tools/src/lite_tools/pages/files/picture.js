// The drawing of a graph: zooming, moving, searching, choosing nodes and collapsing groups.

const GAP = 34; // the largest vertical distance that is left between boxes after collapsing, in pixels

function makeViewer(root, graph, onChoose) {
  const svg = root.querySelector("svg");
  const scroller = root.querySelector(".scroller");
  const boxes = [...svg.querySelectorAll(".nodes > .node")];
  const frames = [...svg.querySelectorAll(".groups > .group")];
  const lines = [...svg.querySelectorAll(".edges > .edge")];
  const { nodes, groups, edges } = graph;
  const full = { width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
  let size = full;
  let scale = 1;
  let chosen = -1;
  let found = [];
  const collapsed = new Set();

  // **** zoom and movement ****

  function smallest() {
    return Math.max(0.03, Math.min(1, scroller.clientWidth / size.width, scroller.clientHeight / size.height));
  }

  function resize() {
    svg.setAttribute("width", size.width * scale);
    svg.setAttribute("height", size.height * scale);
    svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
  }

  // Changes the scale; the point of the drawing at (x, y) of the scroller stays where it is.
  function zoomTo(wanted, x = scroller.clientWidth / 2, y = scroller.clientHeight / 2) {
    const before = svg.getBoundingClientRect();
    const corner = scroller.getBoundingClientRect();
    const [px, py] = [(x - (before.left - corner.left)) / scale, (y - (before.top - corner.top)) / scale];
    scale = Math.min(3, Math.max(smallest(), wanted));
    resize();
    const after = svg.getBoundingClientRect();
    scroller.scrollLeft += after.left - corner.left + px * scale - x;
    scroller.scrollTop += after.top - corner.top + py * scale - y;
  }

  function fitWidth() {
    zoomTo(Math.min(1, Math.max(0.55, (scroller.clientWidth - 4) / size.width)));
  }

  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const corner = scroller.getBoundingClientRect();
    zoomTo(scale * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0025)), event.clientX - corner.left, event.clientY - corner.top);
  }, { passive: false });

  let drag = null;
  scroller.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    drag = { x: event.clientX, y: event.clientY, left: scroller.scrollLeft, top: scroller.scrollTop, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag || !event.buttons) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (Math.abs(dx) + Math.abs(dy) > 4) drag.moved = true;
    if (!drag.moved) return;
    scroller.classList.add("moving");
    scroller.scrollLeft = drag.left - dx;
    scroller.scrollTop = drag.top - dy;
  });
  window.addEventListener("pointerup", () => {
    scroller.classList.remove("moving");
    setTimeout(() => { drag = null; }); // after the click that this movement ends with
  });

  // **** choosing ****

  svg.addEventListener("click", (event) => {
    if (drag && drag.moved) return;
    const node = event.target.closest(".nodes > .node");
    const frame = event.target.closest(".groups > .group");
    if (node) choose(Number(node.dataset.node));
    else if (frame && (event.target.tagName !== "rect" || collapsed.has(Number(frame.dataset.group)))) toggle(Number(frame.dataset.group));
  });

  function choose(index, { quiet = false, centred = false } = {}) {
    if (boxes[chosen]) boxes[chosen].classList.remove("chosen");
    chosen = index;
    if (!boxes[index]) return;
    boxes[index].classList.add("chosen");
    if (!quiet) onChoose(index); // at first: facts below a narrow page's drawing take height from it
    reveal(index, centred);
  }

  function reveal(index, centred = false) {
    const before = collapsed.size;
    for (let group = nodes[index].group; group !== null; group = groups[group].outer) collapsed.delete(group);
    if (collapsed.size !== before) rearrange();
    const box = boxes[index].getBoundingClientRect();
    const area = scroller.getBoundingClientRect();
    if (centred || box.left < area.left + 8 || box.right > area.right - 8) scroller.scrollLeft += (box.left + box.right - area.left - area.right) / 2;
    if (centred || box.top < area.top + 8 || box.bottom > area.bottom - 8) scroller.scrollTop += (box.top + box.bottom - area.top - area.bottom) / 2;
  }

  const after = nodes.map(() => []);
  const before = nodes.map(() => []);
  edges.forEach(([a, b]) => { after[a].push(b); before[b].push(a); });

  function beside(index, direction) {
    const from = nodes[index];
    const rest = nodes.map((node, i) => i).filter((i) => Math.abs(nodes[i].y - from.y) < 12 && (nodes[i].x - from.x) * direction > 0);
    return rest.sort((i, j) => Math.abs(nodes[i].x - from.x) - Math.abs(nodes[j].x - from.x))[0];
  }

  scroller.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const group = nodes[chosen] ? nodes[chosen].group : null;
    const actions = {
      ArrowDown: () => (chosen < 0 ? 0 : after[chosen][0]),
      ArrowUp: () => (chosen < 0 ? 0 : before[chosen][0]),
      ArrowLeft: () => (chosen < 0 ? 0 : beside(chosen, -1)),
      ArrowRight: () => (chosen < 0 ? 0 : beside(chosen, 1)),
      Enter: () => { if (group !== null) toggle(group); },
      "+": () => zoomTo(scale * 1.25),
      "=": () => zoomTo(scale * 1.25),
      "-": () => zoomTo(scale / 1.25),
      0: fitWidth,
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    const next = action();
    if (typeof next === "number") choose(next);
  });

  // **** collapsing ****

  const originals = lines.map((line) => (line.getAttribute("d").match(/-?[\d.]+/g) || []).map(Number));
  const titles = frames.map((frame) => frame.querySelector("text").textContent);
  frames.forEach((frame, index) => { frame.querySelector("text").textContent = `▾ ${titles[index]}`; });

  function toggle(group) {
    if (!collapsed.delete(group)) collapsed.add(group);
    rearrange();
  }

  function toggleAll(kinds) {
    if (collapsed.size) collapsed.clear();
    else groups.forEach((group, index) => { if (kinds.includes(group.kind)) collapsed.add(index); });
    rearrange();
    if (chosen >= 0 && !collapsed.size) reveal(chosen);
  }

  // The outermost collapsed group that contains a group, itself included; -1 if there is none.
  function hider(group) {
    let outermost = -1;
    for (; group !== null; group = groups[group].outer) if (collapsed.has(group)) outermost = group;
    return outermost;
  }

  function rearrange() {
    const hidden = groups.map((_, index) => hider(index));
    const owner = nodes.map((node) => (node.group === null ? -1 : hidden[node.group]));
    const spans = [];
    const span = (middle, height) => spans.push([middle - height / 2, middle + height / 2]);
    nodes.forEach((node, i) => { if (owner[i] < 0) span(node.y, node.h); });
    groups.forEach((group, i) => {
      if (hidden[i] === i) span(group.y, 34);
      else if (hidden[i] < 0) { span(group.y - group.h / 2 + 11, 22); span(group.y + group.h / 2, 12); }
    });
    const place = closeGaps(spans, full.height);
    nodes.forEach((node, i) => {
      boxes[i].toggleAttribute("hidden", owner[i] >= 0);
      boxes[i].setAttribute("transform", `translate(${node.x - node.w / 2},${place(node.y) - node.h / 2})`);
    });
    groups.forEach((group, i) => drawFrame(i, hidden[i], place));
    const drawn = new Set();
    lines.forEach((line, i) => {
      const [a, b] = edges[i].map((end) => (owner[end] < 0 ? `n${end}` : `g${owner[end]}`));
      const isRepeated = (a[0] === "g" || b[0] === "g") && drawn.has(`${a} ${b}`);
      drawn.add(`${a} ${b}`);
      line.toggleAttribute("hidden", a === b || isRepeated);
      line.setAttribute("d", a[0] === "n" && b[0] === "n" ? curve(originals[i], place) : around(a, b, originals[i], place));
    });
    const middle = (scroller.scrollTop + scroller.clientHeight / 2) / (size.height * scale);
    size = { width: full.width, height: place(full.height) };
    resize();
    if (chosen < 0) scroller.scrollTop = middle * size.height * scale - scroller.clientHeight / 2;
  }

  function drawFrame(index, hiddenBy, place) {
    const [frame, group] = [frames[index], groups[index]];
    const [rect, text] = frame.querySelectorAll("rect, text");
    const isClosed = hiddenBy === index;
    frame.toggleAttribute("hidden", hiddenBy >= 0 && !isClosed);
    for (const name of ["collapsed", ...group.classes]) frame.classList.toggle(name, isClosed);
    const title = isClosed ? `▸ ${group.inside} · ${shorter(group.title, 40)}` : `▾ ${titles[index]}`;
    const width = isClosed ? Math.max(90, title.length * 6.3 + 18) : group.w;
    const top = isClosed ? place(group.y) - 17 : place(group.y - group.h / 2);
    const bottom = isClosed ? top + 34 : place(group.y + group.h / 2);
    const left = Math.max(2, group.x - width / 2);
    for (const [name, value] of Object.entries({ x: left, y: top, width, height: bottom - top })) rect.setAttribute(name, value);
    text.textContent = title;
    text.setAttribute("x", left + 8);
    text.setAttribute("y", isClosed ? top + 21 : top + 15);
  }

  function curve(numbers, place) {
    const points = [];
    for (let i = 0; i < numbers.length; i += 2) points.push(`${numbers[i]},${place(numbers[i + 1])}`);
    return points.length > 1 ? `M${points[0]}C${points.slice(1).join(" ")}` : "";
  }

  // The path of an edge that ends at a collapsed group: as before outside of the group, so that it crosses no boxes.
  function around(a, b, numbers, place) {
    const at = (name) => (name[0] === "n" ? nodes[name.slice(1)] : groups[name.slice(1)]);
    const half = (name) => (name[0] === "n" ? at(name).h / 2 : 17);
    const [x0, y0, x1, y1] = [at(a).x, place(at(a).y) + half(a), at(b).x, place(at(b).y) - half(b)];
    const between = [];
    for (let i = 6; i + 6 < numbers.length; i += 6) {
      const isInside = [a, b].some((name) => Math.abs(numbers[i + 1] - at(name).y) < at(name).h / 2 + 4);
      const y = place(numbers[i + 1]);
      if (!isInside && y > y0 && y < y1) between.push(`L${numbers[i]},${y}`);
    }
    if (between.length) return `M${x0},${y0}${between.join("")}L${x1},${y1}`;
    const bend = Math.max(12, Math.abs(y1 - y0) / 2);
    return `M${x0},${y0}C${x0},${y0 + bend} ${x1},${y1 - bend} ${x1},${y1}`;
  }

  // **** searching and colours ****

  const texts = graph.nodes.map((node, index) => `${boxes[index].textContent} ${node.text || ""}`.toLowerCase());

  function search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? texts.map((_, i) => i).filter((i) => words.every((word) => texts[i].includes(word))) : [];
    const hits = new Set(found);
    boxes.forEach((box, i) => box.classList.toggle("hit", hits.has(i)));
    svg.classList.toggle("searching", words.length > 0);
    return found.length;
  }

  function nextFound(step) {
    if (!found.length) return;
    const at = found.indexOf(chosen);
    choose(found[(at + step + found.length) % found.length], { centred: true });
  }

  function colourBy(name) {
    for (const other of Object.keys(graph.legends)) svg.classList.toggle(`by-${other}`, other === name);
    const entries = graph.legends[name].map(([key, text]) =>
      h("li", {}, s("svg", { width: 14, height: 14, class: "node", "aria-hidden": "true" }, s("rect", { class: key, width: 13, height: 13, x: 0.5, y: 0.5, rx: 3 })), h("span", {}, text)));
    root.querySelector(".legend").replaceChildren(...entries);
  }

  makeTools(root, graph, { search, nextFound, colourBy, zoomBy: (factor) => zoomTo(scale * factor), fitWidth, whole: () => zoomTo(0), toggleAll });
  fitWidth();
  if (nodes[0]) scroller.scrollLeft = nodes[0].x * scale - scroller.clientWidth / 2;
  scroller.scrollTop = 0;
  return { choose, chosen: () => chosen, toggle };
}

// Returns a function that moves heights so that no gap between the spans is larger than GAP.
function closeGaps(spans, height) {
  spans.sort((a, b) => a[0] - b[0]);
  const gaps = []; // [start, end, sum of what is removed before]
  let end = 0;
  let removed = 0;
  for (const [from, to] of spans) {
    if (from - end > GAP) {
      gaps.push([end, from, removed]);
      removed += from - end - GAP;
    }
    end = Math.max(end, to);
  }
  const rest = Math.max(0, height - end - GAP);
  return (y) => {
    if (y >= height) return height - removed - rest;
    let [low, high] = [0, gaps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (gaps[middle][0] <= y) low = middle + 1;
      else high = middle;
    }
    if (!low) return y;
    const [from, to, before] = gaps[low - 1];
    return y >= to ? y - before - (to - from - GAP) : from - before + ((y - from) * GAP) / (to - from);
  };
}

// The bar above a drawing: search, colours, groups, zoom.
function makeTools(root, graph, tools) {
  const result = h("output", { class: "found" });
  const field = h("input", { type: "search", placeholder: "Search ( / )", "aria-label": "Search nodes", spellcheck: "false" });
  field.addEventListener("input", () => {
    const n = tools.search(field.value);
    result.textContent = field.value.trim() ? `${count(n)} found` : "";
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") tools.nextFound(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { field.value = ""; tools.search(""); result.textContent = ""; }
  });
  const button = (text, label, onclick) => h("button", { type: "button", title: label, "aria-label": label, onclick }, text);
  const colours = Object.keys(graph.legends);
  const choice = h("select", { "aria-label": "Colour by" }, colours.map((name) => h("option", { value: name }, `colour: ${name}`)));
  choice.value = graph.colour;
  choice.addEventListener("change", () => tools.colourBy(choice.value));
  const kinds = [...new Set(graph.groups.map((group) => group.kind))];
  const groups = kinds.length ? button("Collapse groups", "Collapse or expand all groups", () => {
    tools.toggleAll(kinds);
    groups.textContent = groups.textContent === "Collapse groups" ? "Expand groups" : "Collapse groups";
  }) : null;
  root.querySelector(".tools").append(
    field, result, colours.length > 1 ? choice : null || "", groups || "",
    h("span", { class: "zoom" },
      button("−", "Zoom out", () => tools.zoomBy(1 / 1.25)), button("+", "Zoom in", () => tools.zoomBy(1.25)),
      button("Width", "Fit the width", tools.fitWidth), button("All", "Show the whole graph", tools.whole)));
  root.querySelector(".tools").hidden = false;
  tools.colourBy(graph.colour);
  root.searchField = field;
}
