// Builds the page from the JSON that stands in it.
import { clauseCard, detail } from "./detail.js";
import { element, slug } from "./dom.js";
import { GraphView } from "./graph.js";
import { drift } from "./plot.js";
import { NodeTable } from "./table.js";

const page = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
let current = 0;
let matches = null;

const tabs = element("div", { role: "tablist", "aria-label": "targets" });
const sentence = element("p", { class: "sentence", role: "status" });
const build = element("div", { class: "build" });
const graphHost = element("section", { class: "graph", "aria-label": "graph" });
const side = element("section", { class: "detail", "aria-live": "polite", "aria-label": "selected node" });
const tableHost = element("section", { class: "nodes", "aria-label": "nodes" });
const plotHost = element("section", { class: "plot" });

side.append(element("p", { class: "hint" }, "Choose a node in the graph or in the table to see its verdict and reasons."));
main.append(tabs, sentence, build);
if (page.targets.length > 1) main.append(matrix());
main.append(plotHost, legend(), element("div", { class: "panes" }, graphHost, side), tableHost);

const graph = new GraphView(graphHost, page.nodes, choose);
const table = new NodeTable(tableHost, page, choose, (found) => {
  matches = found;
  graph.paint(page.targets[current], matches);
});

page.targets.forEach((target, index) => {
  const tab = element(
    "button",
    { type: "button", role: "tab", id: `tab-${index}`, onclick: () => open(index), onkeydown: (event) => step(event, index) },
    target.label,
  );
  tabs.append(tab);
});
if (page.targets.length < 2) tabs.hidden = true;
if (page.drift) drift(plotHost, page, choose);
else plotHost.hidden = true;
open(0);
if (page.targets[0].marked !== undefined && page.targets[0].marked !== null) choose(page.targets[0].marked, true);
document.documentElement.dataset.ready = "true";

function open(index) {
  current = index;
  const target = page.targets[index];
  [...tabs.children].forEach((tab, at) => {
    tab.setAttribute("aria-selected", String(at === index));
    tab.tabIndex = at === index ? 0 : -1;
  });
  sentence.textContent = target.sentence;
  build.replaceChildren(...target.build.map((reason) => clauseCard(reason)));
  table.fill(target);
  if (graph.selected !== undefined) choose(graph.selected, false);
}

function step(event, index) {
  const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!move) return;
  const next = (index + move + page.targets.length) % page.targets.length;
  open(next);
  tabs.children[next].focus();
}

function choose(index, move) {
  graph.show(index, move);
  table.show(index, move);
  detail(side, page, page.targets[current], index);
}

function legend() {
  const used = [...new Set(page.targets.flatMap((target) => target.verdicts))];
  return element("p", { class: "legend" }, ...used.map((verdict) => element("span", { class: `badge v-${slug(verdict)}` }, verdict)));
}

function matrix() {
  const words = [...new Set(page.targets.flatMap((target) => target.verdicts))];
  const cells = (names, tag) => names.map((name) => element(tag, tag === "th" ? { scope: "col" } : {}, name));
  const body = element("tbody");
  page.targets.forEach((target, index) => {
    const counts = words.map((word) => String(target.verdicts.filter((verdict) => verdict === word).length));
    const name = element("button", { type: "button", class: "link", onclick: () => open(index) }, target.label);
    body.append(
      element("tr", {}, element("th", { scope: "row" }, name), ...cells([...counts, target.transitions ?? "", target.state], "td")),
    );
  });
  const head = element("tr", {}, ...cells(["Target", ...words, "transitions", "build"], "th"));
  return element(
    "details",
    { class: "matrix", open: true },
    element("summary", {}, "All targets side by side"),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), body)),
  );
}
