// The page of a graph: the drawing, and the facts of the chosen node beside it.

const panel = byId("facts");
const viewer = makeViewer(document.querySelector(".viewer"), data.graph, (index) => {
  showFacts(index);
  history.replaceState(null, "", `#n${index}`);
});

function showFacts(index) {
  const node = data.graph.nodes[index];
  const rows = node.facts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text)));
  const ends = (title, list) => (list.length ? h("p", { class: "ends" }, h("span", { class: "label" }, title), list.map(jump)) : null);
  const from = data.graph.edges.filter(([, b]) => b === index).map(([a]) => a);
  const to = data.graph.edges.filter(([a]) => a === index).map(([, b]) => b);
  panel.replaceChildren(
    h("h2", {}, node.facts.length ? node.facts[0][1] : node.name), h("p", { class: "chosen-name" }, node.name), h("dl", {}, rows),
    ...[ends("reads from", [...new Set(from)]), ends("read by", [...new Set(to)])].filter(Boolean));
}

function jump(index) {
  return h("button", { type: "button", class: "plain", onclick: () => viewer.choose(index) }, shorter(data.graph.nodes[index].name || "?", 40));
}

slashGoesTo(document.querySelector(".viewer").searchField);
const asked = /^#n(\d+)$/.exec(location.hash);
if (asked && data.graph.nodes[asked[1]]) viewer.choose(Number(asked[1]));
