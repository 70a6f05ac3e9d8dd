// Small helpers. Text from the model only ever becomes text nodes or attribute values, never markup.
const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function shorten(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

export const VERDICTS = {
  npu: "runs on the NPU",
  cpu: "falls back to the CPU",
  split: "partly NPU, partly CPU",
  folded: "costs nothing",
  unsupported: "runs nowhere",
  unknown: "not decidable",
  supported: "supported",
  "not covered": "not covered",
  same: "same as in the source model",
  "small difference": "differs a little, within the tolerance",
  differs: "differs from the source model",
  "not compared": "no tensor of this name in the source model",
};

export const slug = (verdict) => verdict.replace(" ", "-");
