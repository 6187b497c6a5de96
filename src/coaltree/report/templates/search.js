// The search for a row: a leaf, or the clade that it is in.

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
    const hidden = !drawnWhole && !data.members ? " The names of leaves inside of clades are too many for this page." : "";
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
  const where = counts[at] > 1 ? `: it is in the marked clade of ${counts[at].toLocaleString("en")} leaves` : "";
  say(`Found ${name}${where}${data.clusters[at] >= 0 ? `, in ${clusterName(data.clusters[at])}` : ""}.`);
}
