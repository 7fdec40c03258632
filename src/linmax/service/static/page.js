// Shows one model at a time. Each answer says where its points begin and end, so that nothing is drawn twice or missed.
"use strict";

const MOST_POINTS = 4000;
const MODELS_SECONDS = 5;
const RATE_SECONDS = 2;
const POLL_SECONDS = 0.5;

const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let known = []; // the models, as last reported
let chosen = null; // the name of the model shown
let plot = null;
let data = [[], [], [], []]; // trials, served, plurality, best voter
let reached = { model: null, trials: 0 };
let bound = null; // { constant, slope } over the best voter's mistakes, when one is known
let speed = null; // { time, trials } a moment ago

// -- models -----------------------------------------------------------------------------------------------

async function refresh() {
  let answer;
  try {
    answer = await ask("/v1/models");
  } catch {
    say("lost", "the server does not answer; trying again");
    return;
  }
  if (answer.status === 401 || answer.status === 403) {
    showLogin();
    return;
  }
  if (!answer.ok) {
    say("lost", (await answer.json()).detail);
    return;
  }
  const report = await answer.json();
  known = report.models;
  showAlarm("quarantine", "quarantined", report.quarantined.map((model) => `${model.name}: ${model.reason}`));
  const ready = await ask("/ready");
  if (ready.ok) showAlarm("incidents", "happened", (await ready.json()).incidents);
  at("leave").hidden = sessionStorage.getItem("key") === null;
  at("login").hidden = true;
  at("board").hidden = false;
  listModels(known);
  if (!known.some((model) => model.name === chosen)) choose(known[0]?.name ?? null);
  showLearner();
}

function showAlarm(box, list, lines) {
  const text = lines.join("\n");
  if (at(list).dataset.text === text) return; // it is said once, also by a screen reader
  at(list).dataset.text = text;
  at(box).hidden = lines.length === 0;
  at(list).replaceChildren(...lines.map((line) => cell("li", line)));
}

function showLearner() {
  const shown = known.find((model) => model.name === chosen);
  if (!shown) return;
  const { options, classes } = shown;
  const among = options.answers === "open" ? "open answers" : options.candidates ? "among candidates" : `${classes.length} ${classes.length === 1 ? "class" : "classes"}`;
  at("learner").textContent = `${options.learner}, ${options.kind}, ${among}`;
}

function listModels(models) {
  const none = models.length === 0 && at("quarantine").hidden;
  at("no-models").hidden = !none;
  at("board").classList.toggle("empty", none);
  const list = at("models");
  const names = models.map((model) => model.name).join("\n");
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    const focused = document.activeElement?.dataset.name;
    list.replaceChildren(...models.map((model) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.name = model.name;
      button.append(model.name, document.createElement("span"));
      button.addEventListener("click", () => choose(model.name));
      item.append(button);
      return item;
    }));
    if (focused !== undefined) buttonOf(focused)?.focus();
  }
  for (const model of models) {
    buttonOf(model.name).setAttribute("aria-current", String(model.name === chosen));
    if (model.name !== chosen || reached.model === null) showCount(model.name, model);
  }
}

const buttonOf = (name) => at("models").querySelector(`button[data-name="${CSS.escape(name)}"]`);

function showCount(name, { mistakes, trials, state }) {
  const told = state === "compiling" ? "compiling" : trials === 0 ? "no trials yet" : `${whole.format(mistakes)} of ${whole.format(trials)} wrong`;
  buttonOf(name).querySelector("span").textContent = told;
}

function choose(name) {
  chosen = name;
  forget();
  at("model").hidden = name === null;
  for (const button of at("models").querySelectorAll("button")) {
    button.setAttribute("aria-current", String(button.dataset.name === name));
  }
  if (name === null) {
    say("live", "connected");
    return;
  }
  at("model-title").textContent = name;
  showLearner();
  poll();
}

function forget() {
  data = [[], [], [], []];
  reached = { model: null, trials: 0 };
  speed = null;
  plot?.destroy();
  plot = null;
  bound = null;
  for (const id of ["rows", "weights", "errors"]) at(id).replaceChildren();
  for (const figure of at("figures").querySelectorAll("dd")) figure.textContent = "–";
  at("curve-words").textContent = "";
  at("curve").hidden = true;
}

// -- news of the model --------------------------------------------------------------------------------------

