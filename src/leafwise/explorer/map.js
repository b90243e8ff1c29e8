// The network on a canvas: the data, where things are, drawing, and moving about.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const variables = data.variables;
const n = variables.length;
const children = variables.map(() => []);
const arcs = [];
variables.forEach((variable, child) => variable.parents.forEach((parent) => {
  children[parent].push(child);
  arcs.push([parent, child, data.routes[arcs.length]]);
}));
const degree = variables.map((variable, v) => variable.parents.length + children[v].length);
const byDegree = [...variables.keys()].sort((a, b) => degree[b] - degree[a]);
const total = variables.reduce((sum, variable) => sum + (variable.score || 0), 0);

let chosen = null, hovered = null, alone = false;
let given = {};  // variable: [state, ...]
const past = [];  // evidence before each change
let marginals = data.marginals, before = null, asked = 0, graphs = null;

// ---- small things
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

// ---- where things are: the whole network, or one variable with its parents above and its children below
const whole = variables.map((variable) => ({x: variable.at[0], y: variable.at[1], w: variable.at[2], h: 28}));
let shown = whole, visible = [...variables.keys()];
const view = {x: 0, y: 0, k: 1};

const rowsOf = (members, y, step) => {  // boxes in rows of about equal width, away from the middle
  const width = members.reduce((sum, v) => sum + whole[v].w + 16, 0);
  const most = Math.max(700, Math.sqrt(width * 90));
  const rows = [[]];
  let used = 0;
  for (const v of members) {
    if (used + whole[v].w > most) { rows.push([]); used = 0; }
    rows[rows.length - 1].push(v);
    used += whole[v].w + 16;
  }
  const places = {};
  rows.forEach((row, r) => {
    let x = -row.reduce((sum, v) => sum + whole[v].w + 16, -16) / 2;
    for (const v of row) {
      places[v] = {...whole[v], x: x + whole[v].w / 2, y: y + step * r};
      x += whole[v].w + 16;
    }
  });
  return places;
};
const arrange = () => {
  shown = whole;
  visible = [...variables.keys()];
  if (alone && chosen !== null) {
    const parents = variables[chosen].parents;
    shown = {[chosen]: {...whole[chosen], x: 0, y: 0}, ...rowsOf(parents, -110, -52), ...rowsOf(children[chosen], 110, 52)};
    visible = [chosen, ...parents, ...children[chosen]];
  }
};

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
const curve = (points) => {  // upright at each point, as the library draws it
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
const drawArcs = (which, colour, thick, heads) => {
  const tips = [];
  pen.beginPath();
  for (const [parent, child, route] of which) {
    const from = shown[parent], to = shown[child];
    if (route && !alone) {
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
const drawBox = (v, focus, roles) => {
  const {x, y, w, h} = shown[v];
  const role = v === focus ? "accent" : roles[v];
  pen.beginPath();
  pen.roundRect(x - w / 2, y - h / 2, w, h, 7);
  const far = view.k * 13 < 5.5;  // too far away for names
  pen.fillStyle = v === focus ? colours.accent : far ? known(v) ? colours.known : colours[role] || colours.edge : colours.box;
  pen.fill();
  if (far && v !== focus) return;
  pen.strokeStyle = known(v) ? colours.known : role ? colours[role] : colours.edge;
  pen.lineWidth = known(v) || role ? Math.max(2, 1.6 / view.k) : 1;
  pen.stroke();
  if (far) return;
  pen.fillStyle = v === focus ? colours.sheet : colours.ink;
  pen.fillText(names[v], x, y - 2.5);
  const shares = marginals && marginals.values && marginals.values[v];
  if (!shares) return;
  let left = x - w / 2 + 9;
  shares.forEach((share, state) => {  // the marginal as one bar: darker for later states
    const part = share * (w - 18);
    pen.globalAlpha = shares.length === 1 ? 1 : 0.18 + 0.82 * state / (shares.length - 1);
    pen.fillStyle = known(v) ? colours.known : v === focus ? colours.sheet : colours.bar;
    pen.fillRect(left, y + h / 2 - 7.5, part, 4);
    left += part;
  });
  pen.globalAlpha = 1;
};
const drawLabels = (focus, roles) => {  // where boxes are too small for names: the most linked ones, as far as there is room
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
const shorten = () => {
  pen.font = "13px system-ui, sans-serif";
  names.forEach((name, v) => {
    let text = name;
    while (text.length > 1 && pen.measureText(text).width > whole[v].w - 10) text = text.slice(0, -2) + "…";
    names[v] = text;
  });
};
const draw = () => {
  const ratio = devicePixelRatio || 1;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(ratio * view.k, 0, 0, ratio * view.k, -view.x * view.k * ratio, -view.y * view.k * ratio);
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
  drawArcs(here.filter(([, child]) => child === focus), colours.parent, 1.8, true);
  drawArcs(here.filter(([parent]) => parent === focus), colours.child, 1.8, true);
  pen.font = "13px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const [left, top] = [view.x, view.y], [right, bottom] = [view.x + width / view.k, view.y + height / view.k];
  for (const v of visible) {
    const {x, y, w, h} = shown[v];
    if (x + w > left && x - w < right && y + h > top && y - h < bottom) drawBox(v, focus, roles);
  }
  if (view.k * 13 < 8) {
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLabels(focus, roles);
  }
};

// ---- moving about
const fit = () => {
  const boxes = visible.map((v) => shown[v]);
  const left = Math.min(...boxes.map((b) => b.x - b.w / 2)), right = Math.max(...boxes.map((b) => b.x + b.w / 2));
  const top = Math.min(...boxes.map((b) => b.y - b.h / 2)), bottom = Math.max(...boxes.map((b) => b.y + b.h / 2));
  view.k = Math.min(1.25, (width - 40) / (right - left), (height - 110) / (bottom - top));
  view.x = (left + right) / 2 - width / 2 / view.k;
  view.y = (top + bottom) / 2 - (height + 20) / 2 / view.k;
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
  if (moved < 5 && v !== null) choose(v, false);
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
byId("around").onclick = () => {
  alone = !alone;
  byId("around").setAttribute("aria-pressed", alone);
  arrange();
  fit();
};
