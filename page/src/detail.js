// One node, explained: verdict, every violated clause, shapes, the compiled ops it went into.
import { element, shorten, slug, VERDICTS } from "./dom.js";

const rows = (pairs) => {
  const list = element("dl");
  for (const [term, text] of pairs) {
    if (text === undefined || text === null || text === "") continue;
    list.append(element("dt", {}, term), element("dd", {}, String(text)));
  }
  return list;
};

export function detail(host, page, target, index) {
  const node = page.nodes[index];
  const verdict = target.verdicts[index];
  const partition = target.partitions[index];
  host.replaceChildren(
    element("h2", {}, shorten(node.name || node.op, 300)),
    element("p", {}, element("span", { class: `badge v-${slug(verdict)}` }, verdict), ` ${VERDICTS[verdict] ?? ""}`),
    rows([
      ["Operator", node.domain ? `${node.domain}::${node.op}` : node.op],
      ["Inputs", node.reads],
      ["Outputs", node.writes],
      ["Partition", partition === null || partition === undefined ? "none" : [partition].flat().join(", ")],
      ["Compiled as", (target.compiled[index] ?? []).join(", ")],
    ]),
  );
  const clauses = target.clauses[index] ?? [];
  if (clauses.length) host.append(element("h3", {}, clauses.length === 1 ? "Reason" : `${clauses.length} reasons`));
  for (const at of clauses) host.append(clauseCard(page.clauses[at]));
  for (const fact of target.facts?.[index] ?? []) host.append(element("p", { class: "fact" }, fact));
}

export function clauseCard(clause) {
  return element(
    "section",
    { class: "clause" },
    element("p", {}, clause.text),
    rows([
      ["Actual", clause.actual],
      ["Allowed", clause.allowed],
      ["What would pass", clause.hint],
      ["Source", clause.source],
      ["Rule", clause.id],
    ]),
  );
}
