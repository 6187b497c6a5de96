// The tree: tips 0, 1, ..., then merges, children before parents; which clades are folded, and where everything stands.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const picture = element("picture"), tip = element("tip"), status = element("status"), themeButton = element("theme");

const nTips = data.names.length, nNodes = 2 * nTips - 1, top = nNodes - 1;
const left = (node) => data.children[2 * (node - nTips)], right = (node) => data.children[2 * (node - nTips) + 1];
const parents = new Array(nNodes).fill(-1), counts = data.counts.slice(), tipCounts = new Array(nTips).fill(1);
for (let node = nTips; node < nNodes; node++) {
  for (const child of [left(node), right(node)]) parents[child] = node;
  counts.push(counts[left(node)] + counts[right(node)]);
  tipCounts.push(tipCounts[left(node)] + tipCounts[right(node)]);
}
const firsts = new Array(nNodes).fill(0), order = new Array(nTips);
for (let node = top; node >= nTips; node--) {
  firsts[left(node)] = firsts[node];
  firsts[right(node)] = firsts[node] + tipCounts[left(node)];
}
for (let node = 0; node < nTips; node++) order[firsts[node]] = node;
// A tip that stands for many leaves has nothing below it that could be drawn.
const drawnWhole = nTips === counts[top];
const tipsBelow = (node) => order.slice(firsts[node], firsts[node] + tipCounts[node]);

const folded = new Set();
const clusterName = (cluster) => (cluster === data.outliers ? "no cluster" : `cluster ${cluster}`);
let cursor = -1, found = null, yView = null, xView = null, laid = null, spread = true;
const across = (node) => (spread ? Math.sqrt(data.heights[node]) : data.heights[node]);

function layOut() {
  const tips = [], merges = [], places = new Array(nNodes), edges = [0], stack = [top];
  while (stack.length) {
    const node = stack.pop();
    if (node < nTips || folded.has(node)) tips.push(node);
    else {
      merges.push(node);
      stack.push(right(node), left(node));
    }
  }
  let end = 0;
  for (const node of tips) {
    const width = 1 + Math.log10(counts[node]) / 3;
    places[node] = end + width / 2;
    end += width;
    edges.push(end);
  }
  merges.sort((a, b) => a - b);
  for (const node of merges) places[node] = (places[left(node)] + places[right(node)]) / 2;
  return { tips, merges, places, edges, span: end };
}
