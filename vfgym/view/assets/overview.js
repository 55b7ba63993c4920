// What the runs say together: what was found, what to worry about, and all numbers.

function overview(where) {
  const environments = data.environments.map((each) => each.env);
  return [
    h("h1", { id: "title", tabindex: "-1" }, environments.length > 1 ? count(environments.length, "environment") : environments[0], data.runs.length > 1 && h("span", { class: "soft" }, ` · ${data.runs.length} runs`)),
    where.unknown && h("p", { class: "bad", role: "alert" }, where.unknown),
    h("section", { "aria-labelledby": "found" }, h("h2", { id: "found" }, "What was found"), data.environments.map(found)),
    h("section", { "aria-labelledby": "worries" }, h("h2", { id: "worries" }, "What to worry about"), worries()),
    rolloutList(where),
  ];
}
// What a run is called among all of the page.
const nameOf = (run) => (data.environments.length > 1 ? `${run.label} · ${run.env}` : run.label);
function found(environment) {
  const runs = environment.runs.map((index) => data.runs[index]);
  const { scales, pairs: beside, headlines } = environment;
  const inOrder = headlines.map((line, index) => [line, index]).sort(([, a], [, b]) => Boolean(beside[b]?.distinguishable) - Boolean(beside[a]?.distinguishable));
  return h("div", { class: "found" }, data.environments.length > 1 && h("h3", {}, environment.env),
    h("div", { class: headlines.length > 3 ? "headlines many" : "headlines" }, inOrder.map(([line, index]) => [h("p", { class: "headline" }, line), beside[index] && verdict(beside[index], line)])),
    estimates("Mean reward with its 95 % interval over tasks", scales.mean, runs.map((run) => ({ name: run.label, estimate: run.mean, note: run.note }))),
    scales.difference && estimates(`Difference from ${runs[0].label} on the same tasks, with its 95 % interval`, scales.difference, beside.map((pair) => ({ name: data.runs[pair.b].label, estimate: pair.difference }))),
    scales.reward && h("div", { class: "histograms" }, h("p", {}, "How many rollouts earned what"), runs.map((run) => run.histogram && histogram(run, scales.reward))),
    h("div", { class: "more-of-runs" }, moreOf(environment)));
}
function verdict(pair, headline) {
  const tasks = pair.better + pair.worse + pair.equal > 0 && `. Better on ${count(pair.better, "task")}, worse on ${number(pair.worse)}, equal on ${number(pair.equal)}.`;
  return h("p", { class: "note" }, pair.verdict.startsWith(headline) ? pair.verdict.slice(headline.length + 1) : pair.verdict, tasks);
}
function moreOf(environment) {
  const runs = environment.runs.map((index) => data.runs[index]);
  return [
    folded("All numbers", () => table("Numbers of the runs", ["", ...runs.map((run) => run.label)], environment.numbers.map(([name, texts]) => [name, ...texts]))),
    folded(runs.length > 1 ? "Tasks, where the runs differ most first" : "Tasks, where least was earned first", () => tasks(environment)),
    folded("How it was run", () => runs.map((run) => [runs.length > 1 && h("h3", {}, run.label), pairs(Object.entries(run.metadata).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]))]))];
}
function tasks(environment) {
  return table("Mean rewards of the tasks", ["task", ...environment.runs.map((index) => data.runs[index].label)], environment.tasks.map((task) =>
    [h("span", { class: "id" }, task.example_id), ...environment.runs.map((index, place) => task.rollouts[place] === null ? "-"
      : h("a", { href: toRollout(index, data.runs[index].rows[task.rollouts[place]]) }, number(task.means[place]), hidden(`, task ${task.example_id}, ${data.runs[index].label}`)))]));
}
function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, h("table", {}, h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => (head ? h("th", { scope: "col" }, head) : h("td", {}))))),
    h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((each) => h("td", {}, each)))))));
}
function worries() {
  const of = (run) => (data.runs.length > 1 ? `${nameOf(run)}: ` : "");
  const troubles = data.runs.flatMap((run, index) => run.concerns.map((concern) => h("li", { class: "trouble" },
    h("div", {}, h("strong", {}, `${number(concern.rollouts.length)} of ${number(run.rows.length)}`), " ", of(run), concern.title,
      concern.message && h("p", { class: "said" }, concern.message.slice(0, 300), concern.message.length > 300 && "…")),
    button("Show", { class: "no-print", "aria-label": `Show the rollouts of ${of(run)}${concern.title}`, onclick: () => filterBy({ run: String(index), trouble: concern.title }) }))));
  const remarks = new Map(); // what is said of several runs is said once
  for (const run of data.runs) for (const text of run.remarks) remarks.set(text, [...(remarks.get(text) || []), nameOf(run)]);
  if (!remarks.size && !troubles.length) return h("p", { class: "good" }, "Nothing: no rollout failed, was cut or is missing.");
  return [h("ul", { class: "worries" }, troubles), [...remarks].map(([text, labels]) => h("p", { class: "note" }, data.runs.length > 1 && `${labels.join(", ")}: `, text, "."))];
}
