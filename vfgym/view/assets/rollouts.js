// The list of rollouts: filtered, sorted, searched.

const PAGE_SIZE = 50;
const NO_FILTER = { text: "", run: "", ended: "", trouble: "", least: "", most: "" };
const list = { ...NO_FILTER, sort: "task", page: 0 };
const SORTS = { // what each order looks at, and the words for both of its directions
  task: [(each) => each.row.example, "Task", "Task, last first"],
  reward: [(each) => numeric(rewardOf(each.row)), "Lowest reward", "Highest reward"],
  turns: [(each) => each.row.turns, "Fewest turns", "Most turns"],
  tokens: [(each) => each.row.tokens, "Fewest tokens", "Most tokens"],
  seconds: [(each) => each.row.seconds, "Shortest time", "Longest time"],
};

// What a rollout counts with; that of one which failed and has no number to count with is not known.
const rewardOf = (row) => row.counted ?? (row.failure ? null : row.reward);

let listed = []; // every rollout of the page: { run, row }, in the order of the files
function readRows() {
  for (const run of data.runs) for (const concern of run.concerns) for (const at of concern.rollouts) (run.rows[at].troubles ??= []).push(concern.title);
  listed = data.runs.flatMap((run, index) => run.rows.map((row) => ({ run: index, row })));
  texts.length = 0;
}

