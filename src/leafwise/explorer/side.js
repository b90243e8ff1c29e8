// Beside the map: the chosen variable, and evidence, which needs the server.
// ---- one variable
const choose = (v, move = true) => {
  chosen = v;
  byId("around").disabled = false;
  const elsewhere = groups && !everything && !alone && opened !== groupOf[v];
  if (elsewhere) opened = groupOf[v];
  arrange();
  if (alone || elsewhere) fit(); else if (move) centre(v);
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
  const was_ = before && before.values && Object.keys(given).length ? before.values[v] : null;
  variables[v].labels.forEach((label, state) => {
    const share = shares ? shares[state] : null;
    const error = shares && marginals.errors ? marginals.errors[v][state] : null;
    const bar = make("span", {className: "bar"});
    bar.style.width = 100 * (share || 0) + "%";
    const was = was_ && share !== null && Math.abs(was_[state] - share) > 0.0005 ? was_[state] : null;
    const mark = was === null ? [] : [make("span", {className: "before", title: "before the evidence: " + percent(was)})];
    mark.forEach((one) => { one.style.left = 100 * was + "%"; });
    const text = share === null ? "" : !error ? percent(share) : withError(share, error);
    const inside = [
      make("span", {className: "name"}, label === "" ? "(empty)" : label),
      make("span", {className: "track"}, bar, ...mark),
      make("span", {className: "share"}, text, ...(was === null ? [] : [make("span", {className: "was"}, ` was ${percent(was)}`)])),
    ];
    const line = data.live
      ? make("button", {type: "button", className: "state", onclick: (event) => set(v, state, event.shiftKey),
        "aria-pressed": known(v) && given[v].includes(state), title: "Set as evidence; with Shift, one of several states"}, ...inside)
      : make("div", {className: "state"}, ...inside);
    list.append(make("li", {}, line));
  });
  return list;
};
const graphOf = (v, least = 0.58, fold = 0) => {  // shrunk to the available room, but not below `least`
  const holder = make("div", {className: "graph"});
  holder.tabIndex = 0;
  if (!graphs) holder.textContent = "…";
  else {
    holder.innerHTML = graphs[v][fold];  // escaped by the library
    const drawn = holder.querySelector("svg");
    if (drawn) drawn.style.minWidth = least * drawn.width.baseVal.value + "px";
    const unfold = (event) => {  // folded parts open in the large view, with a way back
      const box = event.target.closest("[data-fold]");
      if (!box || (event.key && event.key !== "Enter")) return;
      const back = make("button", {type: "button", onclick: () => show(variables[v].name, ...pageOf(v, fold))}, "Back up");
      show(variables[v].name, back, graphOf(v, 1, Number(box.dataset.fold)));
    };
    holder.onclick = unfold;
    holder.onkeydown = unfold;
  }
  return holder;
};
const pageOf = (v, fold) => [graphOf(v, 1, fold)];
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
    ...sureness(v),
    make("h3", {}, "Size"),
    facts([
      ["tests", variable.tests], ["leaves", variable.leaves], ["parameters", variable.parameters],
      ["log score", variable.score === null ? null : long(variable.score)],
      ["share of the score", variable.score === null || !total ? null : percent(variable.score / total)],
    ]),
    make("div", {className: "row"}, make("h3", {}, "Decision graph"), enlarge),
    graphOf(v),
  ];
};
const sureness = (v) => {  // of a consensus: the share of networks that connect the variable with each neighbour
  const near = data.shares ? arcs.filter(([parent, child]) => parent === v || child === v) : [];
  const rows = near.map(([parent, child,,, k]) => [variables[parent === v ? child : parent].name, percent(data.shares[k])]);
  return rows.length ? [make("h3", {}, "Share of networks that connect it with"), facts(rows)] : [];
};
const certainty = (v) => {
  if (!marginals) return "Computing…";
  if (marginals.problem) return marginals.problem;
  if (!marginals.errors) return data.live ? "Exact. Click a state to set it as evidence." : "Exact.";
  if (known(v) && given[v].length === 1) return "Observed.";
  const worst = Math.max(...marginals.errors[v]);
  const warned = marginals.warnings.length ? " They may be larger: see the warning." : "";
  return `Approximate, from samples: standard errors up to ${points(worst)}.${warned}`;
};
const overview = () => {
  const about = data.about;
  const parts = [
    make("h2", {}, "The network"),
    facts([
      ["variables", n.toLocaleString("en")], ["arcs", arcs.length.toLocaleString("en")],
      ["tests", about.tests.toLocaleString("en")], ["leaves", about.leaves.toLocaleString("en")],
      ["parameters", about.parameters.toLocaleString("en")],
      ["learned from", about.cases ? count(about.cases, "case") : null], ["log score", total ? long(total) : null],
      ["prior", about.prior], ["structure prior", about["structure prior"]],
    ]),
    make("h3", {}, "Most connected"), chips(byDegree.slice(0, 12), "linked"),
    make("p", {className: "note"}, data.live ? "Choose a variable, then click its states to set evidence."
      : "Choose a variable to see its decision graph. To set evidence: leafwise explore."),
  ];
  return parts;
};
const changes = () => {  // the variables whose distributions the evidence changed most
  if (!before || !marginals || !marginals.values || !Object.keys(given).length) return [];
  const change = variables.map((_, v) => moved_(v));
  return [...change.keys()].filter((v) => change[v] > 0.0005).sort((a, b) => change[b] - change[a]).slice(0, 8).map((v) => [v, change[v]]);
};
const show = (title, ...inside) => {
  byId("large-head").textContent = title;
  byId("large-body").replaceChildren(...inside);
  if (!byId("large").open) byId("large").showModal();
};