function ask(path) {
  const key = sessionStorage.getItem("key"); // of this tab alone, until it is closed
  return fetch(path, key === null ? {} : { headers: { Authorization: `Bearer ${key}` } });
}

async function poll() {
  const name = chosen;
  if (name === null) return;
  let answer;
  try {
    answer = await ask(`/v1/models/${encodeURIComponent(name)}/news?after=${reached.trials}`);
  } catch {
    say("lost", "the connection is lost; trying again");
    return;
  }
  if (name !== chosen) return; // another model was chosen meanwhile
  if (answer.status === 401 || answer.status === 403) showLogin();
  else if (!answer.ok) say("lost", (await answer.json()).detail);
  else {
    const news = await answer.json();
    if (name !== chosen) return;
    say("live", "live");
    take(news);
  }
}

async function keepPolling() {
  await poll();
  setTimeout(keepPolling, 1000 * POLL_SECONDS);
}

function take(news) {
  if (news.model !== reached.model || news.after !== reached.trials) {
    const keeps = news.model === reached.model && news.after < reached.trials && news.trials >= reached.trials;
    if (keeps) news.points = news.points.filter((point) => point[0] > reached.trials);
    else if (reached.model !== null || news.after !== 0) data = [[], [], [], []];
  }
  reached = { model: news.model, trials: news.trials };
  for (const point of news.points) point.forEach((value, i) => data[i].push(value));
  bound = news.bound;
  thin();
  showCount(chosen, news);
  showFigures(news);
  showCurve();
  showWeights(news.weights);
  showErrors(news.errors);
}

function thin() {
  if (data[0].length <= MOST_POINTS) return;
  const last = data[0].length - 1;
  data = data.map((column) => column.filter((_, i) => i % 2 === last % 2));
}

// -- what is shown ----------------------------------------------------------------------------------------

function say(state, words) {
  const line = at("state");
  if (line.dataset.state === state && line.textContent === words) return;
  line.dataset.state = state;
  line.textContent = words;
}

function showFigures(news) {
  at("trials").textContent = whole.format(news.trials);
  at("mistakes").textContent = whole.format(news.mistakes);
  at("error").textContent = news.trials ? `${(100 * news.mistakes / news.trials).toFixed(1)} %` : "–";
  at("pending").textContent = whole.format(news.pending);
  if (speed === null || news.trials < speed.trials) speed = { time: performance.now(), trials: news.trials };
  at("p50").textContent = milliseconds(news.latency?.p50);
  at("p99").textContent = milliseconds(news.latency?.p99);
}

function showRate() {
  if (speed === null) return;
  const now = performance.now();
  at("rate").textContent = whole.format(Math.round(1000 * (reached.trials - speed.trials) / (now - speed.time)));
  speed = { time: now, trials: reached.trials };
}

const milliseconds = (seconds) => seconds === undefined ? "–" : `${(1000 * seconds).toFixed(1)} ms`;

function showCurve() {
  const last = data[0].length - 1;
  at("curve").hidden = last < 0;
  if (last < 0) {
    at("curve-words").textContent = "No labelled trial yet.";
    return;
  }
  const [trials, served, plurality, best] = data.map((column) => column[last]);
  const limit = bound === null ? "" : `, the bound ${whole.format(Math.floor(boundAt(best)))}`;
  const others = plurality === null ? "" : `; plurality ${whole.format(plurality)}, the best voter ${whole.format(best)}${limit}`;
  at("curve-words").textContent = `After ${whole.format(trials)} trials: ${whole.format(served)} mistakes served${others}.`;
  const series = plurality === null ? data.slice(0, 2) : [...data];
  if (bound !== null) series.push(data[3].map(boundAt));
  if (plot !== null && plot.series.length !== series.length) {
    plot.destroy();
    plot = null;
  }
  if (plot === null) plot = draw(series);
  else plot.setData(series);
  if (at("rows").closest("details").open) showRows();
}

const boundAt = (best) => best === null ? null : bound.constant + bound.slope * best;

function draw(series) {
  const lines = [["served", "--served", []], ["plurality", "--plurality", [6, 4]], ["best voter", "--best", [2, 3]],
    ["bound", "--faint", [10, 6]]];
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const options = {
    ...size(),
    scales: { x: { time: false } },
    legend: { live: false },
    series: [{ label: "trials" }, ...lines.slice(0, series.length - 1).map(([label, name, dash]) => (
      { label, stroke: colour(name), width: 2, dash, points: { show: false } }))],
    axes: [{ ...axis, size: 36, incrs: STEPS }, { ...axis, size: 64, incrs: STEPS }],
  };
  return new uPlot(options, series, at("curve"));
}

