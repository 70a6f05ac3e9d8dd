// Drift along the network: the error of each compared tensor on a logarithmic scale, overflow marked.
import { element, shorten, svg } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [900, 240, 52, 12, 28];

export function drift(host, page, select) {
  const { tensors, label, title } = page.drift;
  const errors = tensors.map((t) => (Number.isFinite(t.error) ? t.error : null));
  const known = errors.filter((e) => e > 0);
  const low = Math.floor(Math.log10(Math.max(1e-12, Math.min(...known, 1e-3))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...known, 1e-2))));
  const x = (i) => LEFT + ((WIDTH - LEFT - 10) * (i + 0.5)) / tensors.length;
  const y = (e) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - Math.max(low, Math.log10(Math.max(e, 1e-30))))) / (high - low);
  const plot = svg("svg", { class: "drift", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  for (let power = low; power <= high; power += 1) {
    plot.append(
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 10, y1: y(10 ** power), y2: y(10 ** power) }),
      svg("text", { x: LEFT - 6, y: y(10 ** power) + 4, "text-anchor": "end" }, `1e${power}`),
    );
  }
  const line = errors.map((e, i) => (e === null ? "" : `${i && errors[i - 1] !== null ? "L" : "M"}${x(i).toFixed(1)} ${y(e).toFixed(1)}`));
  plot.append(svg("path", { class: "line", d: line.join("") }));
  tensors.forEach((tensor, i) => {
    const bad = tensor.overflow > 0 || errors[i] === null;
    const dot = svg(
      bad ? "path" : "circle",
      bad
        ? { class: "overflow", d: `M${x(i)} ${TOP + 2}l6 11h-12z` }
        : { class: tensor.worst ? "dot worst" : "dot", cx: x(i), cy: y(errors[i]), r: tensor.worst ? 4.5 : 2.5 },
      svg("title", {}, `${shorten(tensor.name, 120)}: ${tensor.text}`),
    );
    if (tensor.node !== null) dot.addEventListener("click", () => select(tensor.node, true));
    plot.append(dot);
  });
  plot.append(svg("text", { x: WIDTH / 2, y: HEIGHT - 6, "text-anchor": "middle" }, label));
  const worst = element("tbody");
  for (const tensor of [...tensors].sort(worstFirst).slice(0, 20)) {
    worst.append(
      element(
        "tr",
        {},
        element(
          "td",
          {},
          tensor.node === null
            ? shorten(tensor.name, 80)
            : element("button", { type: "button", class: "link", onclick: () => select(tensor.node, true) }, shorten(tensor.name, 80)),
        ),
        element("td", {}, tensor.text),
      ),
    );
  }
  const head = element("tr", {}, element("th", { scope: "col" }, "Tensor, worst first"), element("th", { scope: "col" }, "Difference"));
  host.append(
    element("h2", {}, title),
    plot,
    element("details", {}, element("summary", {}, "Worst tensors"), element("table", {}, element("thead", {}, head), worst)),
  );
}

function worstFirst(a, b) {
  const value = (t) => (t.overflow > 0 || !Number.isFinite(t.error) ? Infinity : t.error);
  return value(b) > value(a) ? 1 : value(b) < value(a) ? -1 : 0;
}
