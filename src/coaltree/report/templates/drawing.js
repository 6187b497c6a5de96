// The drawing: tree, table and names, in the colours of the theme.

const FILLS = ["#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00", "#BFC5CC"];
const SCALES = {
  light: ["#2166ac", "#8bbcdb", "#f4f4f2", "#f2a583", "#b2182b"],
  dark: ["#8ec9ff", "#3d6f9c", "#2a2f37", "#a4583a", "#ffab84"],
};
const FAR = 2.5;
const theme = () => document.documentElement.dataset.theme;
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function mixed(color, other, share) {
  const parts = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const [a, b] = [parts(color), parts(other)];
  return "#" + a.map((value, k) => Math.round((1 - share) * value + share * b[k]).toString(16).padStart(2, "0")).join("");
}

function shade(node) {
  const cluster = data.clusters[node];
  if (cluster < 0) return variable("--mixed");
  const own = data.colors[cluster];
  return theme() === "dark" ? mixed(own, "#ffffff", 0.4) : own;
}

const SMALLEST_PITCH = 8.5;  // pixels a row, below which names are not written
const SUPPORT = { width: 24, height: 13 };  // pixels of a number
const TALL = 2400, SOME_ROWS = 220;
const MODE_BAR = 34;  // pixels above the tree
const LEFT = 12;

function measures() {
  const width = Math.max(picture.clientWidth, 240), narrow = width < 620;
  const nameLength = narrow ? 11 : 26;
  const longest = (texts, most) => Math.max(0, ...texts.map((text) => Array.from(short(text, most)).length));
  const named = longest(laid.tips.map(nameOf), nameLength);
  const pitch = laid.span <= 40 ? 19 : Math.max(10.5, 19 - (laid.span - 40) * 0.06);
  const tall = Math.max(window.innerHeight * 0.85, 520);
  const inner = laid.span <= SOME_ROWS ? Math.min(Math.max(pitch * laid.span, 120), TALL) : tall;
  const rightMargin = pitchOf({ inner }) < SMALLEST_PITCH ? 12 : 16 + 6.9 * named;
  const room = width - rightMargin - LEFT;
  const nColumns = real.length + categorical.length;
  const between = 8, apart = real.length && categorical.length ? 8 : 0;
  const cell = nColumns ? Math.min(30, (0.5 * room - between - apart) / nColumns) : 0;
  const columnLength = narrow ? 12 : 20;
  const headed = cell >= 9;
  const head = Math.max(MODE_BAR, headed ? 16 + 5.6 * longest(data.columns.map((column) => column.name), columnLength) : 0);
  const start = room - cell * nColumns - between - apart;
  const domain = (from, to) => [Math.min(from / room, 1), Math.min(to / room, 1)];
  const last = start + between + cell * real.length;
  return {
    width, narrow, nameLength, columnLength, rightMargin, head, headed, inner, room,
    tree: domain(0, nColumns ? start : room),
    real: domain(start + between, last),
    categorical: domain(last + apart, room),
  };
}

const wholeRange = () => [laid.span + 0.2, -0.2];
const wholeHeights = () => [1.03 * (across(top) || 1), -0.01 * (across(top) || 1)];
const pitchOf = (size) => size.inner / Math.abs((yView || wholeRange())[0] - (yView || wholeRange())[1]);

function branchTraces() {
  const byColor = new Map();
  for (const node of laid.merges) {
    for (const child of [left(node), right(node)]) {
      const color = shade(child);
      if (!byColor.has(color)) byColor.set(color, { x: [], y: [] });
      const own = byColor.get(color);
      own.x.push(across(child), across(node), across(node), null);
      own.y.push(laid.places[child], laid.places[child], laid.places[node], null);
    }
  }
  const width = laid.tips.length > 800 ? 0.7 : laid.tips.length > 300 ? 1 : 1.6;
  return Array.from(byColor, ([color, points]) => ({
    type: "scatter", mode: "lines", ...points, line: { color, width }, hoverinfo: "skip", meta: "branches",
  }));
}

function wedgeTraces() {
  const byColor = new Map();
  laid.tips.forEach((node, k) => {
    if (counts[node] === 1) return;
    const color = shade(node);
    if (!byColor.has(color)) byColor.set(color, { x: [], y: [] });
    const own = byColor.get(color), half = (laid.edges[k + 1] - laid.edges[k]) / 2 - 0.2;
    own.x.push(across(node), 0, 0, across(node), null);
    own.y.push(laid.places[node], laid.places[node] - half, laid.places[node] + half, laid.places[node], null);
  });
  return Array.from(byColor, ([color, points]) => ({
    type: "scatter", mode: "lines", ...points, line: { color, width: 1.2 }, fill: "toself", fillcolor: color + "66", hoverinfo: "skip", meta: "wedges",
  }));
}

