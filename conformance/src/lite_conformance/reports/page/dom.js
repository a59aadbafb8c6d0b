// Elements. Texts of a report are inserted as text nodes only, never as markup.

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "width") element.style.width = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const sign = (status) =>
  h("span", { class: "sign", "data-status": status, title: STATUS[status].word, role: "img", "aria-label": STATUS[status].word },
    STATUS[status].sign);

const tag = (report) => (several ? h("span", { class: "tag", title: reports[report].name }, letter(report)) : null);

const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || `${one}s`}`;

function section(id, title, note) {
  const heading = h("h2", { id: `${id}-title`, tabindex: "-1" }, title);
  const hint = h("p", { class: "note" }, note || "");
  const body = h("div", { class: "body" });
  const element = h("section", { id, "aria-labelledby": `${id}-title` }, h("div", { class: "head" }, heading, hint), body);
  return { element, heading, hint, body };
}

function goTo(id) {
  document.getElementById(id).scrollIntoView({ block: "start" });
  const heading = document.getElementById(`${id}-title`);
  if (heading) heading.focus({ preventScroll: true });
}

// A list that creates its rows on demand: 7,000 rows at once would take seconds.
function lazyList(items, makeRow, { first = 50, step = 200, className = "rows" } = {}) {
  const list = h("div", { class: className });
  const more = h("button", { type: "button", class: "more", onclick: () => grow(step, true) });
  let shown = 0;
  if (items.length <= first * 1.5) first = items.length;
  function grow(by, focus) {
    const next = items.slice(shown, shown + by).map(makeRow);
    list.append(...next);
    shown += next.length;
    const rest = items.length - shown;
    more.textContent = rest <= step ? `Show ${count(rest)} more` : `Show ${count(step)} more of ${count(rest)}`;
    more.hidden = rest === 0;
    if (focus && next[0]) (next[0].querySelector("summary, button, a") || next[0]).focus();
  }
  grow(first, false);
  const element = h("div", { class: "lazy" }, list, more);
  element.showAtLeast = (wanted) => grow(Math.max(0, wanted - shown), false);
  return element;
}

async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (refused) {
      console.debug("the clipboard refused, copying the selection instead", refused);
    }
  }
  const area = h("textarea", { class: "offscreen", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

function copyButton(text) {
  const button = h("button", { type: "button", class: "copy", "aria-label": "Copy the command" }, "Copy");
  button.addEventListener("click", async () => {
    const copied = await copyText(text);
    button.textContent = copied ? "Copied" : "Press Ctrl+C";
    button.focus();
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
  return button;
}

const command = (text) => h("div", { class: "command" }, h("code", { tabindex: "0" }, text), copyButton(text));

// A bar of the shares of the statuses, from good to bad.
function statusBar(counts, total) {
  const parts = [...data.severity].reverse().filter((status) => counts[status]);
  const label = parts.map((status) => `${count(counts[status])} ${STATUS[status].word}`).join(", ");
  return h("div", { class: "bar", role: "img", "aria-label": label || "no cases", title: label },
    parts.map((status) => h("span", { "data-status": status, width: `${(100 * counts[status]) / (total || 1)}%` })));
}
