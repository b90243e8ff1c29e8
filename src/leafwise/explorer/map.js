// The network on a canvas: the data, positions, drawing, and navigation.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const variables = data.variables;
const n = variables.length;
const children = variables.map(() => []);
const arcs = [];
variables.forEach((variable, child) => variable.parents.forEach((parent) => {
  children[parent].push(child);
  const strength = data.strengths[arcs.length];
  const width = data.shares ? 0.6 + 3.4 * data.shares[arcs.length] : strength === null ? 1 : 0.6 + 3.4 * Math.sqrt(strength);
  arcs.push([parent, child, data.routes[arcs.length], width, arcs.length]);
}));
if (data.shares) document.querySelector("#key .strong").textContent = "wider arcs are surer";
const degree = variables.map((variable, v) => variable.parents.length + children[v].length);
const byDegree = [...variables.keys()].sort((a, b) => degree[b] - degree[a]);
const total = variables.reduce((sum, variable) => sum + (variable.score || 0), 0);

const groups = data.clusters;  // if the network is too large to be shown at once; on the map group g is box -1 - g
const groupOf = [];
(groups || []).forEach((group, g) => group.members.forEach((v) => { groupOf[v] = g; }));

let chosen = null, hovered = null, alone = false, opened = null, everything = !groups;
let given = {};  // variable: [state, ...]
const past = [];  // evidence before each change
let marginals = data.marginals, before = null, asked = 0, graphs = null;