// ---- evidence, which needs the server
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
  if (number !== asked) return;  // a newer query is in progress
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
    const states = given[v].map((state) => variables[v].labels[state]).join(" or ");
    const text = `${variables[v].name} ${/^[<>]/.test(states) ? "" : "= "}${states}`;  // bins are "< 30" or ">= 30"
    const drop = () => { const all = {...given}; delete all[v]; change(all); };
    box.append(make("button", {type: "button", onclick: drop, "aria-label": `${text}: remove`}, text + " ×"));
  });
  byId("given").replaceChildren(keys.length ? box : make("p", {className: "note"}, "No evidence yet: click a state of a variable."));
  byId("undo").disabled = !past.length;
  byId("clear").disabled = !keys.length;
  if (byId("evidence").getAttribute("aria-busy") === "true") return;
  byId("method").className = marginals.problem ? "problem" : "";
  byId("method").replaceChildren(...method());
};
const method = () => {
  if (marginals.problem) return [marginals.problem];
  const worst = marginals.errors ? Math.max(...marginals.errors.map((row) => Math.max(...row))) : 0;
  const how = {weighting: "weighted samples", importance: "adaptive samples", gibbs: "Gibbs sampling"}[marginals.method];
  const text = marginals.errors
    ? `Approximate (${how} worth ${count(marginals.worth, "draw")}): standard errors up to ${points(worst)}.`
    : "All marginals are exact.";
  const warned = (marginals.warnings || []).map((warning) => make("p", {className: "problem"}, "Warning: " + warning));
  const most = changes();
  if (!most.length) return [text, ...warned];
  const list = make("ul", {className: "moves"});
  most.forEach(([v]) => {
    const now = marginals.values[v], was = before.values[v];
    const state = [...now.keys()].reduce((a, b) => Math.abs(now[b] - was[b]) > Math.abs(now[a] - was[a]) ? b : a);
    const move = ` ${variables[v].labels[state]} ${(100 * was[state]).toFixed(1)} → ${(100 * now[state]).toFixed(1)} %`;
    list.append(make("li", {}, make("button", {type: "button", onclick: () => choose(v)}, variables[v].name), make("span", {}, move)));
  });
  return [text, ...warned, make("h3", {}, "Largest changes, from no evidence to this evidence"), list];
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
    ...(answer.note ? [make("p", {className: "problem"}, answer.note)] : []),
    make("p", {className: "note"}, `Their joint probability given the evidence is ${Math.exp(answer.log_posterior).toPrecision(3)} (log ${answer.log_posterior.toFixed(3)}).`),
    make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "variable"), make("th", {scope: "col"}, "state"))), body));
};
