// Search, and the start of the page.
// ---- search
const search = byId("search"), found = byId("found");
let hits = [], place = -1;
const look = () => {
  const text = search.value.trim().toLowerCase();
  const rank = (name) => name === text ? 0 : name.startsWith(text) ? 1 : 2;
  const all = [...variables.keys()].map((v) => [v, variables[v].name.toLowerCase()]).filter(([, name]) => name.includes(text));
  if (text) all.sort((a, b) => rank(a[1]) - rank(b[1]));
  hits = all.slice(0, 100).map(([v]) => v);
  found.replaceChildren(...hits.map((v, k) => make("li", {id: "hit" + k, role: "option", "aria-selected": "false",
    onpointerdown: (event) => { event.preventDefault(); take(k); }}, variables[v].name)));
  if (all.length > hits.length || !hits.length) {
    const note = hits.length ? `and ${(all.length - hits.length).toLocaleString("en")} more: type to narrow` : "no variable name contains this";
    found.append(make("li", {className: "note", role: "presentation"}, note));
  }
  open(true);
  mark(text && hits.length ? 0 : -1);
  say(count(all.length, "variable"));
};
const open = (yes) => { found.hidden = !yes; search.setAttribute("aria-expanded", yes); };
const mark = (k) => {
  place = k;
  hits.forEach((_, at) => byId("hit" + at).setAttribute("aria-selected", at === k));
  if (k >= 0) { search.setAttribute("aria-activedescendant", "hit" + k); byId("hit" + k).scrollIntoView({block: "nearest"}); }
  else search.removeAttribute("aria-activedescendant");
};
const take = (k) => { open(false); search.value = ""; choose(hits[k]); };
search.addEventListener("input", look);
search.addEventListener("focus", look);
search.addEventListener("blur", () => open(false));
search.addEventListener("keydown", (event) => {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step) {
    if (found.hidden) look();
    mark(hits.length ? (place + step + hits.length) % hits.length : -1);
  } else if (event.key === "Enter" && place >= 0 && !found.hidden) take(place);
  else if (event.key === "Escape") open(false);
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.tagName === "INPUT";
  if (event.key === "/" && !typing && !byId("large").open) { event.preventDefault(); search.focus(); }
  if (event.key === "z" && (event.ctrlKey || event.metaKey) && !typing && data.live) { event.preventDefault(); undo(); }
});

// ---- start
const themes = ["auto", "light", "dark"];
byId("theme").onclick = (event) => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
  if (next === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
  event.target.textContent = "Theme: " + next;
  readColours();
  redraw();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
const resize = () => {
  const box = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1, first = !width;
  [width, height] = [box.width, box.height];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  if (first) fit();
  draw();
};
const unpack = async () => {
  const packed = Uint8Array.from(atob(byId("graphs").textContent), (sign) => sign.charCodeAt(0));
  graphs = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  tell();
};
byId("sizes").textContent = `${count(n, "variable")}, ${count(arcs.length, "arc")}, ${count(data.about.leaves, "leaf", "leaves")}`;
canvas.setAttribute("aria-label", `The network: ${byId("sizes").textContent}. Use the search field to reach a variable.`);
readColours();
shorten();
byId("groups").hidden = byId("everything").hidden = !groups;
arrange();
new ResizeObserver(resize).observe(canvas);
const start = variables.findIndex((variable) => "#" + encodeURIComponent(variable.name) === location.hash);
tell();
unpack();
if (start >= 0) requestAnimationFrame(() => choose(start));
if (data.live) { byId("evidence").hidden = false; marginals = null; byId("evidence").setAttribute("aria-busy", "true"); update(); }