function markerTraces() {
  const nodes = [...laid.merges, ...laid.tips.filter((node) => counts[node] > 1)];
  const size = laid.tips.length > 800 ? 3 : laid.tips.length > 200 ? 5 : 8;
  const traces = [{
    type: "scatter", mode: "markers", meta: "merges", hoverinfo: "none", customdata: nodes,
    x: nodes.map(across), y: nodes.map((node) => laid.places[node]),
    marker: { size, color: nodes.map(shade), symbol: nodes.map((node) => (folded.has(node) ? "square" : "circle")), line: { color: variable("--paper"), width: size > 5 ? 1 : 0 } },
  }];
  if (cursor >= 0) traces.push({
    type: "scatter", mode: "markers", meta: "cursor", hoverinfo: "skip", x: [across(cursor)], y: [laid.places[cursor]],
    marker: { size: 18, color: "rgba(0,0,0,0)", line: { color: variable("--accent"), width: 3 } },
  });
  return traces;
}

// Per cents at the merges, on the side of the root; those of the largest clades first, as far as there is room.
function supportTraces(size, pitch) {
  if (!data.support) return [];
  const [from, to] = xView || wholeHeights();
  const pixels = ((size.tree[1] - size.tree[0]) * size.room) / (from - to);
  const taken = [], shown = [];
  const nodes = [...laid.merges, ...laid.tips.filter((node) => node >= nTips)].filter((node) => node !== top && data.support[node] !== null);
  for (const node of nodes.sort((a, b) => counts[b] - counts[a] || b - a)) {
    const [x, y] = [pixels * (from - across(node)), pitch * laid.places[node]];
    const stem = pixels * (across(parents[node]) - across(node));
    if (stem < SUPPORT.width || taken.some((other) => Math.abs(other[0] - x) < SUPPORT.width && Math.abs(other[1] - y) < SUPPORT.height)) continue;
    taken.push([x, y]);
    shown.push(node);
  }
  return [{
    type: "scatter", mode: "text", meta: "support", hoverinfo: "skip", x: shown.map(across), y: shown.map((node) => laid.places[node]),
    text: shown.map((node) => `${Math.round(100 * data.support[node])} `), textposition: "top left", textfont: { size: 10, color: variable("--soft") },
  }];
}

function heatmapTraces(columns, axis, isReal, pitch) {
  if (!columns.length) return [];
  const dots = { x: [], y: [] };
  const z = laid.tips.map((node) => columns.map((column, j) => {
    const cell = cellOf(column, node);
    const [low, high] = yView ? [Math.min(...yView), Math.max(...yView)] : [-Infinity, Infinity];
    if (cell.missing && laid.places[node] > low && laid.places[node] < high) {
      dots.x.push(j);
      dots.y.push(laid.places[node]);
    }
    if (cell.value === null) return null;
    return isReal ? (cell.value - column.mean) / column.sd : column.shade[cell.value];
  }));
  const scale = isReal
    ? SCALES[theme()].map((color, k, all) => [k / (all.length - 1), color])
    : FILLS.flatMap((color, k) => [[k / FILLS.length, color], [(k + 1) / FILLS.length, color]]);
  const traces = [{
    type: "heatmap", meta: isReal ? "real" : "categorical", x: columns.map((_, j) => j), y: laid.edges, z, xaxis: axis, hoverinfo: "none", showscale: false,
    colorscale: scale, zmin: isReal ? -FAR : -0.5, zmax: isReal ? FAR : FILLS.length - 0.5, xgap: 1, ygap: pitch > 7 ? 1 : 0,
  }];
  if (dots.x.length && dots.x.length < 20000) traces.push({
    type: "scatter", mode: "markers", meta: "missing", ...dots, xaxis: axis, hoverinfo: "skip",
    marker: { size: Math.max(2, Math.min(6, 0.42 * pitch)), color: isReal ? variable("--dot") : "#1c2128", line: { color: isReal ? variable("--paper") : "#ffffff", width: pitch > 7 ? 1 : 0 } },
  });
  return traces;
}

