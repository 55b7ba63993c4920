// Pictures of numbers. The numbers stand beside them as text, so a screen reader is spared the pictures.

const place = (scale, value) => (numeric(value) - scale[0][0]) / (scale.at(-1)[0] - scale[0][0]);
const percent = (share) => `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;

function gridLines(scale) {
  return scale.map(([tick]) => svg("line", { class: tick === 0 ? "grid zero" : "grid", x1: percent(place(scale, tick)), x2: percent(place(scale, tick)), y1: 0, y2: "100%" }));
}
function axis(scale) {
  const anchor = (index) => (index === 0 ? "start" : index === scale.length - 1 ? "end" : "middle");
  return svg("svg", { class: "axis", "aria-hidden": "true" }, scale.map(([tick, text], index) =>
    svg("text", { x: percent(place(scale, tick)), y: 12, "text-anchor": anchor(index) }, text)));
}
function estimatePicture(scale, estimate) {
  if (estimate.value === null || !Number.isFinite(numeric(estimate.value))) return svg("svg", { class: "estimate", "aria-hidden": "true" }, gridLines(scale));
  const [low, high] = estimate.interval || [estimate.value, estimate.value];
  const at = percent(place(scale, estimate.value));
  return svg("svg", { class: "estimate", "aria-hidden": "true" }, gridLines(scale),
    svg("line", { class: "interval", x1: percent(place(scale, low)), x2: percent(place(scale, high)), y1: "50%", y2: "50%" }),
    svg("circle", { class: "mean", cx: at, cy: "50%", r: 6 }));
}
// Estimates on one scale: each a name, its picture, its numbers, and what there is to say of it.
function estimates(caption, scale, rows) {
  return h("figure", { class: "estimates" }, h("figcaption", {}, caption),
    h("ul", {}, rows.map(({ name, estimate, note }) => h("li", {},
      h("div", {}, h("span", { class: "name" }, name), note && h("p", { class: "note" }, note)),
      h("div", { class: "picture" }, scale && estimatePicture(scale, estimate)), h("span", { class: "value" }, estimate.text)))),
    scale && h("div", { class: "under", "aria-hidden": "true" }, axis(scale)));
}
function histogram(run, scale) {
  const most = run.histogram.reduce((a, b) => Math.max(a, b), 1);
  const width = 100 / run.histogram.length, from = scale[0][0], step = (scale.at(-1)[0] - from) / run.histogram.length;
  const bins = run.histogram.map((many, index) => many && `${many} from ${number(from + index * step)} to ${number(from + (index + 1) * step)}`).filter(Boolean);
  return h("figure", { class: "histogram" }, h("figcaption", {}, run.label),
    svg("svg", { class: "bars", role: "img", "aria-label": `Rewards of ${run.label}: ${bins.join(", ") || "none"}` }, gridLines(scale),
      run.histogram.map((many, index) => svg("rect", { x: `${index * width + 0.3}%`, width: `${width - 0.6}%`, y: percent(1 - (0.84 * many) / most), height: percent((0.84 * many) / most) })),
      run.histogram.map((many, index) => many === most && svg("text", { x: percent((index + 0.5) / run.histogram.length), y: 9, "text-anchor": index < 2 ? "start" : index > run.histogram.length - 3 ? "end" : "middle" }, number(many)))),
    axis(scale));
}
