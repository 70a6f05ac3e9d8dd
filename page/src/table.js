// The nodes as a table: searchable, filterable by verdict, operator and reason; linked with the graph both ways.
import { element, shorten, slug } from "./dom.js";

export class NodeTable {
  constructor(host, page, select, changed) {
    this.page = page;
    this.select = select;
    this.changed = changed;
    this.search = element("input", { type: "search", placeholder: "Search name or operator", "aria-label": "search nodes" });
    this.verdict = element("select", { "aria-label": "filter by verdict" });
    this.op = element("select", { "aria-label": "filter by operator" });
    this.reason = element("select", { "aria-label": "filter by reason" });
    this.count = element("p", { class: "count", role: "status" });
    this.body = element("tbody");
    const head = element("tr", {}, ...["Node", "Operator", "Verdict", "Reason"].map((t) => element("th", { scope: "col" }, t)));
    this.scroll = element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), this.body));
    host.append(
      element("form", { class: "filters", onsubmit: (event) => event.preventDefault() }, this.search, this.verdict, this.op, this.reason),
      this.count,
      this.scroll,
    );
    for (const control of [this.search, this.verdict, this.op, this.reason]) {
      for (const event of ["input", "change"]) control.addEventListener(event, () => this.filter());
    }
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) this.select(Number(row.dataset.node), true);
    });
  }

  fill(target) {
    this.target = target;
    this.rows = this.page.nodes.map((node, index) => {
      const reasons = (target.clauses[index] ?? []).map((at) => this.page.clauses[at]);
      return element(
        "tr",
        { "data-node": index, class: `v-${slug(target.verdicts[index])}` },
        element("td", {}, element("button", { type: "button", class: "link" }, shorten(node.name || "(unnamed)", 80))),
        element("td", {}, shorten(node.op, 40)),
        element("td", {}, element("span", { class: `badge v-${slug(target.verdicts[index])}` }, target.verdicts[index])),
        element("td", {}, reasons.map((r) => r.id).join(", ")),
      );
    });
    this.body.replaceChildren(...this.rows);
    options(this.verdict, "any verdict", target.verdicts);
    options(this.op, "any operator", this.page.nodes.map((n) => n.op));
    options(this.reason, "any reason", target.clauses.flatMap((c) => (c ?? []).map((at) => this.page.clauses[at].id)));
    this.filter();
  }

  filter() {
    const wanted = this.search.value.toLowerCase();
    const matches = new Set();
    this.page.nodes.forEach((node, index) => {
      const reasons = (this.target.clauses[index] ?? []).map((at) => this.page.clauses[at].id);
      const hit =
        (!wanted || node.name.toLowerCase().includes(wanted) || node.op.toLowerCase().includes(wanted)) &&
        (!this.verdict.value || this.target.verdicts[index] === this.verdict.value) &&
        (!this.op.value || node.op === this.op.value) &&
        (!this.reason.value || reasons.includes(this.reason.value));
      this.rows[index].hidden = !hit;
      if (hit) matches.add(index);
    });
    this.count.textContent = `${matches.size} of ${this.page.nodes.length} nodes`;
    this.changed(matches.size === this.page.nodes.length ? null : matches);
  }

  show(index, move) {
    this.rows[this.selected]?.removeAttribute("aria-selected");
    this.selected = index;
    this.rows[index].setAttribute("aria-selected", "true");
    if (move) this.scroll.scrollTop = this.rows[index].offsetTop - this.scroll.clientHeight / 2;
  }
}

function options(control, none, words) {
  const kept = control.value;
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  control.replaceChildren(
    element("option", { value: "" }, none),
    ...sorted.map(([word, count]) => element("option", { value: word }, `${shorten(word, 50)} (${count})`)),
  );
  control.value = counts.has(kept) ? kept : "";
}
