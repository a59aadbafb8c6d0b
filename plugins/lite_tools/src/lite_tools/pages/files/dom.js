// Elements. Texts of a model are inserted as text nodes only, never as markup.

function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function s(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const byId = (id) => document.getElementById(id);
const count = (n) => Number(n).toLocaleString("en");
const plural = (n, one) => `${count(n)} ${n === 1 ? one : `${one}s`}`;
const shorter = (text, longest) =>
  text.length <= longest ? text : `${text.slice(0, Math.ceil(longest / 2))}…${text.slice(-Math.floor(longest / 2) + 1)}`;

// A number with three digits; numbers that are not finite are texts in the data.
function figure(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0 || Number.isInteger(value)) return Math.abs(value) < 1e7 ? count(value) : value.toExponential(2).replace("e+", "e");
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2).replace("e+", "e");
}

// "/" goes to the search field, unless one is typing.
function slashGoesTo(field) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}
