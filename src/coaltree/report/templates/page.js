// The legend, the theme, printing; and what is done when.

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
  const alike = new Map();  // columns whose categories look the same share a key
  for (const column of categorical) {
    const entries = column.shown.map((k) => [short(column.categories[k], 30), FILLS[column.shade[k]]]).sort();
    const rest = column.categories.length - column.shown.length;
    if (rest) entries.push([`${rest.toLocaleString("en")} ${rest > 1 ? "others" : "other"}`, FILLS[MOST_COLORS]]);
    const look = JSON.stringify(entries);
    if (!alike.has(look)) alike.set(look, { entries, names: [] });
    alike.get(look).names.push(short(column.name, 30));
  }
  for (const own of alike.values()) keys.push(key(own.names.join(", "), own.entries));
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
