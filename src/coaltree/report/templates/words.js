// Numbers, names and clades in words.

function number(value) {
  return String(value).replace("-", "−");
}

// A number to the digits that a standard deviation leaves sure.
function besides(value, sd) {
  return Number(value.toFixed(Math.min(Math.max(1 - Math.floor(Math.log10(sd)), 0), 100)));
}

// Points in time are days since 1970-01-01.
function date(days, wholeDay) {
  const minutes = Math.round(days * 1440), time = new Date(60000 * minutes);
  const text = Number.isNaN(time.getTime()) ? "" : time.toISOString();
  if (!/^\d{4}-/.test(text)) return `${number(days)} days after 1970-01-01`;
  return wholeDay || minutes % 1440 === 0 ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

function valueOf(column, value, wholeDay = false) {
  return column.time ? date(value, wholeDay) : number(value);
}

function explained(logRatio) {
  const size = Math.abs(logRatio);
  if (size < Math.log(1.05)) return "One tree explains them as well as two";
  const factor = size > Math.log(1e6) ? "more than a million" : Number(Math.exp(size).toPrecision(2)).toLocaleString("en");
  return logRatio > 0 ? `One tree explains them ${factor} times better than two` : `Two trees explain them ${factor} times better than one`;
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
  if (data.ratios[node] !== null) lines.push(explained(data.ratios[node]));
  lines.push(data.clusters[node] >= 0 ? `In ${clusterName(data.clusters[node])}` : "In several clusters");
  for (const [j, inside, outside, code] of data.apart[node]) {
    const column = data.columns[j];
    lines.push(
      column.categories
        ? `${column.name} = ${column.categories[code]}: ${percent(inside)}, elsewhere ${percent(outside)}`
        : `${column.name}: mean ${valueOf(column, inside, true)}, elsewhere ${valueOf(column, outside, true)}`,
    );
  }
  if (!data.apart[node].length && node !== top) lines.push("Differs little from the other rows");
  return lines;
}

// Plotly reads some tags and entities in labels; names are text.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function short(text, most) {
  const characters = Array.from(text.replace(/[\n\t]/g, " "));
  if (characters.length <= most) return characters.join("");
  const end = Math.floor(most / 3);  // names that begin alike may differ there
  return `${characters.slice(0, most - end - 1).join("")}…${characters.slice(-end).join("")}`;
}
