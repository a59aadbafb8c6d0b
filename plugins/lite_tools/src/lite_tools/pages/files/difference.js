// Histogram and picture of the differences |b - a| of one result.

function histogramFigure(histogram) {
  const { edges, counts } = histogram;
  const used = counts.map((n, i) => [n, i]).filter(([n]) => n > 0).map(([, i]) => i);
  if (!used.length) return null;
  const [from, to] = [Math.max(0, used[0] - 1), Math.min(counts.length - 1, used[used.length - 1] + 1)];
  const shown = counts.slice(from, to + 1);
  const [width, height, left, bottom] = [330, 132, 8, 110];
  const step = (width - left - 8) / shown.length;
  const largest = shown.reduce((a, b) => Math.max(a, b));
  const tall = (n) => (n ? Math.max(2, (Math.log1p(n) / Math.log1p(largest)) * (bottom - 18)) : 0);
  const bars = shown.map((n, i) =>
    s("rect", { class: "bar", x: left + i * step + 0.5, y: bottom - tall(n), width: Math.max(1, step - 1), height: tall(n) },
      s("title", {}, `${count(n)} between ${power(edges[from + i])} and ${power(edges[from + i + 1])}`)));
  const every = Math.max(1, Math.ceil((edges[to + 1] - edges[from]) / 6));
  const labels = [];
  for (let i = from; i <= to + 1; i += 1) {
    if (Number.isInteger(edges[i]) && (edges[i] - Math.ceil(edges[from])) % every === 0) {
      labels.push(s("text", { x: left + (i - from) * step, y: bottom + 15, "text-anchor": i === from ? "start" : i === to + 1 ? "end" : "middle" }, `1e${edges[i]}`));
    }
  }
  const total = counts.reduce((a, b) => a + b, 0);
  return h("figure", { class: "histogram" },
    h("figcaption", {}, `|b − a|, local: ${count(total)} elements that differ (heights are logarithmic)`),
    s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Histogram of the differences" },
      s("line", { class: "axis", x1: left, x2: width - 8, y1: bottom, y2: bottom }), bars, labels));
}

const power = (exponent) => (Number.isInteger(exponent) ? `1e${exponent}` : (10 ** exponent).toExponential(1));

// From the colour of no difference to that of the largest: dark blue, violet, orange, light yellow.
const HEAT = [[18, 22, 48], [86, 28, 110], [188, 55, 84], [249, 142, 32], [252, 240, 164]];

function heat(share) {
  const at = Math.min(HEAT.length - 1.001, Math.max(0, share * (HEAT.length - 1)));
  const [a, b] = [HEAT[Math.floor(at)], HEAT[Math.floor(at) + 1]];
  return a.map((channel, i) => Math.round(channel + (b[i] - channel) * (at - Math.floor(at))));
}

function pictureFigure(picture) {
  const { width, height } = picture;
  const bytes = Uint8Array.from(atob(picture.pixels), (letter) => letter.charCodeAt(0));
  if (!(width > 0 && height > 0) || bytes.length !== width * height) return null;
  const canvas = h("canvas", { width, height, role: "img", "aria-label": "Picture of the differences" });
  const factor = Math.max(1, Math.floor(256 / Math.max(width, height)));
  canvas.style.width = `${width * factor}px`;
  canvas.style.height = `${height * factor}px`;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  bytes.forEach((byte, i) => image.data.set([...heat(byte / 255), 255], 4 * i));
  context.putImageData(image, 0, 0);
  const colours = Array.from({ length: 32 }, (_, i) => s("rect", { x: i * 4, width: 4.5, height: 10, fill: `rgb(${heat(i / 31)})` }));
  return h("figure", { class: "difference" },
    h("figcaption", {}, "|b − a| over the last two dimensions, the largest of all others"), canvas,
    h("p", { class: "scale" }, "0", s("svg", { width: 128, height: 10, "aria-hidden": "true" }, colours), figure(picture.scale)));
}