const STEPS = Array.from({ length: 14 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat(); // whole ones

function size() {
  const box = at("curve").getBoundingClientRect();
  return { width: Math.max(200, box.width - 18), height: 260 };
}

function showRows() {
  const step = Math.max(1, Math.ceil(data[0].length / 40));
  const voted = data[2].at(-1) !== null;
  [...at("columns").children].forEach((head, i) => { head.hidden = i > 1 && !voted; });
  const rows = [];
  for (let i = data[0].length - 1; i >= 0; i -= step) {
    const row = document.createElement("tr");
    for (const column of voted ? data : data.slice(0, 2)) row.append(cell("td", column[i] === null ? "–" : whole.format(column[i])));
    rows.push(row);
  }
  at("rows").replaceChildren(...rows);
}

const LONG = 80; // letters of a name that are shown

function showWeights(weights) {
  const rows = [];
  for (const kind of ["voters", "raters", "attributes", "thresholds"]) {
    for (const { name, weight, label } of weights[kind]) {
      rows.push([label === undefined ? name : `${name} → ${label}`, weight, kind]);
    }
  }
  rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const shown = rows.slice(0, 20);
  const most = Math.max(...shown.map((row) => Math.abs(row[1])), Number.MIN_VALUE);
  const signed = shown.some((row) => row[1] < 0);
  at("no-weights").hidden = shown.length > 0;
  at("weights").replaceChildren(...shown.map(([name, weight, kind]) => {
    const row = document.createElement("tr");
    const words = kind === "thresholds" ? `threshold → ${name}` : name;
    const head = cell("th", words.length > LONG ? `${words.slice(0, LONG - 1)}…` : words);
    head.scope = "row";
    head.title = words;
    const bar = document.createElement("td");
    bar.append(barOf(weight / most, signed));
    row.append(head, bar, cell("td", weight.toPrecision(3).replace("-", "−")));
    return row;
  }));
}

function barOf(share, signed) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", signed ? "-100 0 200 10" : "0 0 100 10");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("aria-hidden", "true");
  const bar = document.createElementNS(space, "rect");
  bar.setAttribute("x", String(Math.min(0, 100 * share)));
  bar.setAttribute("width", String(Math.abs(100 * share)));
  bar.setAttribute("height", "10");
  if (share < 0) bar.setAttribute("class", "minus");
  picture.append(bar);
  return picture;
}

function showErrors(errors) {
  at("no-errors").hidden = errors.length > 0;
  at("errors").replaceChildren(...errors.toReversed().map((error) => {
    const time = new Date(1000 * error.time).toLocaleTimeString();
    const often = error.count > 1 ? ` (${whole.format(error.count)} times)` : "";
    return cell("li", `${time}, ${error.operation}: ${error.status}, ${error.message}${often}`);
  }));
}

function cell(tag, words) {
  const element = document.createElement(tag);
  element.textContent = words;
  return element;
}

// -- keys -------------------------------------------------------------------------------------------------

function showLogin() {
  chosen = null;
  at("board").hidden = true;
  at("leave").hidden = true;
  if (at("login").hidden) {
    at("login").hidden = false;
    at("key").focus();
  }
  say("lost", "a key is needed");
}

at("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", at("key").value);
  at("key").value = "";
  const answer = await ask("/v1/models");
  if (!answer.ok) {
    sessionStorage.removeItem("key");
    at("login-error").textContent = (await answer.json()).detail;
    return;
  }
  at("login-error").textContent = "";
  chosen = null;
  await refresh();
});

at("leave").addEventListener("click", async () => {
  sessionStorage.removeItem("key");
  await refresh();
});

at("rows").closest("details").addEventListener("toggle", () => showCurve());
addEventListener("resize", () => plot?.setSize(size()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  plot?.destroy();
  plot = null;
  showCurve();
});
at("first").textContent = `curl -H 'Content-Type: application/json' ${location.origin}/v1/models -d '{"name": "spam", "learner": "winnow(1.1)"}'`;
refresh();
keepPolling();
setInterval(refresh, 1000 * MODELS_SECONDS);
setInterval(showRate, 1000 * RATE_SECONDS);
