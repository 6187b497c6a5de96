"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const picture = element("picture"), tip = element("tip"), status = element("status"), themeButton = element("theme");

  // ---- the tree: tips 0, 1, ..., then merges, children before parents ------------------------------------------------

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
  const tipsBelow = (node) => order.slice(firsts[node], firsts[node] + tipCounts[node]);
  
  const folded = new Set();
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

  // ---- the table ---------------------------------------------------------------------------------------------------

  const real = data.columns.filter((column) => !column.categories), categorical = data.columns.filter((column) => column.categories);
  const MOST_COLORS = 8;
  for (const column of data.columns) {
    column.expectedBy = new Map(column.expected.map(([row, ...rest]) => [row, rest]));
    if (!column.categories) continue;
    const totals = column.categories.map(() => 0);
    for (let node = 0; node < nTips; node++) tallyOf(column, node).forEach((n, k) => (totals[k] += n));
    column.ranked = totals.map((_, k) => k).sort((a, b) => totals[b] - totals[a] || a - b);
    column.shade = [];
    column.ranked.forEach((k, rank) => (column.shade[k] = Math.min(rank, MOST_COLORS)));
  }

  function tallyOf(column, node) {
    if (column.tally) return column.tally[node];
    const own = column.categories.map(() => 0);
    if (column.codes[node] >= 0) own[column.codes[node]] = 1;
    return own;
  }

  function realCell(column, node) {
    if (counts[node] === 1) {
      const value = column.values[node];
      if (value !== null) return { value, text: number(value) };
      const expected = column.expectedBy.get(node);
      if (!expected) return { value: null, missing: true, text: "missing" };
      return { value: expected[0], missing: true, text: `missing; model expects ${number(expected[0])} ± ${number(expected[1])}` };
    }
    let sum = 0, seen = 0;
    for (const leaf of tipsBelow(node)) {
      if (column.values[leaf] === null) continue;
      const n = column.seen ? column.seen[leaf] : 1;
      sum += n * column.values[leaf];
      seen += n;
    }
    if (!seen) return { value: null, text: "nothing observed" };
    const mean = sum / seen;
    return { value: mean, text: `mean ${number(Number(mean.toPrecision(4)))} of ${seen.toLocaleString("en")} observed` };
  }

  function categoricalCell(column, node) {
    if (counts[node] === 1 && !column.tally) {
      const code = column.codes[node];
      if (code >= 0) return { value: code, text: column.categories[code] };
      const expected = column.expectedBy.get(node);
      if (!expected) return { value: null, missing: true, text: "missing" };
      return { value: expected[0], missing: true, text: `missing; model expects ${column.categories[expected[0]]} (${percent(expected[1])})` };
    }
    const totals = column.categories.map(() => 0);
    for (const leaf of tipsBelow(node)) tallyOf(column, leaf).forEach((n, k) => (totals[k] += n));
    const seen = totals.reduce((a, b) => a + b, 0);
    if (!seen) return { value: null, text: "nothing observed" };
    const code = totals.indexOf(Math.max(...totals));
    return { value: code, text: `${column.categories[code]} in ${percent(totals[code] / seen)} of ${seen.toLocaleString("en")} observed` };
  }

  const cellOf = (column, node) => (column.categories ? categoricalCell(column, node) : realCell(column, node));

  // ---- words ---------------------------------------------------------------------------------------------------------

  function number(value) {
    return String(value).replace("-", "−");
  }

  function percent(share) {
    if (share > 0 && share < 0.001) return "< 0.1 %";
    if (share > 0.999 && share < 1) return "> 99.9 %";
    return `${Number((100 * share).toPrecision(3))} %`;
  }

  function nameOf(node) {
    return counts[node] === 1 ? data.names[node] : `n = ${counts[node].toLocaleString("en")}`;
  }

  function describe(node) {
    if (counts[node] === 1) return [data.names[node]];
    const lines = [`Clade of ${counts[node].toLocaleString("en")} leaves`, `Height ${number(data.heights[node])}`];
    if (data.support && data.support[node] !== null) lines.push(`Support ${percent(data.support[node])}`);
    lines.push(data.clusters[node] >= 0 ? `In cluster ${data.clusters[node]}` : "Of several clusters");
    for (const [j, inside, outside, code] of data.apart[node]) {
      const column = data.columns[j];
      lines.push(
        column.categories
          ? `${column.name} = ${column.categories[code]}: ${percent(inside)}, elsewhere ${percent(outside)}`
          : `${column.name}: mean ${number(inside)}, elsewhere ${number(outside)}`,
      );
    }
    if (!data.apart[node].length && node !== top) lines.push("Little sets it apart from the rest");
    return lines;
  }

  // Plotly reads some tags and entities in labels; names are text.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function short(text, most) {
    const characters = Array.from(text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, " "));
    return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : characters.join("");
  }

  // ---- colours -------------------------------------------------------------------------------------------------------

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

  // ---- the drawing ---------------------------------------------------------------------------------------------------

  const SMALLEST_PITCH = 8.5;  // pixels a row, below which names are not written
  const TALL = 2400, SOME_ROWS = 220;

  function measures() {
    const width = Math.max(picture.clientWidth, 240), narrow = width < 620;
    const nameLength = narrow ? 11 : 26;
    const longest = (texts, most) => Math.max(0, ...texts.map((text) => Array.from(short(text, most)).length));
    const named = longest(laid.tips.map(nameOf), nameLength);
    const pitch = laid.span <= 40 ? 19 : Math.max(10.5, 19 - (laid.span - 40) * 0.06);
    const tall = Math.max(window.innerHeight * 0.85, 520);
    const inner = laid.span <= SOME_ROWS ? Math.min(Math.max(pitch * laid.span, 120), TALL) : tall;
    const rightMargin = pitchOf({ inner }) < SMALLEST_PITCH ? 12 : 16 + 6.9 * named;
    const room = width - rightMargin - 12;
    const nColumns = real.length + categorical.length;
    const between = 8, apart = real.length && categorical.length ? 8 : 0;
    const cell = nColumns ? Math.min(30, (0.5 * room - between - apart) / nColumns) : 0;
    const columnLength = narrow ? 12 : 20;
    const headed = cell >= 9;
    const head = headed ? 16 + 5.6 * longest(data.columns.map((column) => column.name), columnLength) : 12;
    const start = room - cell * nColumns - between - apart;
    const domain = (from, to) => [Math.min(from / room, 1), Math.min(to / room, 1)];
    const last = start + between + cell * real.length;
    return {
      width, narrow, nameLength, columnLength, rightMargin, head, headed, inner,
      tree: domain(0, nColumns ? start : room),
      real: domain(start + between, last),
      categorical: domain(last + apart, room),
    };
  }

  const wholeRange = () => [laid.span + 0.2, -0.2];
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
    const tallest = across(top) || 1;
    const axes = {
      xaxis: {
        domain: size.tree, anchor: "y", range: xView || [1.03 * tallest, -0.01 * tallest], ...heightTicks(size.narrow ? 0.2 : 0.09), tickangle: 0, title: { text: spread ? (size.narrow ? "height (√ scale)" : "height, on a square-root scale") : "height", font: { color: soft, size: 12 }, standoff: 6 }, gridcolor: line, zeroline: false,
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
      ...wedgeTraces(), ...branchTraces(), ...heatmapTraces(real, "x2", true, pitch), ...heatmapTraces(categorical, "x3", false, pitch), ...markerTraces(),
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
      ...axesOf(size), shapes, annotations, width: size.width, height: size.inner + size.head + 46, margin: { l: 12, r: size.rightMargin, t: size.head, b: 46 }, showlegend: false, hovermode: "closest", hoverdistance: 16,
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: getComputedStyle(document.body).fontFamily, color: variable("--ink") },
    };
    const config = { displaylogo: false, responsive: false, doubleClick: false, modeBarButtons: [["zoom2d", "pan2d", "toImage"]], toImageButtonOptions: { filename: "tree", scale: 2 } };
    Plotly.react(picture, traces, layout, config);
    picture.dataset.tips = laid.tips.length;
    picture.dataset.branches = 2 * laid.merges.length;
    return size;
  }

  // ---- what the reader does --------------------------------------------------------------------------------------

  function say(text) {
    status.textContent = text;
  }

  function centre(node, rows) {
    const half = rows / 2;
    const middle = Math.min(Math.max(laid.places[node], half), Math.max(laid.span - half, half));
    yView = rows >= laid.span ? null : [middle + half, middle - half];
  }

  function toggle(node) {
    if (node < nTips) {
      if (counts[node] > 1) say(`${describe(node).join(" · ")}. Its leaves are not in this file.`);
      return;
    }
    const rows = yView ? Math.abs(yView[0] - yView[1]) : null;
    if (folded.has(node)) folded.delete(node);
    else folded.add(node);
    if (found) found = visibleAt(found);
    laid = layOut();
    if (cursor >= 0) cursor = shownAncestor(cursor);
    if (rows) centre(node, rows);
    draw();
    say(`${folded.has(node) ? "Folded" : "Unfolded"}: ${describe(node).join(" · ")}`);
  }

  function shownAncestor(node) {
    let shown = node;
    for (let above = node; above >= 0; above = parents[above]) if (folded.has(above)) shown = above;
    return shown;
  }

  const visibleAt = (leaf) => ({ ...leaf, tip: shownAncestor(leaf.at) });

  function zoom(factor) {
    const [bottom, up] = yView || wholeRange();
    const middle = (bottom + up) / 2, half = (factor * (bottom - up)) / 2;
    if (2 * half >= laid.span) yView = null;
    else if (2 * half >= 2) yView = [Math.min(middle + half, laid.span + 0.2), Math.max(middle - half, -0.2)];
    draw();
  }

  function spreadOut() {
    spread = !spread;
    element("spread").setAttribute("aria-pressed", String(spread));
    xView = null;
    draw();
  }

  function showAll() {
    yView = xView = null;
    draw();
    say("");
  }

  const names = new Map();
  for (let node = 0; node < nTips; node++) {
    if (data.names[node] !== null) names.set(data.names[node], node);
    else if (data.members) for (const name of data.members[node]) names.set(name, node);
  }
  const allNames = Array.from(names.keys());

  function find(text) {
    const flat = (name) => name.replace(/\s+/g, " ").trim().toLowerCase();
    const wanted = flat(text);
    if (!wanted) {
      found = null;
      draw();
      return say("");
    }
    const tests = [(name) => name === text, (name) => flat(name) === wanted, (name) => flat(name).startsWith(wanted), (name) => flat(name).includes(wanted)];
    let name;
    for (const test of tests) if ((name = allNames.find(test)) !== undefined) break;
    if (name === undefined) {
      const hidden = nTips < counts[top] && !data.members ? " Names of leaves in folded clades are not in this file." : "";
      return say(`No row is called “${text}”.${hidden}`);
    }
    const at = names.get(name);
    for (let above = at; above >= 0; above = parents[above]) folded.delete(above);
    found = { name, at, tip: at };
    laid = layOut();
    if (pitchOf(measures()) < SMALLEST_PITCH) centre(at, 40);
    const size = draw();
    const [bottom, up] = yView || wholeRange();
    const y = picture.getBoundingClientRect().top + window.scrollY + size.head + (size.inner * (laid.places[at] - up)) / (bottom - up);
    window.scrollTo({ top: y - window.innerHeight / 2 });
    const where = counts[at] > 1 ? `, in a clade of ${counts[at].toLocaleString("en")} leaves` : "";
    say(`Found ${name}${where}${data.clusters[at] >= 0 ? `, cluster ${data.clusters[at]}` : ""}.`);
  }

  function showTip(title, lines, x, y) {
    tip.replaceChildren(Object.assign(document.createElement("strong"), { textContent: title }));
    for (const line of lines) tip.append(Object.assign(document.createElement("div"), { textContent: line }));
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), page = document.documentElement.clientWidth;
    const besides = x + 16 + box.width > page ? Math.max(4, x - 16 - box.width) : x + 16;
    tip.style.left = `${Math.min(besides, Math.max(4, page - box.width - 4)) + window.scrollX}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - box.height - 4)) + window.scrollY}px`;
  }

  function hovered(event) {
    const point = event.points[0], kind = point.data.meta;
    const { clientX: x, clientY: y } = event.event;
    if (kind === "merges") {
      const [title, ...lines] = describe(point.customdata);
      showTip(title, lines, x, y);
    } else if (kind === "real" || kind === "categorical") {
      const [row, j] = point.pointNumber, node = laid.tips[row], column = (kind === "real" ? real : categorical)[j];
      showTip(counts[node] === 1 ? data.names[node] : describe(node)[0], [`${column.name}: ${cellOf(column, node).text}`], x, y);
    }
  }

  function clicked(event) {
    const point = event.points[0];
    if (point.data.meta !== "merges") return;
    tip.hidden = true;
    toggle(point.customdata);
  }

  function relaid(change) {
    if ("yaxis.range[0]" in change) yView = [change["yaxis.range[0]"], change["yaxis.range[1]"]];
    if ("xaxis.range[0]" in change) xView = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (Object.keys(change).some((key) => /^[xy]axis\./.test(key))) draw();
  }

  function moved(event) {
    const steps = laid.merges.concat(laid.tips.filter((node) => node >= nTips || counts[node] > 1)).sort((a, b) => laid.places[a] - laid.places[b]);
    if (!steps.length) return;
    const at = steps.indexOf(cursor), shown = (node) => steps.includes(node);
    const actions = {
      ArrowLeft: () => (parents[cursor] >= 0 ? parents[cursor] : cursor),
      ArrowRight: () => (cursor >= nTips && !folded.has(cursor) ? [left(cursor), right(cursor)].find(shown) ?? cursor : cursor),
      ArrowUp: () => steps[Math.max(at - 1, 0)],
      ArrowDown: () => steps[Math.min(at + 1, steps.length - 1)],
    };
    if (event.key in actions) {
      cursor = cursor < 0 ? top : actions[event.key]();
      const [bottom, up] = yView || wholeRange();
      if (laid.places[cursor] > bottom || laid.places[cursor] < up) centre(cursor, bottom - up);
      draw();
      say(describe(cursor).join(" · "));
    } else if ((event.key === "Enter" || event.key === " ") && cursor >= 0) toggle(cursor);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") showAll();
    else if (event.key === "Escape") {
      cursor = -1;
      draw();
      say("");
    } else return;
    event.preventDefault();
  }

  function foldClusters() {
    for (let node = nTips; node < top; node++) if (data.clusters[node] >= 0 && data.clusters[parents[node]] < 0) folded.add(node);
    if (found) found = visibleAt(found);
    if (cursor >= 0) cursor = shownAncestor(cursor);
    yView = null;
    draw();
    say(`${laid.tips.length} lines are left.`);
  }

  function unfoldAll() {
    folded.clear();
    if (found) found.tip = found.at;
    yView = null;
    draw();
    say("");
  }

  // ---- legend and theme ------------------------------------------------------------------------------------------

  function key(title, entries) {
    const own = document.createElement("span");
    own.className = "key";
    own.append(Object.assign(document.createElement("b"), { textContent: title }));
    for (const [text, style, name] of entries) {
      const entry = document.createElement("span"), patch = document.createElement("i");
      patch.className = name || "";
      if (style) patch.style.background = style;
      entry.append(patch, text);
      own.append(entry);
    }
    return own;
  }

  function drawLegend() {
    const keys = [];
    if (real.length) keys.push(key("numbers", [[`−${FAR} to +${FAR} standard deviations from the mean`, `linear-gradient(90deg, ${SCALES[theme()].join(",")})`, "ramp"]]));
    for (const column of categorical) {
      const most = Math.min(column.categories.length, MOST_COLORS);
      const entries = column.ranked.slice(0, most).map((k, rank) => [short(column.categories[k], 30), FILLS[rank]]);
      if (column.categories.length > most) entries.push([`${column.categories.length - most} others`, FILLS[MOST_COLORS]]);
      keys.push(key(short(column.name, 30), entries));
    }
    if (data.columns.some((column) => column.expected.length)) keys.push(key("", [["missing cell, in the colour of what the model expects", "", "dot"]]));
    element("legend").replaceChildren(...keys);
  }

  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    themeButton.textContent = name === "dark" ? "Light" : "Dark";
    themeButton.setAttribute("aria-pressed", String(name === "dark"));
    drawLegend();
    draw();
  }

  let before = null;
  function printing(begins) {
    if (begins && before === null) {
      before = { theme: theme(), closed: Array.from(document.querySelectorAll("details:not([open])")) };
      for (const details of before.closed) details.open = true;
      setTheme("light");
    } else if (!begins && before !== null) {
      for (const details of before.closed) details.open = false;
      setTheme(before.theme);
      before = null;
    }
  }

  for (const name of allNames.slice(0, 2000)) element("leaves").append(Object.assign(document.createElement("option"), { value: name }));
  element("search").addEventListener("submit", (event) => {
    event.preventDefault();
    find(element("leaf").value);
  });
  element("leaf").addEventListener("search", () => find(element("leaf").value));
  element("spread").addEventListener("click", spreadOut);
  element("fold").addEventListener("click", foldClusters);
  element("unfold").addEventListener("click", unfoldAll);
  element("closer").addEventListener("click", () => zoom(0.5));
  element("farther").addEventListener("click", () => zoom(2));
  element("reset").addEventListener("click", showAll);
  themeButton.addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  window.addEventListener("beforeprint", () => printing(true));
  window.addEventListener("afterprint", () => printing(false));
  matchMedia("print").addEventListener("change", (event) => printing(event.matches));
  let width = 0;
  new ResizeObserver(() => {
    if (picture.clientWidth !== width) {
      width = picture.clientWidth;
      draw();
    }
  }).observe(picture.parentElement);
  picture.addEventListener("keydown", moved);
  setTheme(theme());
  width = picture.clientWidth;
  picture.on("plotly_hover", hovered);
  picture.on("plotly_unhover", () => (tip.hidden = true));
  picture.on("plotly_click", clicked);
  picture.on("plotly_relayout", relaid);
  picture.on("plotly_doubleclick", showAll);
})();
