// Places nodes top to bottom. dagre lays out blocks of a few hundred nodes, stacked on each other: its time grows
// faster than the graph, and a network is long and narrow. Edges that skip far ahead do not take part in the layout.
import dagre from "@dagrejs/dagre";

export const NODE = { width: 148, height: 34 };
const BLOCK = 60;
const LONGEST_EDGE = 12;
const GAP = 34;

// producers[i]: indices of the nodes that node i reads. Yields the nodes of each block once `position` holds theirs,
// so that the first screen need not wait for the last one.
export function* layout(producers, position) {
  const rank = ranks(producers);
  const order = [...producers.keys()].sort((a, b) => rank[a] - rank[b] || a - b);
  let top = 0;
  for (let start = 0; start < order.length; ) {
    let end = Math.min(start + BLOCK, order.length);
    while (end < order.length && rank[order[end]] === rank[order[end - 1]]) end += 1;
    const block = order.slice(start, end);
    top = placeBlock(block, producers, rank, position, top) + GAP;
    yield block;
    start = end;
  }
}

function ranks(producers) {
  const rank = new Array(producers.length).fill(-1);
  for (let root = 0; root < producers.length; root += 1) {
    const stack = [root];
    while (stack.length) {
      const node = stack[stack.length - 1];
      const open = producers[node].filter((p) => rank[p] < 0);
      if (open.length && stack.length <= producers.length) {
        stack.push(...open);
        continue;
      }
      rank[node] = producers[node].reduce((most, p) => Math.max(most, rank[p]), -1) + 1;
      stack.pop();
    }
  }
  return rank;
}

function placeBlock(nodes, producers, rank, position, top) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ ranker: "longest-path", nodesep: 18, ranksep: 30 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(String(node), { ...NODE });
  for (const node of nodes) {
    for (const producer of producers[node]) {
      if (graph.hasNode(String(producer)) && rank[node] - rank[producer] <= LONGEST_EDGE) {
        graph.setEdge(String(producer), String(node));
      }
    }
  }
  dagre.layout(graph);
  const placed = nodes.map((node) => [node, graph.node(String(node))]);
  const middle = placed.reduce((sum, [, at]) => sum + at.x, 0) / placed.length;
  let bottom = top;
  for (const [node, at] of placed) {
    position[node] = { x: at.x - middle, y: at.y + top };
    bottom = Math.max(bottom, position[node].y + NODE.height / 2);
  }
  return bottom;
}
