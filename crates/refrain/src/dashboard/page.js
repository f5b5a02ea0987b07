"use strict";
// The dashboard. It asks for listings of the console, and shows them; it changes nothing. All that
// is shown goes into the page as text, never as markup.

const EVERY_MS = { overview: 2000, statements: 5000, pools: 5000, cache: 5000 };
const WINDOW_US = 10e6; // of rates and quantiles
const KEPT = 60; // samples of the curves
const PAGE = 100; // rows of statements at once

const $ = (id) => document.getElementById(id);

function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// ---- Words for values

const count = new Intl.NumberFormat("en");

function number(value) {
  if (Math.abs(value) >= 1e6) return (value / 1e6).toFixed(value >= 1e8 ? 0 : 1) + " M";
  if (Math.abs(value) >= 1e4) return count.format(Math.round(value));
  return count.format(Math.abs(value) < 10 ? +value.toFixed(1) : Math.round(value));
}

function time(us) {
  const size = Math.abs(us);
  if (size < 1e3) return Math.round(us) + " µs";
  if (size < 1e6) return (us / 1e3).toFixed(size < 1e4 ? 1 : 0) + " ms";
  if (size < 120e6) return (us / 1e6).toFixed(size < 10e6 ? 1 : 0) + " s";
  if (size < 7200e6) return Math.round(us / 60e6) + " min";
  if (size < 172800e6) return (us / 3600e6).toFixed(1) + " h";
  return (us / 86400e6).toFixed(1) + " d";
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return (unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
}

const NAMES = {
  cl_active: "clients", cl_waiting: "waiting", sv_active: "servers at work", sv_idle: "idle",
  sv_login: "at login", hit_ratio: "hits", addr: "address", application_name: "application",
  repeated_us: "repeated time", alone_kind: "no read", read: "is a read", query: "text",
};

function label(column) {
  return NAMES[column] || column.replace(/_(us|ms)$/, "").replaceAll("_", " ");
}

function words(column, value) {
  if (value === null || value === "") return "";
  if (/ratio$|^hit_rate$/.test(column)) return (100 * value).toFixed(1) + " %";
  if (typeof value !== "number") return String(value);
  if (/_us$/.test(column)) return time(value);
  if (/_ms$/.test(column)) return time(1000 * value);
  if (/bytes$/.test(column)) return bytes(value);
  if (/(^|_)(id|port|pid|server|client)$/.test(column)) return String(value);
  return count.format(value);
}

// ---- Tables

// Columns that are shown first, and those that are not shown.
const FIRST = ["text", "template", "database", "user", "rule", "host", "role", "reason", "calls", "uses", "seen"];
const LONG = ["text", "template", "statement", "reason", "message", "for", "advice"];
const HIDDEN = {
  pools: ["cl_active_cancel_req", "cl_waiting_cancel_req", "sv_active_cancel", "sv_being_canceled",
    "sv_used", "maxwait", "load_balance_hosts"],
  statements: ["parameter_types", "generation"],
  servers_extended: ["core"],
  cache_rules: ["fills_outdated"],
};

function order(listing) {
  const hidden = HIDDEN[listing.name] || [];
  const places = listing.columns.map((_, place) => place);
  const rank = (place) => {
    const found = FIRST.indexOf(listing.columns[place].name);
    return found < 0 ? FIRST.length : found;
  };
  const shown = places.filter((place) => !hidden.includes(listing.columns[place].name));
  return shown.sort((a, b) => rank(a) - rank(b) || a - b);
}

// Shows a listing in a place. `options.sort` is the sorting that the rows have, `options.sorted`
// hears of another one, and `options.cell` may make the content of a cell.
function show(place, listing, caption, none, options = {}) {
  if (listing.rows.length === 0) {
    place.replaceChildren(element("p", { className: "none" }, none));
    return;
  }
  const columns = order(listing);
  const key = columns.map((column) => listing.columns[column].name).join();
  let table = place.querySelector("table");
  if (!table || table.dataset.key !== key) {
    table = element("table", {}, element("caption", { className: "skip" }, caption),
      element("thead", {}, head(listing, columns, options)), element("tbody"));
    table.dataset.key = key;
    const scroll = { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption };
    place.replaceChildren(element("div", scroll, table));
  }
  for (const cell of table.tHead.rows[0].cells) {
    const { column } = cell.dataset;
    const sorted = (options.sort || "").replace("-", "") === column;
    if (!sorted) cell.removeAttribute("aria-sort");
    else cell.setAttribute("aria-sort", options.sort[0] === "-" ? "descending" : "ascending");
  }
  const held = document.activeElement && document.activeElement.dataset.row;
  table.tBodies[0].replaceChildren(...listing.rows.map((row) => line(listing, columns, row, options)));
  if (held) table.querySelector(`[data-row="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

function head(listing, columns, options) {
  const cells = columns.map((place) => {
    const { name, type } = listing.columns[place];
    const title = options.sorted
      ? element("button", { type: "button", onclick: () => options.sorted(name, type) }, label(name))
      : label(name);
    const cell = element("th", { scope: "col", className: type, title: name }, title);
    cell.dataset.column = name;
    return cell;
  });
  return element("tr", {}, ...cells);
}

function line(listing, columns, row, options) {
  const of = (name) => row[listing.columns.findIndex((column) => column.name === name)];
  const cells = columns.map((place) => {
    const { name, type } = listing.columns[place];
    const long = LONG.includes(name) ? " long" : "";
    const made = options.cell && options.cell(name, row[place], of);
    return element("td", { className: type + long }, made || words(name, row[place]));
  });
  return element("tr", { className: options.chosen && options.chosen(of) ? "chosen" : "" }, ...cells);
}

// ---- Asking

let waiting = 0; // the timer of the next look
let asking = null; // what stops the question under way

async function ask(path, parameters, signal) {
  const query = new URLSearchParams(parameters);
  const answer = await fetch(`api/1/${path}?${query}`, { cache: "no-store", signal });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  if (said.version !== 1) throw new Error("the program is another one by now: reload the page");
  return said;
}

async function listings(parameters, signal) {
  const said = await ask("show", parameters, signal);
  const named = Object.entries(said.listings);
  return Object.fromEntries(named.map(([name, listing]) => {
    const key = name.replaceAll(" ", "_");
    return [key, { ...listing, name: key }];
  }));
}

function live(state, said) {
  $("live").className = state;
  if ($("live").textContent !== said) $("live").textContent = said;
}

// Looks once, and again after a while for as long as somebody can see it.
async function look() {
  clearTimeout(waiting);
  if (asking) asking.abort();
  if (document.visibilityState === "hidden") return live("", "not looking");
  const section = here();
  const stop = new AbortController();
  asking = stop;
  try {
    const { parameters, shown } = SECTIONS[section];
    if (parameters) shown(await listings(parameters(), stop.signal));
    live("on", "live");
  } catch (error) {
    if (error.name === "AbortError") return;
    live("off", "no answer");
  }
  if (asking === stop && EVERY_MS[section]) waiting = setTimeout(look, EVERY_MS[section]);
}

// ---- Overview

const samples = []; // figures and histograms, the newest last
const curves = { xacts: [], p99: [] };

function pairs(listing) {
  const value = (text) => (text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text);
  return Object.fromEntries(listing.rows.map(([key, text]) => [key, value(text)]));
}

function before(now) {
  const far = samples.findLast((sample) => now.now_us - sample.figures.now_us >= WINDOW_US);
  return far || samples[0];
}

// Returns a quantile of the times between two samples, in microseconds. Within a bucket the times
// are taken to be spread evenly.
function quantile(times, older, kind, share) {
  const was = new Map(older.filter(([name]) => name === kind).map(([, bound, count]) => [bound, count]));
  const grown = times.filter(([name]) => name === kind)
    .map(([, bound, count, from]) => [from, bound, count - (was.get(bound) || 0)]);
  const all = grown.reduce((sum, [, , count]) => sum + count, 0);
  let rest = share * all;
  for (const [from, bound, count] of grown) {
    if (count > 0 && rest <= count) return from + (bound - from) * (rest / count);
    rest -= count;
  }
  return null;
}

function curve(values) {
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const most = Math.max(...values, 1e-9);
  const x = (place) => ((100 * (place + KEPT - values.length)) / (KEPT - 1)).toFixed(1);
  const points = values.map((value, place) => [x(place), (29 - (27 * value) / most).toFixed(1)]);
  const drawn = svg("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" });
  const line = points.map((point) => point.join()).join(" ");
  if (points.length > 1) {
    drawn.append(svg("polygon", { points: `${points[0][0]},30 ${line} 100,30` }), svg("polyline", { points: line }));
  }
  return drawn;
}

function tiles(place, rows) {
  const tile = ([name, figure, unit, under, drawn]) => element("div", { className: "tile" },
    element("dt", {}, name),
    element("dd", { className: "figure" }, figure, element("small", {}, unit ? " " + unit : "")),
    element("dd", { className: "under" }, under),
    ...(drawn ? [element("dd", {}, drawn)] : []));
  place.replaceChildren(...rows.map(tile));
}

function facts(place, rows) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== "");
  place.replaceChildren(...shown.flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, String(value)),
  ]));
}

function overview({ overview: listing, times, waits, warnings }) {
  const now = pairs(listing);
  const restarted = samples.length > 0 && now.now_us < samples.at(-1).figures.now_us;
  if (restarted) samples.length = 0;
  const older = before(now) || { figures: now, times: times.rows };
  samples.push({ figures: now, times: times.rows });
  if (samples.length > KEPT) samples.shift();
  const seconds = (now.now_us - older.figures.now_us) / 1e6;
  const rate = (...keys) => (seconds > 0
    ? keys.reduce((sum, key) => sum + (now[key] - older.figures[key]), 0) / seconds : null);
  const sum = (...keys) => keys.reduce((all, key) => all + now[key], 0);
  const said = (value) => (value === null ? "–" : number(value));
  // Without figures of statements (stat_statements_max = 0) there are the coarse ones of queries.
  const kind = times.rows.some(([name]) => name === "command") ? "command" : "query";
  const of = (share) => quantile(times.rows, older.times, kind, share);
  const [p50, p99] = [of(0.5), of(0.99)];
  if (seconds > 0) {
    curves.xacts.push(rate("xacts"));
    curves.p99.push(p99 || 0);
  }
  Object.values(curves).forEach((values) => values.length > KEPT && values.shift());

  $("version").textContent = now.version;
  banner(now, waits);
  show($("waits-table"), waits, "Pools whose clients wait", "");
  const servers = sum("servers_active", "servers_idle", "servers_login");
  tiles($("now"), [
    ["Transactions", said(rate("xacts")), "a second", `${count.format(now.xacts)} since the start`, curve(curves.xacts)],
    ["Latency p99", p99 === null ? "–" : time(p99), "", p50 === null ? "no query of late" : `p50 ${time(p50)}, of ${kind === "query" ? "queries" : "commands"}`, curve(curves.p99)],
    ["Clients", count.format(now.clients), "", `${now.clients_waiting} wait; at most ${count.format(now.clients_max)} (max_client_conn)`],
    ["Servers", count.format(servers), "", `${now.servers_active} at work, ${now.servers_idle} idle`],
    ["Servers' time", rate("query_time_us") === null ? "–" : (rate("query_time_us") / 1e6).toFixed(2), "s a second", `${time(now.query_time_us)} since the start`],
    ["Errors", said(rate("server_errors")), "a second", `${count.format(now.server_errors)} of statements since the start`],
  ]);
  const saved = rate("cache_saved_us", "auto_saved_us");
  const parses = ["parses_answered", "auto_hits", "auto_unnamed"];
  const total = (...keys) => `${count.format(sum(...keys))} since the start`;
  tiles($("saved"), [
    ["Servers' time saved", saved === null ? "–" : (saved / 1e6).toFixed(saved < 1e6 ? 3 : 2), "s a second", `${time(sum("cache_saved_us", "auto_saved_us"))} since the start`],
    ["Reads answered from memory", said(rate("cache_hits")), "a second", total("cache_hits")],
    ["Round trips not made", said(rate("cache_hits", "syncs_answered")), "a second", total("cache_hits", "syncs_answered")],
    ["Parses that no server did", said(rate(...parses)), "a second", total(...parses)],
    ["Queries run as prepared", said(rate("auto_hits", "auto_unnamed")), "a second", total("auto_hits", "auto_unnamed")],
    ["Requests on shared servers", said(rate("requests_shared")), "a second", total("requests_shared")],
    ["Servers not needed", count.format(Math.max(0, now.clients - servers)), "", `${count.format(now.clients)} clients on ${count.format(servers)} servers`],
  ]);
  facts($("program"), [
    ["Running for", time(1e6 * now.uptime_seconds)],
    ["Configuration", now.configuration],
    ["Last reload", now.last_reload ? `${now.last_reload}: ${now.last_reload_outcome}` : "none since the start"],
    ["Pools", `${now.pools}, ${now.pools_at_limit} at their limit`],
    ["Shared statements", count.format(now.statements)],
    ["Worker threads", now.worker_threads],
  ]);
  show($("warnings"), warnings, "Warnings", "The log has no warning since the start.");
}

function banner(now, waits) {
  const none = now.clients_waiting === 0;
  const first = waits.rows[0];
  const told = first && `${now.clients_waiting} wait for a server, the first for `
    + `${time(now.longest_wait_us)}. ${first[0]}/${first[1]}: ${first[4]}.`;
  let said = none || !first ? "No client waits for a server." : told;
  if (now.draining) said = "The program shuts down. " + said;
  else if (now.paused) said = "All databases are paused. " + said;
  const good = none && !now.draining && !now.paused;
  $("waits").className = good ? "banner good" : "banner bad";
  if ($("waits").textContent !== said) $("waits").textContent = said;
}

// ---- Statements

const KINDS = {
  statements: {
    name: "Prepared", sort: "-uses", none: "No client has prepared a statement yet.",
    note: "Statements that clients prepare, each once for all of them. Literals are left out. A text leads to the reasons.",
  },
  autoprepare: {
    name: "Queries", sort: "-seen", none: "Autoprepare is off, or has seen no query yet.",
    note: "Queries that differ only in their literals, as autoprepare sees them, with the time that it saved.",
  },
  stmt_cache_texts: {
    name: "SQLite", sort: "-run_us", none: "No SQLite database has run a statement yet.",
    note: "Statements that the embedded database keeps compiled.",
  },
};
const statements = { kind: "statements", sort: "-uses", offset: 0, chosen: null, picked: false };

function kind(name) {
  Object.assign(statements, { kind: name, sort: KINDS[name].sort, offset: 0, chosen: null });
  $("why").hidden = true;
  $("statement-table").replaceChildren();
  look();
}

function sortedBy(name, type) {
  const down = type === "number" ? statements.sort !== "-" + name : statements.sort === name;
  statements.sort = (down ? "-" : "") + name;
  statements.offset = 0;
  look();
}

function statementList(all) {
  const listing = all[statements.kind];
  const buttons = Object.keys(KINDS).map((name) => element("button", {
    type: "button", ariaPressed: String(name === statements.kind),
    onclick: () => { statements.picked = true; kind(name); },
  }, KINDS[name].name));
  if ($("kinds").children.length === 0) $("kinds").append(...buttons);
  [...$("kinds").children].forEach((button, place) => {
    button.ariaPressed = String(Object.keys(KINDS)[place] === statements.kind);
  });
  $("kind-note").textContent = KINDS[statements.kind].note;
  show($("statement-table"), listing, "List of statements", KINDS[statements.kind].none, {
    sort: statements.sort, sorted: sortedBy, cell: statementCell,
    chosen: (of) => statements.chosen !== null && keyOf(of) === statements.chosen,
  });
  pager(listing);
  // Somebody who has the embedded database alone often has no statement in the first list but those
  // that are counted together, which have no number.
  const [other, place] = [all.stmt_cache_texts, listing.columns.findIndex(({ name }) => name === "id")];
  const none = listing.rows.every((row) => row[place] === 0) && $("find").value === "";
  if (!statements.picked && none && other && other.found > 0) kind("stmt_cache_texts");
}

function keyOf(of) {
  return statements.kind === "statements" ? String(of("id")) : of("text") || of("template");
}

function statementCell(name, value, of) {
  if (name !== "text" && name !== "template") return null;
  // The row of the statements that are not known has no number, and no reasons.
  const unknown = statements.kind === "statements" && of("id") === 0;
  if (unknown || statements.kind === "stmt_cache_texts") return element("span", { className: "sql" }, value);
  const key = keyOf(of);
  const button = element("button", { type: "button", className: "sql", onclick: () => why(key, value) }, value);
  button.dataset.row = key;
  return button;
}

function pager({ found, offset, rows }) {
  const move = (by) => { statements.offset = Math.max(0, offset + by); look(); };
  const button = (name, by, on) => element("button", { type: "button", disabled: !on, onclick: () => move(by) }, name);
  const last = offset + rows.length;
  const place = found > 0 ? `${offset + 1} to ${last} of ${count.format(found)}` : "";
  $("pager").hidden = found <= PAGE;
  $("pager").replaceChildren(button("Before", -PAGE, offset > 0), element("span", {}, place), button("After", PAGE, last < found));
}

async function why(key, text) {
  statements.chosen = key;
  const panel = $("why");
  const parameters = { statements: { statement: key }, autoprepare: { template: text } }[statements.kind];
  const close = () => { panel.hidden = true; statements.chosen = null; };
  const title = element("div", { className: "head" }, element("h2", {}, "Reasons"),
    element("button", { type: "button", onclick: close }, "Close"));
  const shown = await explained(parameters);
  panel.replaceChildren(title, element("pre", {}, text), shown);
  panel.hidden = false;
  panel.focus();
  panel.scrollIntoView({ block: "nearest" });
}

const SUBJECTS = { prepared: "Prepared", shared: "Runs beside others on a server", cached: "Answered from memory" };

async function explained(parameters) {
  try {
    const { reasons } = await ask("explain", parameters);
    if (reasons.rows.length > 0) return element("div", {}, ...reasons.rows.map(reason));
    const none = "No pool is open that could run it. A client's first login opens one.";
    return element("p", { className: "none" }, none);
  } catch (error) {
    return element("p", { className: "none" }, error.message);
  }
}

function reason([database, user, subject, answer, because, rule]) {
  const parts = [element("p", {},
    `${SUBJECTS[subject] || subject} (${database}/${user}): `,
    element("span", { className: "answer " + answer }, answer),
    because ? ". " + because[0].toUpperCase() + because.slice(1) + "." : "")];
  if (rule) parts.push(element("pre", {}, rule.trimEnd()), copyButton("Copy the rule", rule));
  return element("div", { className: "reason" }, ...parts);
}

function copyButton(name, text) {
  return element("button", { type: "button", onclick: () => copy(text) }, name);
}

async function copy(text) {
  let said = "Copied. It goes into the configuration file, and RELOAD puts it into force.";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    said = "The browser does not let the page copy: select the lines.";
  }
  $("said").textContent = said;
  setTimeout(() => { $("said").textContent = ""; }, 6000);
}

// ---- Pools, cache, explain

function pools(all) {
  show($("pool-table"), all.pools, "List of pools", "No client has come yet: a pool opens with the first.");
  show($("pin-table"), all.pins, "Clients that keep a server", "No client keeps a server.");
  show($("host-table"), all.hosts, "Hosts", "No pool of a database server is open: a pool opens with its first client.");
  show($("server-table"), all.servers_extended, "Servers", "No server is connected.");
  show($("sharing-table"), all.sharing, "Shared servers", "No pool is open.");
}

function cache(all) {
  const now = pairs(all.cache_memory);
  const column = (name) => all.cache_rules.columns.findIndex((it) => it.name === name);
  const sum = (name) => all.cache_rules.rows.reduce((total, row) => total + row[column(name)], 0);
  const [hits, misses] = [sum("hits"), sum("misses")];
  tiles($("memory"), [
    ["Hits", hits + misses > 0 ? ((100 * hits) / (hits + misses)).toFixed(1) : "–", "%", `${count.format(hits)} of ${count.format(hits + misses)} requests with a rule`],
    ["Memory", bytes(now.bytes), "", `of at most ${bytes(now.limit_bytes)}`],
    ["Replies", count.format(now.entries), "", `${count.format(now.evicted)} had to make room`],
    ["Servers' time saved", time(sum("saved_us")), "", "since the start"],
  ]);
  show($("rule-table"), all.cache_rules, "Rules of the cache", "There is no rule, so nothing is kept. A statement's reasons have one to copy.");
  show($("advice-table"), all.cache_advice, "Reads that a rule would spare", "No read that could be kept was repeated within a second so far. One second in thirty is looked at.");
  show($("bypass-table"), all.cache_bypass, "Requests past the cache", "No request went past a rule.");
}

const shows = (...names) => names.map((name) => ["show", name]);

const SECTIONS = {
  overview: { parameters: () => shows("overview", "times", "waits", "warnings"), shown: overview },
  statements: {
    parameters: () => [
      ...shows(statements.kind), ["sort", statements.sort], ["find", $("find").value],
      ["offset", statements.offset], ["limit", PAGE],
      ...(statements.kind === "statements" && !statements.picked ? [["show", "stmt_cache_texts"], ["limit", 1]] : []),
    ],
    shown: statementList,
  },
  pools: { parameters: () => shows("pools", "pins", "hosts", "servers_extended", "sharing"), shown: pools },
  cache: { parameters: () => shows("cache memory", "cache rules", "cache advice", "cache bypass"), shown: cache },
  explain: {},
};

function here() {
  const name = location.hash.slice(1);
  return name in SECTIONS ? name : "overview";
}

function navigate() {
  if (location.hash === "#main") return;
  const section = here();
  for (const name of Object.keys(SECTIONS)) $("section-" + name).hidden = name !== section;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#" + section) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = section[0].toUpperCase() + section.slice(1) + " – Refrain";
  look();
}

// ---- Light and dark

const darkSystem = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const chosen = localStorage.getItem("theme");
  const dark = chosen ? chosen === "dark" : darkSystem.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
}

$("theme").onclick = () => {
  const dark = document.documentElement.dataset.theme === "dark";
  localStorage.setItem("theme", dark ? "light" : "dark");
  theme();
};
$("find").oninput = () => { statements.offset = 0; look(); };
$("explain").onsubmit = async (event) => {
  event.preventDefault();
  $("explained").replaceChildren(await explained({ sql: $("sql").value }));
};
darkSystem.onchange = theme;
document.onvisibilitychange = look;
window.onhashchange = navigate;
theme();
navigate();