// ---- helpers
const make = (tag, properties = {}, ...inside) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, value); else made[key] = value;
  }
  made.append(...inside);
  return made;
};
const count = (number, one, more = one + "s") => `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
const percent = (share) => (100 * share).toFixed(1) + " %";
const withError = (share, error) => {
  const digits = error < 0.001 ? 2 : 1;
  return `${(100 * share).toFixed(digits)} ± ${(100 * error).toFixed(digits)} %`;
};
const points = (error) => (100 * error).toFixed(error < 0.001 ? 2 : 1) + " points";
const long = (number) => number.toLocaleString("en", {maximumFractionDigits: 2}).replace("-", "−");
const say = (text) => { byId("status").textContent = text; };
const known = (v) => v in given;

// ---- positions: the whole network, or one variable with its parents above and its children below
const whole = variables.map((variable) => ({x: variable.at[0], y: variable.at[1], w: variable.at[2], h: variable.at[3]}));
let shown = whole, visible = [...variables.keys()];
const view = {x: 0, y: 0, k: 1};

const cardOf = (v) => {  // room for a labelled bar for each state
  if (whole[v].h > 40) return {w: whole[v].w, h: whole[v].h};
  pen.font = "10.5px system-ui, sans-serif";
  const labels = Math.min(84, Math.max(...variables[v].labels.slice(0, 40).map((label) => pen.measureText(label).width + 4)));
  return {w: Math.max(whole[v].w, labels + 84), h: 24 + 13 * Math.min(6, variables[v].labels.length)};
};
const rowsOf = (members, from, step) => {  // cards in rows of about equal width, away from the middle
  const cards = members.map(cardOf);
  const most = Math.max(700, Math.sqrt(cards.reduce((sum, {w}) => sum + w + 16, 0) * 150));
  const rows = [[]];
  let used = 0;
  members.forEach((v, k) => {
    if (used + cards[k].w > most) { rows.push([]); used = 0; }
    rows[rows.length - 1].push(k);
    used += cards[k].w + 16;
  });
  const places = {};
  let edge = from;
  for (const row of rows) {
    let x = -row.reduce((sum, k) => sum + cards[k].w + 16, -16) / 2;
    const tall = Math.max(...row.map((k) => cards[k].h), 0);
    for (const k of row) {
      places[members[k]] = {...cards[k], x: x + cards[k].w / 2, y: step * (edge + tall / 2)};
      x += cards[k].w + 16;
    }
    edge += tall + 24;
  }
  return places;
};
const arrange = () => {
  shown = whole;
  visible = [...variables.keys()];
  routeOf = (arc) => arc[2];
  if (alone && chosen !== null) {
    const parents = variables[chosen].parents, own = cardOf(chosen), far = own.h / 2 + 60;
    shown = {[chosen]: {...own, x: 0, y: 0}, ...rowsOf(parents, far, -1), ...rowsOf(children[chosen], far, 1)};
    visible = [chosen, ...parents, ...children[chosen]];
    routeOf = () => null;
  } else if (opened !== null) {
    const group = groups[opened];
    shown = {};
    group.members.forEach((v, k) => { shown[v] = {...whole[v], x: group.places[k][0], y: group.places[k][1]}; });
    visible = group.members;
    routeOf = (arc) => group.routes[arc[4]];
  } else if (!everything) {
    shown = {};
    groups.forEach(({at: [x, y, w, h]}, g) => { shown[-1 - g] = {x, y, w, h}; });
    visible = groups.map((_, g) => -1 - g);
  }
  if (!groups) return;
  byId("groups").setAttribute("aria-pressed", opened === null && !everything && !alone);
  byId("everything").setAttribute("aria-pressed", everything && opened === null && !alone);
  const names = opened === null ? "" : `: ${count(groups[opened].members.length, "variable")} of the group of ${variables[groups[opened].head].name}`;
  byId("hint").textContent = !everything && opened === null ? "Click a group to open it, or search for a variable. Drag to move, scroll to zoom."
    : "Drag to move, scroll to zoom, click a variable" + names + ".";
};
let routeOf = (arc) => arc[2];

// ---- drawing
const canvas = byId("canvas");
const pen = canvas.getContext("2d");
let colours = {}, width = 0, height = 0, waiting = false;
const readColours = () => {
  const probe = make("span");
  document.body.append(probe);
  for (const name of ["paper", "sheet", "ink", "quiet", "box", "edge", "arc", "bar", "track", "accent", "parent", "child", "known"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
};
const redraw = () => {
  if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); }
};
const curve = (points) => {  // vertical at each point, as the library draws it
  pen.moveTo(points[0], points[1]);
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x1, y1] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
    pen.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
  }
};
const head = (x, y, dx, dy, size) => {
  pen.moveTo(x, y);
  pen.lineTo(x - size * dx - size * 0.45 * dy, y - size * dy + size * 0.45 * dx);
  pen.lineTo(x - size * dx + size * 0.45 * dy, y - size * dy - size * 0.45 * dx);
};
const drawArcs = (all, colour, thick, heads) => {  // arcs of about the same width at a time
  const byWidth = new Map();
  for (const arc of all) {
    const step = Math.round(2 * arc[3]) / 2;
    if (!byWidth.has(step)) byWidth.set(step, []);
    byWidth.get(step).push(arc);
  }
  for (const [step, some] of byWidth) drawAlike(some, colour, thick * step, heads);
};
const drawAlike = (which, colour, thick, heads) => {
  const tips = [];
  pen.beginPath();
  for (const arc of which) {
    const from = shown[arc[0]], to = shown[arc[1]], route = routeOf(arc);
    if (route) {
      curve(route);
      tips.push([route[route.length - 2], route[route.length - 1], 0, 1]);
      continue;
    }
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const dx = (to.x - from.x) / length, dy = (to.y - from.y) / length;
    const back = Math.min(to.w / 2 / Math.abs(dx || 1e-9), to.h / 2 / Math.abs(dy || 1e-9));
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x - dx * back, to.y - dy * back);
    tips.push([to.x - dx * back, to.y - dy * back, dx, dy]);
  }
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = thick / view.k;
  pen.stroke();
  if (heads) {
    pen.beginPath();
    for (const [x, y, dx, dy] of tips) head(x, y, dx, dy, Math.max(7, 6 / view.k));
    pen.fill();
  }
};
const drawGroups = () => {
  pen.strokeStyle = colours.arc;
  pen.globalAlpha = 0.5;
  groups.forEach(({links}, g) => links.forEach(([other, n]) => {
    if (other < g) return;
    pen.beginPath();
    pen.moveTo(shown[-1 - g].x, shown[-1 - g].y);
    pen.lineTo(shown[-1 - other].x, shown[-1 - other].y);
    pen.lineWidth = Math.min(10, 0.8 + Math.sqrt(n)) / view.k;
    pen.stroke();
  }));
  pen.globalAlpha = 1;
  groups.forEach((group, g) => {
    const {x, y, w, h} = shown[-1 - g];
    const some = group.members.some(known);
    pen.beginPath();
    pen.roundRect(x - w / 2, y - h / 2, w, h, 14);
    pen.fillStyle = hovered === -1 - g ? colours.track : colours.box;
    pen.fill();
    pen.strokeStyle = some ? colours.known : hovered === -1 - g ? colours.accent : colours.edge;
    pen.lineWidth = some ? 3 : 1.4;
    pen.stroke();
    pen.fillStyle = colours.ink;
    pen.font = "600 14px system-ui, sans-serif";
    pen.fillText(names[group.head], x, y - 7);
    pen.fillStyle = colours.quiet;
    pen.font = "12px system-ui, sans-serif";
    const most = before && Object.keys(given).length ? Math.max(...group.members.map(moved_)) : 0;
    const size = group.members.length === 1 ? "1 variable" : `and ${group.members.length - 1} more`;
    pen.fillText(most > 0.0005 ? `${size}, up to ${(100 * most).toFixed(0)} points` : size, x, y + 11);
  });
};
const moved_ = (v) => {  // how far the evidence moved a distribution: half the sum over its states
  if (!before || !before.values || !marginals || !marginals.values || known(v)) return 0;
  return marginals.values[v].reduce((sum, share, s) => sum + Math.abs(share - before.values[v][s]), 0) / 2;
};
const drawCard = (v, focus, shares) => {  // the name, and a labelled bar for each state
  const {x, y, w, h} = shown[v];
  const left = x - w / 2 + 8, labels = variables[v].labels;
  const nameless = w - 16 - 6 - 30 - 32;  // room for a label: beside it are a bar and a number
  pen.textAlign = "left";
  pen.fillStyle = v === focus ? colours.sheet : colours.ink;
  pen.font = "600 12px system-ui, sans-serif";
  pen.fillText(names[v], left, y - h / 2 + 11);
  pen.font = "10.5px system-ui, sans-serif";
  const rows = Math.round((h - 24) / 13);
  const states = labels.length > rows ? likeliest(shares, rows - 1) : [...labels.keys()];
  const was = before && before.values && Object.keys(given).length && !known(v) ? before.values[v] : null;
  states.forEach((state, row) => {
    const middle = y - h / 2 + 26 + 13 * row, from = left + nameless + 6;
    pen.fillStyle = v === focus ? colours.sheet : colours.ink;
    pen.fillText(cut(labels[state] === "" ? "(empty)" : labels[state], nameless), left, middle);
    pen.fillStyle = v === focus ? colours.edge : colours.track;
    pen.fillRect(from, middle - 4.5, 30, 9);
    pen.fillStyle = known(v) ? colours.known : v === focus ? colours.sheet : colours.bar;
    pen.fillRect(from, middle - 4.5, 30 * shares[state], 9);
    if (was && Math.abs(was[state] - shares[state]) > 0.005) {
      pen.fillStyle = v === focus ? colours.sheet : colours.ink;
      pen.fillRect(from + 30 * was[state] - 0.75, middle - 6, 1.5, 12);
    }
    pen.textAlign = "right";
    pen.fillStyle = v === focus ? colours.sheet : colours.ink;
    pen.fillText((100 * shares[state]).toFixed(shares[state] < 0.9995 ? 1 : 0), x + w / 2 - 8, middle);
    pen.textAlign = "left";
  });
  if (states.length < labels.length) {
    pen.fillStyle = v === focus ? colours.sheet : colours.quiet;
    pen.fillText(`and ${labels.length - states.length} more`, left, y - h / 2 + 26 + 13 * states.length);
  }
  pen.textAlign = "center";
};
const likeliest = (shares, n) => [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, n);
const texts = new Map();  // texts shortened to the available width
const cut = (text, room) => {
  const key = `${pen.font}|${Math.round(room)}|${text}`;
  if (!texts.has(key)) {
    let part = text;
    while (part.length > 1 && pen.measureText(part).width > room) part = part.slice(0, -2) + "…";
    texts.set(key, part);
  }
  return texts.get(key);
};
const drawBox = (v, focus, roles) => {
  const {x, y, w, h} = shown[v];
  const role = v === focus ? "accent" : roles[v];
  pen.beginPath();
  pen.roundRect(x - w / 2, y - h / 2, w, h, 7);
  const large = h > 40 ? Math.min(h * 0.42, 26, 13 * (w - 12) / widths[v]) : 13;  // a card has room for a large name
  const far = view.k * large < 6;  // too far away for names
  pen.fillStyle = v === focus ? colours.accent : far ? known(v) ? colours.known : colours[role] || colours.edge : colours.box;
  pen.fill();
  if (far && v !== focus) return;
  pen.strokeStyle = known(v) ? colours.known : role ? colours[role] : colours.edge;
  pen.lineWidth = known(v) || role ? Math.max(2, 1.6 / view.k) : 1;
  pen.stroke();
  if (far) return;
  const shares = marginals && marginals.values && marginals.values[v];
  if (h > 40 && shares && view.k * 10.5 > 6) return drawCard(v, focus, shares);
  pen.fillStyle = v === focus ? colours.sheet : colours.ink;
  pen.font = `${large}px system-ui, sans-serif`;
  pen.fillText(names[v], x, y - (h > 40 ? 3 : 2.5));
  if (!shares) return;
  let left = x - w / 2 + 9;
  shares.forEach((share, state) => {  // the marginal as one bar: darker for later states
    const part = share * (w - 18);
    pen.globalAlpha = shares.length === 1 ? 1 : 0.18 + 0.82 * state / (shares.length - 1);
    pen.fillStyle = known(v) ? colours.known : v === focus ? colours.sheet : colours.bar;
    pen.fillRect(left, y + h / 2 - (h > 40 ? 13 : 7.5), part, h > 40 ? 7 : 4);
    left += part;
  });
  pen.globalAlpha = 1;
};
const drawLabels = (focus, roles) => {  // if boxes are too small for names: those of the most connected ones, as far as there is room
  const taken = [];
  pen.font = "600 12px system-ui, sans-serif";
  const first = focus === null ? [] : [focus, ...Object.keys(roles).map(Number)];
  const wanted = [...new Set([...first, ...Object.keys(given).map(Number), ...byDegree])].filter((v) => shown[v]);
  for (const v of wanted.slice(0, 400)) {
    const x = (shown[v].x - view.x) * view.k, y = (shown[v].y - view.y) * view.k;
    const half = pen.measureText(names[v]).width / 2 + 4;
    const free = taken.every((other) => Math.abs(other.x - x) > other.half + half || Math.abs(other.y - y) > 17);
    if (x < 0 || y < 0 || x > width || y > height || (!free && v !== focus)) continue;
    taken.push({x, y, half});
    pen.fillStyle = colours.sheet;
    pen.globalAlpha = 0.85;
    pen.beginPath();
    pen.roundRect(x - half, y - 8, 2 * half, 16, 4);
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = known(v) ? colours.known : v === focus ? colours.accent : roles[v] ? colours[roles[v]] : colours.ink;
    pen.fillText(names[v], x, y + 0.5);
    if (taken.length >= 60) break;
  }
};
const names = variables.map((variable) => variable.name);
const widths = names.map(() => 1);  // of the names, 13 px high
const shorten = () => {
  pen.font = "13px system-ui, sans-serif";
  names.forEach((name, v) => {
    let text = name;
    while (text.length > 1 && pen.measureText(text).width > whole[v].w - 10) text = text.slice(0, -2) + "…";
    names[v] = text;
    widths[v] = Math.max(1, pen.measureText(text).width);
  });
};
const draw = () => {
  const ratio = devicePixelRatio || 1;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(ratio * view.k, 0, 0, ratio * view.k, -view.x * view.k * ratio, -view.y * view.k * ratio);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  if (visible[0] < 0) return drawGroups();
  const focus = hovered === null ? chosen : hovered;
  const roles = {};
  if (focus !== null) {
    for (const v of variables[focus].parents) roles[v] = "parent";
    for (const v of children[focus]) roles[v] = "child";
  }
  const here = arcs.filter(([parent, child]) => shown[parent] && shown[child]);
  const others = here.filter(([parent, child]) => parent !== focus && child !== focus);
  pen.globalAlpha = (n > 60 ? 0.45 : 0.9) * (focus === null ? 1 : 0.4);
  drawArcs(others, colours.arc, n > 60 ? 0.8 : 1.2, view.k > 0.55 && n <= 400 && !alone);
  pen.globalAlpha = 1;
  drawArcs(here.filter(([, child]) => child === focus), colours.parent, 1.3, true);
  drawArcs(here.filter(([parent]) => parent === focus), colours.child, 1.3, true);
  pen.font = "13px system-ui, sans-serif";
  const [left, top] = [view.x, view.y], [right, bottom] = [view.x + width / view.k, view.y + height / view.k];
  for (const v of visible) {
    const {x, y, w, h} = shown[v];
    pen.font = "13px system-ui, sans-serif";
    if (x + w > left && x - w < right && y + h > top && y - h < bottom) drawBox(v, focus, roles);
  }
  if (view.k * 13 < 6 && whole[0].h < 40) {
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLabels(focus, roles);
  }
};

// ---- navigation
const fit = () => {
  const boxes = visible.map((v) => shown[v]);
  const left = Math.min(...boxes.map((b) => b.x - b.w / 2)), right = Math.max(...boxes.map((b) => b.x + b.w / 2));
  const top = Math.min(...boxes.map((b) => b.y - b.h / 2)), bottom = Math.max(...boxes.map((b) => b.y + b.h / 2));
  view.k = Math.min(1.25, (width - 40) / (right - left), (height - 110) / (bottom - top));
  view.x = (left + right) / 2 - width / 2 / view.k;
  view.y = (top + bottom) / 2 - (height - 8) / 2 / view.k;  // above are buttons, below is the key
  redraw();
};
const zoom = (factor, x = width / 2, y = height / 2) => {
  const k = Math.min(4, Math.max(0.02, view.k * factor));
  view.x += x / view.k - x / k;
  view.y += y / view.k - y / k;
  view.k = k;
  redraw();
};
const centre = (v) => {
  const {x, y} = shown[v];
  const [px, py] = [(x - view.x) * view.k, (y - view.y) * view.k];
  if (view.k < 0.5) view.k = 0.8;
  else if (px > 60 && py > 60 && px < width - 60 && py < height - 60) return;
  view.x = x - width / 2 / view.k;
  view.y = y - height / 2 / view.k;
};
const at = (event) => {
  const box = canvas.getBoundingClientRect();
  const x = view.x + (event.clientX - box.left) / view.k, y = view.y + (event.clientY - box.top) / view.k;
  const slack = Math.max(0, 5 / view.k - 10);
  return visible.findLast((v) => {
    const one = shown[v];
    return Math.abs(x - one.x) <= one.w / 2 + slack && Math.abs(y - one.y) <= one.h / 2 + slack;
  }) ?? null;
};
const fingers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, event);
  moved = fingers.size > 1 ? 99 : 0;
});
canvas.addEventListener("pointermove", (event) => {
  const last = fingers.get(event.pointerId);
  if (!last) {
    const over = at(event);
    if (over !== hovered) { hovered = over; canvas.classList.toggle("over", over !== null); redraw(); }
    return;
  }
  const other = [...fingers.values()].find((one) => one.pointerId !== event.pointerId);
  if (other) {
    const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const box = canvas.getBoundingClientRect();
    zoom(apart(event) / apart(last), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
  } else {
    moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
    view.x -= (event.clientX - last.clientX) / view.k;
    view.y -= (event.clientY - last.clientY) / view.k;
    redraw();
  }
  fingers.set(event.pointerId, event);
});
canvas.addEventListener("pointerup", (event) => {
  fingers.delete(event.pointerId);
  const v = at(event);
  if (moved < 5 && v !== null && v < 0) open_(-1 - v);
  else if (moved < 5 && v !== null) choose(v, false);
});
canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
canvas.addEventListener("pointerleave", () => { if (hovered !== null) { hovered = null; redraw(); } });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
}, {passive: false});
canvas.addEventListener("keydown", (event) => {
  const step = 60 / view.k;
  const moves = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step]};
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (moves[event.key]) { view.x += moves[event.key][0]; view.y += moves[event.key][1]; redraw(); }
  else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") fit();
  else return;
  event.preventDefault();
});
byId("larger").onclick = () => zoom(1.4);
byId("smaller").onclick = () => zoom(1 / 1.4);
byId("fit").onclick = fit;
const open_ = (g, all = false) => {  // a group, all groups (null), or all variables
  opened = g;
  everything = !groups || all;
  alone = false;
  hovered = null;
  byId("around").setAttribute("aria-pressed", false);
  arrange();
  fit();
};
byId("groups").onclick = () => open_(null);
byId("everything").onclick = () => open_(null, true);
byId("around").onclick = () => {
  alone = !alone;
  byId("around").setAttribute("aria-pressed", alone);
  arrange();
  fit();
};