const texts = [];
const textOf = (message) => (texts[message] ??= searchable(data.messages[message]));
function searchable(value) { // texts as they are read, not as JSON writes them
  const found = [];
  const walk = (item) => {
    if (typeof item === "string") found.push(item);
    else if (Array.isArray(item)) item.forEach(walk);
    else if (item && typeof item === "object") Object.entries(item).forEach(([name, each]) => { if (name !== "role") walk(each); });
    else if (typeof item === "number") found.push(String(item));
  };
  walk(value);
  return found.join("\n").toLowerCase();
}
function matching() {
  const wanted = list.text.trim().toLowerCase();
  const hits = wanted ? data.messages.map((_, index) => textOf(index).includes(wanted)) : null;
  const says = ({ row }) => [...row.prompt, ...row.completion, ...(row.steps || []).flatMap((step) => [...(step.prompt || []), ...(step.completion || [])])].some((message) => hits[message])
    || searchable([row.failure, row.rest, row.metrics_errors, row.cleanup_errors, row.ended, (row.tools || []).map((tool) => data.tools[tool])]).includes(wanted);
  const within = (reward) => (list.least === "" || reward >= Number(list.least)) && (list.most === "" || reward <= Number(list.most));
  const isTroubled = ({ row }) => list.trouble === "any" ? row.troubles : list.trouble === "none" ? !row.troubles : row.troubles?.includes(list.trouble);
  const rows = listed.filter((each) => (!list.run || String(each.run) === list.run) && (!list.ended || each.row.ended === list.ended)
    && (!list.trouble || isTroubled(each)) && within(numeric(each.row.counted) ?? NaN) && (!wanted || says(each)));
  const [name, isReversed] = list.sort.startsWith("-") ? [list.sort.slice(1), true] : [list.sort, false];
  const key = (each) => { const value = SORTS[name][0](each); return Number.isFinite(value) ? value : null; };
  return rows.sort((a, b) => { // rows without a number stand last, whatever the direction
    const [left, right] = [key(a), key(b)];
    if (left === null || right === null) return (left === null) - (right === null);
    return isReversed ? right - left : left - right;
  });
}
function filterBy(change) {
  Object.assign(list, NO_FILTER, { page: 0 }, change);
  show();
  document.getElementById("rollouts").scrollIntoView();
  document.getElementById("rollouts").focus({ preventScroll: true });
}
function rolloutList(where) {
  if (where.run !== null) list.run = String(where.run);
  const rows = h("div", {});
  const render = () => put(rows, listedRows(render));
  const changed = () => { list.page = 0; render(); say(document.getElementById("count").textContent); };
  const keep = (name) => (event) => { list[name] = event.target.value; changed(); };
  const endings = [...new Set(data.runs.flatMap((run) => Object.keys(run.endings)))];
  const troubles = [...new Set(data.runs.flatMap((run) => run.concerns.map((concern) => concern.title)))];
  const choice = (id, label, options) => field(label, select({ id: `by-${id}`, onchange: keep(id) }, options, list[id]));
  const input = (id, label, properties) => field(label, h("input", { id: `by-${id}`, value: list[id], oninput: keep(id), ...properties }));
  render();
  return h("section", { "aria-labelledby": "rollouts" }, h("h2", { id: "rollouts", tabindex: "-1" }, "Rollouts"),
    h("details", { class: "filters", open: innerWidth > 760 || Object.keys(NO_FILTER).some((name) => list[name]) }, h("summary", {}, "Filter and sort"), h("form", { role: "search", "aria-label": "Filter the rollouts", onsubmit: (event) => event.preventDefault() },
      input("text", "Text in them", { type: "search" }),
      data.runs.length > 1 && choice("run", "Run", [["", "all runs"], ...data.runs.map((run, index) => [String(index), nameOf(run)])]),
      choice("ended", "Ended", [["", "in any way"], ...endings.map((name) => [name, name])]),
      troubles.length > 0 && choice("trouble", "Trouble", [["", "any or none"], ["any", "any"], ["none", "none"], ...troubles.map((title) => [title, title])]),
      input("least", "Reward from", { type: "number", step: "any" }), input("most", "Reward to", { type: "number", step: "any" }),
      choice("sort", "Sort by", Object.entries(SORTS).flatMap(([name, [, up, down]]) => [[name, up], [`-${name}`, down]])),
      button("Clear", { id: "clear", onclick: () => filterBy({}) }))),
    rows);
}
function listedRows(render) {
  const rows = matching();
  const last = Math.max(0, Math.ceil(rows.length / PAGE_SIZE) - 1);
  list.page = Math.min(list.page, last);
  const go = (page) => () => { list.page = page; render(); say(`Page ${page + 1} of ${last + 1}`); document.getElementById("count").scrollIntoView(); };
  const shown = isPrinting ? rows : rows.slice(list.page * PAGE_SIZE, (list.page + 1) * PAGE_SIZE);
  const columns = [data.runs.length > 1 && "run", rows.some((each) => each.row.tokens !== null) && "tokens"].filter(Boolean);
  const sorted = (name, text) => button([text, { [name]: " ↑", [`-${name}`]: " ↓" }[list.sort]], { class: "head", "aria-pressed": String(list.sort.replace("-", "") === name), "aria-label": `Sort by ${text}`, onclick: () => {
    list.sort = list.sort === name ? `-${name}` : name;
    document.getElementById("by-sort").value = list.sort;
    render();
  } });
  return [
    h("p", { id: "count", class: "soft" }, `${number(rows.length)} of ${count(listed.length, "rollout")}`),
    rows.length ? h("div", { class: `rollouts ${columns.map((name) => `with-${name}`).join(" ")}` },
      h("div", { class: "heads", role: "group", "aria-label": "Order of the rollouts" }, sorted("task", "task/rollout"), sorted("reward", "reward"), columns.includes("run") && h("span", {}, "run"), h("span", {}, "ended"), sorted("turns", "turns"), columns.includes("tokens") && sorted("tokens", "tokens"), h("span", {}, "first words")),
      h("ul", {}, shown.map((each) => h("li", {}, rolloutLink(each, columns))))) : h("p", {}, "None matches: clear a filter."),
    last > 0 && !isPrinting && h("div", { class: "bar no-print", role: "group", "aria-label": "Pages of rollouts" }, button("Previous page", { disabled: list.page === 0, onclick: go(list.page - 1) }),
      h("span", {}, `Page ${list.page + 1} of ${last + 1}`), button("Next page", { disabled: list.page === last, onclick: go(list.page + 1) }))];
}
function rolloutLink({ run, row }, columns) {
  return h("a", { href: toRollout(run, row) },
    h("span", { class: "id" }, hidden("task "), `${row.example}/${row.rollout}`),
    h("span", { class: "reward" }, hidden("reward "), number(rewardOf(row))),
    columns.includes("run") && h("span", { class: "run" }, nameOf(data.runs[run])),
    h("span", { class: row.failure ? "ended bad" : "ended" }, row.failure ? `failed: ${row.failure[0]}` : row.ended),
    h("span", { class: "turns" }, number(row.turns), h("span", { class: "unit" }, row.turns === 1 ? " turn" : " turns")),
    columns.includes("tokens") && h("span", { class: row.tokens === null ? "tokens unknown" : "tokens" }, number(row.tokens, 0), h("span", { class: "unit" }, " tokens")),
    h("span", { class: "words" }, row.asked && h("span", { class: "soft" }, row.asked, " → "), row.failure ? row.failure[1].slice(0, 160) : row.said));
}
