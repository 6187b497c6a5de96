// The table: what the cell of a leaf shows, and that of a clade.

const real = data.columns.filter((column) => !column.categories), categorical = data.columns.filter((column) => column.categories);
const MOST_COLORS = 8;
const shades = new Map();  // by the name of the category: one that is in several columns has one colour
for (const column of data.columns) {
  column.expectedBy = new Map(column.expected.map(([row, ...rest]) => [row, rest]));
  if (!column.categories) continue;
  const totals = column.categories.map(() => 0);
  for (let node = 0; node < nTips; node++) tallyOf(column, node).forEach((n, k) => (totals[k] += n));
  column.ranked = totals.map((_, k) => k).sort((a, b) => totals[b] - totals[a] || a - b);
  column.shown = column.ranked.slice(0, MOST_COLORS);
  column.shade = column.categories.map(() => MOST_COLORS);
  const taken = new Set(), paint = (k, shade) => {
    column.shade[k] = shade;
    taken.add(shade);
  };
  for (const k of column.shown) {
    const known = shades.get(column.categories[k]);
    if (known !== undefined && !taken.has(known)) paint(k, known);
  }
  for (const k of column.shown) {
    if (column.shade[k] < MOST_COLORS) continue;
    let free = 0;
    while (taken.has(free)) free++;
    paint(k, free);
    if (!shades.has(column.categories[k])) shades.set(column.categories[k], free);
  }
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
    if (value !== null) return { value, text: valueOf(column, value) };
    const expected = column.expectedBy.get(node);
    if (!expected) return { value: null, missing: true, text: "missing" };
    return { value: expected[0], missing: true, text: `missing; model expects ${valueOf(column, expected[0], expected[1] >= 1)} ± ${number(expected[1])}${column.time ? " days" : ""}` };
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
  return { value: mean, text: `mean ${valueOf(column, besides(mean, 0.1 * column.sd), true)} of ${seen.toLocaleString("en")} observed` };
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
