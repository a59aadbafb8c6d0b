// Builds the page and updates it when the filters or the URL change.

const main = document.getElementById("main");
const parts = [];
const onChange = Object.assign(() => { writeHash(); draw(); }, { hash: writeHash });

readHash();
makeHeader();
const toolbar = makeToolbar(onChange);
makeChanges(main);
main.append(toolbar.element);
parts.push(makeAttention(main));
makeLevels(main);
parts.push(makeSides(main, onChange));
parts.push(makeMatrix(main, onChange));
parts.push(makeCases(main));
parts.push(makeReasons(main, "unsupported", "Unsupported", "unsupported"));
parts.push(makeReasons(main, "xfail", "Expected failures", "xfail"));
parts.push(makeReasons(main, "skipped", "Skipped", "skipped"));
parts.push(makeLoosened(main));

function draw() {
  const query = words();
  const matched = records.filter((record) => hasStatus(record) && inScope(record, query));
  toolbar.update(matched);
  document.body.classList.toggle("filtered", isFiltered());
  for (const part of parts) part.update(matched);
}

draw();
if (filters.case) goTo("cases");

window.addEventListener("hashchange", () => {
  readHash();
  draw();
  if (filters.case) goTo("cases");
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  goTo("attention");
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("search").focus();
  }
});

// A matrix scrolls sideways only if it does not fit: in a scrolling frame the head row cannot be sticky.
window.addEventListener("resize", () => {
  for (const frame of document.querySelectorAll(".frame")) {
    frame.classList.remove("scrolls");
    frame.classList.toggle("scrolls", frame.firstChild.scrollWidth > frame.clientWidth);
  }
});
new ResizeObserver(() => {
  document.documentElement.style.setProperty("--toolbar", `${toolbar.element.offsetHeight}px`);
}).observe(toolbar.element);

// Cases that need attention are expanded for printing.
window.addEventListener("beforeprint", () => {
  const list = document.querySelector("#attention .lazy");
  if (list) list.showAtLeast(200);
  for (const row of document.querySelectorAll("#attention details.case, #attention details.output")) {
    if (row.fill) row.fill();
    row.open = true;
  }
  for (const row of document.querySelectorAll("#attention details.output")) row.open = true;
});
