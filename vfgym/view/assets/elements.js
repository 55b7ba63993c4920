// Elements, and numbers as text.

const main = document.getElementById("main");
let data = null;

// Everything is made of elements and text nodes: what a model wrote is never read as HTML.
function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}
const SVG = document.getElementById("svg").namespaceURI;
function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}
function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}
function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}
const say = (text) => { document.getElementById("status").textContent = text; };
const button = (text, properties, ...more) => h("button", { type: "button", ...properties }, text, ...more);
const hidden = (text) => h("span", { class: "visually-hidden" }, text);
function select(properties, options, chosen) {
  const made = h("select", properties, options.map(([value, text]) => h("option", { value }, text)));
  made.value = options.some(([value]) => value === chosen) ? chosen : options[0][0];
  return made;
}
const field = (label, control) => h("div", { class: "field" }, h("label", { for: control.id }, label), control);
function pairs(entries) {
  return h("dl", { class: "pairs" }, entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
// Contents that are made when they are first opened.
function folded(summary, make) {
  const details = h("details", {}, h("summary", {}, summary));
  let isMade = false;
  details.make = () => { if (!isMade) append(details, [make()]); isMade = true; };
  details.addEventListener("toggle", details.make);
  return details;
}

const numeric = (value) => (typeof value === "string" ? { nan: NaN, inf: Infinity, "-inf": -Infinity }[value] ?? NaN : value);
function number(value, digits = 3) {
  if (value === null || value === undefined) return "-";
  const known = numeric(value);
  if (!Number.isFinite(known)) return Number.isNaN(known) ? "NaN" : known > 0 ? "∞" : "-∞";
  if (Number.isInteger(known)) return known.toLocaleString("en");
  return Math.abs(known) < 0.001 ? known.toPrecision(2) : known.toFixed(digits);
}
const seconds = (value) => (value < 120 ? `${number(value, 1)} s` : `${number(value / 60, 1)} min`);
const count = (many, noun) => `${number(many)} ${noun}${many === 1 ? "" : "s"}`;
