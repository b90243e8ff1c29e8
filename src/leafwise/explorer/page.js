"use strict";
(() => {
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

// ---- one variable
const choose = (v, move = true) => {
  chosen = v;
  byId("around").disabled = false;
  arrange();
  if (alone) fit(); else if (move) centre(v);
  history.replaceState(null, "", "#" + encodeURIComponent(variables[v].name));
  tell();
  redraw();
  say(`${variables[v].name}: ${count(variables[v].parents.length, "parent")}, ${count(children[v].length, "child", "children")}`);
};
const chips = (members, kind) => {
  const box = make("div", {className: "chips " + kind});
  members.forEach((v) => box.append(make("button", {type: "button", onclick: () => choose(v)}, variables[v].name)));
  return members.length ? box : make("p", {className: "note"}, "none");
};
const states = (v) => {
  const list = make("ul", {className: "states"});
  const shares = marginals && marginals.values ? marginals.values[v] : null;
  variables[v].labels.forEach((label, state) => {
    const share = shares ? shares[state] : null;
    const error = shares && marginals.errors ? marginals.errors[v][state] : null;
    const bar = make("span", {className: "bar"});
    bar.style.width = 100 * (share || 0) + "%";
    const inside = [
      make("span", {className: "name"}, label === "" ? "(empty)" : label),
      make("span", {className: "track"}, bar),
      make("span", {className: "share"}, share === null ? "" : !error ? percent(share) : withError(share, error)),
    ];
    const line = data.live
      ? make("button", {type: "button", className: "state", onclick: (event) => set(v, state, event.shiftKey),
        "aria-pressed": known(v) && given[v].includes(state), title: "Set as evidence; with Shift, one of several states"}, ...inside)
      : make("div", {className: "state"}, ...inside);
    list.append(make("li", {}, line));
  });
  return list;
};
const graphOf = (v, least = 0.62) => {  // shrunk to the room there is, but not below that
  const holder = make("div", {className: "graph"});
  holder.tabIndex = 0;
  if (!graphs) holder.textContent = "…";
  else {
    holder.innerHTML = graphs[v];  // escaped by the library
    const drawn = holder.querySelector("svg");
    if (drawn) drawn.style.minWidth = least * drawn.width.baseVal.value + "px";
  }
  return holder;
};
const facts = (entries) => {
  const list = make("dl");
  for (const [key, value] of entries) {
    if (value !== null && value !== undefined && value !== "") list.append(make("dt", {}, key), make("dd", {}, String(value)));
  }
  return list;
};
const tell = () => {
  const place = byId("details");
  const open = document.activeElement && place.contains(document.activeElement)
    ? [...place.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  place.replaceChildren(...(chosen === null ? overview() : details(chosen)));
  if (open >= 0) { const again = place.querySelectorAll("button")[open]; if (again) again.focus(); }
};
const details = (v) => {
  const variable = variables[v];
  const enlarge = make("button", {type: "button", onclick: () => show(variable.name, graphOf(v, 1))}, "Enlarge");
  return [
    make("h2", {id: "chosen"}, variable.name),
    make("h3", {}, data.live && Object.keys(given).length ? "Probability given the evidence" : "Probability"),
    states(v),
    make("p", {className: "note"}, certainty(v)),
    make("h3", {}, "Parents"), chips(variable.parents, "parents"),
    make("h3", {}, "Children"), chips(children[v], "children"),
    make("h3", {}, "Size"),
    facts([
      ["leaves", variable.leaves], ["parameters", variable.parameters],
      ["log score", variable.score === null ? null : long(variable.score)],
      ["share of the score", variable.score === null || !total ? null : percent(variable.score / total)],
    ]),
    make("div", {className: "row"}, make("h3", {}, "Decision graph"), enlarge),
    graphOf(v),
  ];
};
const certainty = (v) => {
  if (!marginals) return "Being computed…";
  if (marginals.problem) return marginals.problem;
  if (!marginals.errors) return data.live ? "Exact. Click a state to set it as evidence." : "Exact.";
  if (known(v) && given[v].length === 1) return "Known.";
  const worst = Math.max(...marginals.errors[v]);
  return `Approximate, from samples: standard errors up to ${points(worst)}.`;
};
const overview = () => {
  const about = data.about;
  const parts = [
    make("h2", {}, "The network"),
    facts([
      ["variables", n.toLocaleString("en")], ["arcs", arcs.length.toLocaleString("en")],
      ["leaves", about.leaves.toLocaleString("en")], ["parameters", about.parameters.toLocaleString("en")],
      ["learned from", about.cases ? count(about.cases, "case") : null], ["log score", total ? long(total) : null],
      ["prior", about.prior], ["structure prior", about["structure prior"]],
    ]),
    make("h3", {}, "Most linked"), chips(byDegree.slice(0, 12), "linked"),
    make("p", {className: "note"}, data.live ? "Choose a variable, then click its states to set evidence."
      : "Choose a variable to see its decision graph. To set evidence: leafwise explore."),
  ];
  return parts;
};
const changes = () => {  // the variables whose distributions the evidence changed most
  if (!before || !marginals || !marginals.values || !Object.keys(given).length) return [];
  const change = marginals.values.map((row, v) => known(v) ? 0 : row.reduce((sum, share, s) => sum + Math.abs(share - before.values[v][s]), 0) / 2);
  return [...change.keys()].filter((v) => change[v] > 0.0005).sort((a, b) => change[b] - change[a]).slice(0, 8).map((v) => [v, change[v]]);
};
const show = (title, ...inside) => {
  byId("large-head").textContent = title;
  byId("large-body").replaceChildren(...inside);
  byId("large").showModal();
};

// ---- evidence, with the server's help
const ask = async (question) => {
  const reply = await fetch(question, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({given}),
  });
  return reply.json();
};
const set = (v, state, several) => {
  const now = given[v] || [];
  let next = now.length === 1 && now[0] === state ? [] : [state];
  if (several) next = now.includes(state) ? now.filter((one) => one !== state) : [...now, state].sort((a, b) => a - b);
  const all = {...given, [v]: next};
  if (!next.length || next.length === variables[v].labels.length) delete all[v];
  change(all);
};
const change = (all) => {
  past.push(given);
  given = all;
  update();
};
const update = async () => {
  const number = ++asked;
  byId("evidence").setAttribute("aria-busy", "true");
  byId("method").textContent = "Computing…";
  chipsOfEvidence();
  redraw();
  let answer;
  try { answer = await ask("marginals"); } catch { answer = {problem: "The server does not answer: is leafwise explore still running?"}; }
  if (number !== asked) return;  // a newer question is under way
  marginals = answer;
  if (!before && answer.values) before = answer;
  byId("evidence").setAttribute("aria-busy", "false");
  chipsOfEvidence();
  tell();
  redraw();
  say(byId("method").textContent);
};
const chipsOfEvidence = () => {
  const keys = Object.keys(given).map(Number);
  const box = make("div", {className: "chips"});
  keys.forEach((v) => {
    const text = `${variables[v].name} = ${given[v].map((state) => variables[v].labels[state]).join(" or ")}`;
    const drop = () => { const all = {...given}; delete all[v]; change(all); };
    box.append(make("button", {type: "button", onclick: drop, "aria-label": `${text}: take back`}, text + " ×"));
  });
  byId("given").replaceChildren(keys.length ? box : make("p", {className: "note"}, "Nothing is known yet: click a state of a variable."));
  byId("undo").disabled = !past.length;
  byId("clear").disabled = !keys.length;
  if (byId("evidence").getAttribute("aria-busy") === "true") return;
  byId("method").className = marginals.problem ? "problem" : "";
  byId("method").replaceChildren(...method());
};
const method = () => {
  if (marginals.problem) return [marginals.problem];
  const worst = marginals.errors ? Math.max(...marginals.errors.map((row) => Math.max(...row))) : 0;
  const how = {weighting: "weighted samples", gibbs: "Gibbs sampling"}[marginals.method];
  const text = marginals.errors
    ? `Approximate (${how} worth ${count(marginals.worth, "draw")}): standard errors up to ${points(worst)}.`
    : "All marginals are exact.";
  const most = changes();
  if (!most.length) return [text];
  const box = make("div", {className: "chips"});
  most.forEach(([v, moved]) => box.append(make("button", {type: "button", onclick: () => choose(v)}, `${variables[v].name} ${(100 * moved).toFixed(0)} %`)));
  return [text, make("h3", {}, "Changed most"), box];
};
const undo = () => {
  if (!past.length) return;
  given = past.pop();
  update();
};
byId("undo").onclick = undo;
byId("clear").onclick = () => change({});
byId("explain").onclick = async () => {
  byId("explain").disabled = true;
  say("Computing the most probable explanation");
  let answer;
  try { answer = await ask("explanation"); } catch { answer = {problem: "The server does not answer: is leafwise explore still running?"}; }
  byId("explain").disabled = false;
  if (answer.problem) return show("Most probable explanation", make("p", {className: "problem"}, answer.problem));
  const rows = variables.map((variable, v) => [v, variable.name, variable.labels[answer.states[v]]]).filter(([v]) => !known(v));
  const body = make("tbody", {}, ...rows.map(([, name, label]) => make("tr", {}, make("td", {}, name), make("td", {}, label))));
  show("Most probable explanation",
    make("p", {className: "note"}, `All together they have probability ${Math.exp(answer.log_posterior).toPrecision(3)} given the evidence (log ${answer.log_posterior.toFixed(3)}).`),
    make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "variable"), make("th", {scope: "col"}, "state"))), body));
};

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
    const note = hits.length ? `and ${(all.length - hits.length).toLocaleString("en")} more: type to narrow` : "no variable has this in its name";
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

// ---- beginning
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
new ResizeObserver(resize).observe(canvas);
const named = decodeURIComponent(location.hash.slice(1));
const start = variables.findIndex((variable) => variable.name === named);
tell();
unpack();
if (start >= 0) requestAnimationFrame(() => choose(start));
if (data.live) { byId("evidence").hidden = false; marginals = null; byId("evidence").setAttribute("aria-busy", "true"); update(); }
})();