function heightTicks(apart) {
  if (!spread || !data.heights[top]) return {};
  const highest = data.heights[top], ticks = [0];
  for (let power = Math.floor(Math.log10(highest)) - 2; power <= Math.log10(highest); power++)
    for (const digit of [1, 2, 5]) {
      const height = Number(`${digit}e${power}`);
      if (height <= highest && Math.sqrt(height) - Math.sqrt(ticks.at(-1)) > apart * Math.sqrt(highest)) ticks.push(height);
    }
  return { tickvals: ticks.map(Math.sqrt), ticktext: ticks.map(String) };
}

function axesOf(size) {
  const ink = variable("--ink"), soft = variable("--soft"), line = variable("--line");
  const font = { color: ink, size: 12 };
  const columnAxis = (columns, domain) => ({
    domain, anchor: "y", side: "top", range: [-0.5, columns.length - 0.5], fixedrange: true, showgrid: false, zeroline: false, ticks: "",
    tickvals: size.headed ? columns.map((_, j) => j) : [], ticktext: columns.map((column) => plain(short(column.name, size.columnLength))),
    tickangle: -90, tickfont: { ...font, size: 11 },
  });
  const pitch = pitchOf(size), shown = pitch >= SMALLEST_PITCH;
  const bold = (node, text) => (found && found.tip === node ? `<b>${text}</b>` : text);
  const axes = {
    xaxis: {
      domain: size.tree, anchor: "y", range: xView || wholeHeights(), ...heightTicks(size.narrow ? 0.2 : 0.09), tickangle: 0, title: { text: spread ? (size.narrow ? "height (√ scale)" : "height, on a square-root scale") : "height", font: { color: soft, size: 12 }, standoff: 6 }, gridcolor: line, zeroline: false,
      tickfont: { color: soft, size: 11 }, nticks: size.narrow ? 4 : 7,
    },
    yaxis: {
      range: yView || wholeRange(), anchor: categorical.length ? "x3" : real.length ? "x2" : "x", side: "right", showgrid: false, zeroline: false, ticks: "outside", ticklen: 4, tickcolor: "rgba(0,0,0,0)",
      tickvals: shown ? laid.tips.map((node) => laid.places[node]) : [],
      ticktext: shown ? laid.tips.map((node) => bold(node, plain(short(nameOf(node), size.nameLength)))) : [],
      tickfont: { ...font, size: Math.max(8, Math.min(12, pitch - 0.5)) },
    },
  };
  if (real.length) axes.xaxis2 = columnAxis(real, size.real);
  if (categorical.length) axes.xaxis3 = columnAxis(categorical, size.categorical);
  return axes;
}

function draw() {
  laid = layOut();
  const size = measures(), pitch = pitchOf(size);
  const traces = [
    ...wedgeTraces(), ...branchTraces(), ...heatmapTraces(real, "x2", true, pitch), ...heatmapTraces(categorical, "x3", false, pitch), ...supportTraces(size, pitch), ...markerTraces(),
  ];
  const shapes = [], annotations = [];
  if (found) {
    const k = laid.tips.indexOf(found.tip);
    shapes.push({
      type: "rect", xref: "paper", yref: "y", x0: 0, x1: 1, y0: laid.edges[k], y1: laid.edges[k + 1], line: { color: variable("--accent"), width: 2 }, fillcolor: variable("--accent") + "1c",
    });
    if (pitch < SMALLEST_PITCH) annotations.push({
      xref: "paper", yref: "y", x: 1, y: laid.places[found.tip], xanchor: "right", bgcolor: variable("--paper"), showarrow: false, text: `<b>${plain(short(nameOf(found.tip), size.nameLength))}</b>`, font: { color: variable("--ink"), size: 12 },
    });
  }
  const layout = {
    ...axesOf(size), shapes, annotations, width: size.width, height: size.inner + size.head + 46, margin: { l: LEFT, r: size.rightMargin, t: size.head, b: 46 }, showlegend: false, modebar: { bgcolor: "rgba(0,0,0,0)", color: variable("--soft"), activecolor: variable("--accent") }, hovermode: "closest", hoverdistance: 16,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: getComputedStyle(document.body).fontFamily, color: variable("--ink") },
  };
  const config = { displaylogo: false, responsive: false, doubleClick: false, modeBarButtons: [["zoom2d", "pan2d", "toImage"]], toImageButtonOptions: { filename: "tree", scale: 2 } };
  const tips = laid.tips.length, branches = 2 * laid.merges.length;
  // The margins are final, and points where they will stay, only once the drawing is complete.
  Plotly.react(picture, traces, layout, config).then(() => {
    picture.dataset.tips = tips;
    picture.dataset.branches = branches;
  });
  return size;
}
