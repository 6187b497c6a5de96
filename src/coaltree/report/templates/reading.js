// What the reader does: fold, zoom, search, hover, keys.

function say(text) {
  status.textContent = text;
}

function centre(node, rows) {
  const half = rows / 2;
  const middle = Math.min(Math.max(laid.places[node], half), Math.max(laid.span - half, half));
  yView = rows >= laid.span ? null : [middle + half, middle - half];
}

function insideOf(node) {
  const some = data.members ? data.members[node].slice(0, 5).join(", ") : "";
  return `This clade is too large to draw${some ? `; its leaves are ${some} and ${(counts[node] - 5).toLocaleString("en")} more` : ""}.`;
}

function toggle(node) {
  if (node < nTips) {
    if (counts[node] > 1) say(`${describe(node).join(" · ")}. ${insideOf(node)}`);
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
  say(`${folded.has(node) ? "Collapsed" : "Expanded"}: ${describe(node).join(" · ")}`);
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
  say(`${laid.tips.length.toLocaleString("en")} lines are left.`);
}

function unfoldAll() {
  folded.clear();
  if (found) found.tip = found.at;
  yView = null;
  draw();
  say(
    drawnWhole
      ? ""
      : `Everything that this page can draw is expanded: a tree of ${counts[top].toLocaleString("en")} leaves is drawn by its oldest clades, each as a wedge. Click a wedge to read which leaves it has.`,
  );
}
