"use strict";
(() => {
  const PAGE_SIZE = 50;
  const FOLD_FROM = 6000; // characters from which a text is folded
  const main = document.getElementById("main");
  let data = null;
  const filters = { text: "", stop: "", failure: "", least: "", most: "" };
  const place = { rollouts: 0, tasks: 0, sort: "order", isMono: false };

  // Everything is made of elements and text nodes: what a model wrote is never read as HTML.
  function h(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "text") element.textContent = value;
      else if (name === "value") element.value = value;
      else element.setAttribute(name, value === true ? "" : value);
    }
    append(element, children);
    return element;
  }
  function append(element, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
  }
  const say = (text) => { document.getElementById("status").textContent = text; };

  // Numbers

  const numeric = (value) => (typeof value === "string" ? { nan: NaN, inf: Infinity, "-inf": -Infinity }[value] : value);
  function number(value, digits = 3) {
    const known = numeric(value);
    if (known === null || known === undefined) return "–";
    if (!Number.isFinite(known)) return Number.isNaN(known) ? "NaN" : known > 0 ? "∞" : "-∞";
    if (Number.isInteger(known)) return known.toLocaleString("en");
    return Math.abs(known) < 0.001 ? known.toPrecision(2) : known.toFixed(digits);
  }
  const interval = (mean) => (mean.interval ? `${number(mean.interval[0])} to ${number(mean.interval[1])}` : "–");
  const seconds = (value) => (value < 120 ? `${number(value, 1)} s` : `${number(value / 60, 1)} min`);
  const percent = (value) => `${(100 * value).toFixed(1)} %`;

  // Routes: #run=0&example=7&rollout=1&turn=3&beside=1

  function route() {
    const given = new URLSearchParams(location.hash.slice(1));
    const run = Number(given.get("run") || 0);
    return { run: data.runs[run] ? run : 0, example: given.get("example"), rollout: given.get("rollout") || "0", turn: given.get("turn"), beside: given.get("beside") };
  }
  function link(parts) {
    const kept = Object.entries(parts).filter(([, value]) => value !== null && value !== undefined);
    return `#${new URLSearchParams(kept).toString()}`;
  }
  const toRollout = (run, row, more) => link({ run, example: row.example, rollout: row.rollout, ...more });
  const taskKey = (run, row) => `${run.metadata.env_id} ${row.fingerprint || row.example} ${row.rollout}`;

  // Tables

  function table(caption, heads, rows) {
    return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, rows)));
  }
  const cells = (...values) => h("tr", {}, values.map((value, index) => h(index ? "td" : "th", index ? {} : { scope: "row" }, value)));
  function pager(name, count, render) {
    const last = Math.max(0, Math.ceil(count / PAGE_SIZE) - 1);
    place[name] = Math.min(place[name], last);
    if (!last) return null;
    const go = (page) => () => { place[name] = page; render(); say(`Page ${page + 1} of ${last + 1}`); };
    const button = (text, page) => h("button", { type: "button", disabled: page < 0 || page > last, onclick: go(page) }, text);
    return h("div", { class: "bar", role: "group", "aria-label": `Pages of ${name}` }, button("Previous page", place[name] - 1),
      h("span", {}, `Page ${place[name] + 1} of ${last + 1}`), button("Next page", place[name] + 1));
  }
  const page = (name, all) => all.slice(place[name] * PAGE_SIZE, (place[name] + 1) * PAGE_SIZE);

  // The overview of a run

  function fact(name, value, note) {
    return h("div", {}, h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : null));
  }
  function facts(run) {
    const { reward } = run;
    const stopped = run.num_planned !== null && run.rows.length < run.num_planned;
    const tokens = Object.entries(run.tokens);
    return h("dl", { class: "facts" },
      fact("Mean reward", reward.value === null && stopped ? `${number(run.rows.length)} of ${number(run.num_planned)}` : number(reward.value),
        reward.value === null ? stopped ? "no mean: rollouts that end early say nothing of the others" : "no mean: a rollout that failed or was cut has no number to count with"
        : reward.interval ? `95 %: ${interval(reward)}` : run.tasks.length < 2 ? "no interval: it needs two tasks" : "no interval: nothing varies, and no range of rewards is known"),
      fact("Rollouts", number(run.rows.length), `of ${number(run.tasks.length)} tasks`),
      fact("Failed", number(run.num_failed), run.num_failed || run.num_cut ? `mean of what ended by itself ${number(run.reward_finished)}` : "none"),
      run.num_cut ? fact("Cut", number(run.num_cut), "by a limit of the run") : null,
      run.num_missing ? fact("Missing", number(run.num_missing), "failed by the infrastructure: not in the mean") : null,
      Object.keys(run.pass_at_k).map((k) => fact(`pass@${k}`, percent(run.pass_at_k[k]), `all of ${k}: ${percent(run.pass_all_k[k])}`)),
      tokens.map(([kind, count]) => fact(kind.replaceAll("_", " "), number(count), `${number(count / run.rows.length, 0)} a rollout`)),
      fact("Time of a rollout", seconds(run.rollout_seconds), run.metadata.time ? `the run took ${seconds(run.metadata.time)}` : null));
  }
  function histogram(run) {
    const values = run.rows.map((row) => numeric(row.counted)).filter((value) => Number.isFinite(value));
    if (values.length < 2) return null;
    const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    if (low === high) return h("p", {}, `All rewards are ${number(low)}.`);
    const bins = new Array(20).fill(0);
    for (const value of values) bins[Math.min(19, Math.floor((20 * (value - low)) / (high - low)))] += 1;
    const most = Math.max(...bins);
    const bars = h("div", { class: "histogram", role: "img", "aria-label": `Rewards from ${number(low)} to ${number(high)}, in 20 bins: ${bins.join(", ")}` },
      bins.map((count) => { const bar = h("span", {}); bar.style.height = `${(100 * count) / most}%`; return bar; }));
    return [bars, h("p", { class: "soft" }, `Rewards from ${number(low)} (left) to ${number(high)} (right)`)];
  }
  function runsTable() {
    const names = [...new Set(data.runs.flatMap((run) => Object.keys(run.metrics)))];
    const row = (name, of) => cells(name, ...data.runs.map(of));
    return [table("The runs side by side", ["what", ...data.runs.map((run) => run.name)], [
      row("mean reward", (run) => number(run.reward.value)), row("95 % interval", (run) => interval(run.reward)),
      row("rollouts", (run) => number(run.rows.length)), row("failed", (run) => number(run.num_failed)),
      names.map((name) => row(name, (run) => (run.metrics[name] ? number(run.metrics[name].value) : "–"))),
      row("time of a rollout", (run) => seconds(run.rollout_seconds))]),
    data.verdicts.map((verdict) => h("p", {}, verdict))];
  }
  function tasks(run, index) {
    const others = data.runs.map((_, other) => other).filter((other) => other !== index);
    const means = others.map((other) => new Map(byTask(data.runs[other])));
    const own = new Map(byTask(run));
    const key = taskKeys(run);
    const box = h("div", {});
    const render = () => {
      const sorted = [...run.tasks];
      if (place.sort === "reward") sorted.sort((a, b) => (numeric(a.reward.value) ?? -Infinity) - (numeric(b.reward.value) ?? -Infinity));
      const open = (task) => h("a", { href: link({ run: index, example: task.example_id, rollout: run.rows.find((row) => row.example === task.example_id).rollout }) }, `example ${task.example_id}`);
      box.replaceChildren();
      append(box, [
        h("div", { class: "bar" }, h("button", { type: "button", "aria-pressed": String(place.sort === "reward"), onclick: () => { place.sort = place.sort === "reward" ? "order" : "reward"; place.tasks = 0; render(); } }, "Lowest reward first")),
        table("What each task earned", ["task", "mean reward", ...others.map((other) => data.runs[other].name), "passed", "failed", "rollouts"],
          page("tasks", sorted).map((task) => cells(open(task), number(own.get(key.get(task.example_id))),
            ...means.map((of) => number(of.get(key.get(task.example_id)))), number(task.num_passed), number(task.num_failed), number(task.num_rollouts)))),
        pager("tasks", sorted.length, render)]);
    };
    render();
    return box;
  }
  const taskKeys = (run) => new Map(run.rows.map((row) => [row.example, `${run.metadata.env_id} ${row.fingerprint || row.example}`]));
  function* byTask(run) {
    const key = taskKeys(run);
    for (const task of run.tasks) yield [key.get(task.example_id), task.reward.value];
  }
  function settings(run) {
    const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    return h("details", {}, h("summary", {}, "How it was run"), h("dl", { class: "pairs" },
      Object.entries(run.metadata).map(([name, value]) => [h("dt", {}, name), h("dd", {}, text(value))])));
  }
  function overview(index) {
    const run = data.runs[index];
    const metrics = Object.entries(run.metrics);
    const jump = (change) => h("button", { type: "button", onclick: () => { Object.assign(filters, { text: "", stop: "", failure: "", least: "", most: "" }, change); show(); document.getElementById("rollouts").scrollIntoView(); } }, "Show");
    return [
      h("h2", { id: "title", tabindex: "-1" }, run.name), facts(run), data.runs.length > 1 ? runsTable() : null,
      h("div", { class: "halves" },
        h("section", {}, h("h3", {}, "Rewards"), histogram(run)),
        h("section", {}, h("h3", {}, "Metrics"), metrics.length ? table("Means over the rollouts", ["metric", "mean", "95 % interval"],
          metrics.map(([name, mean]) => cells(run.metrics_errors[name] ? [name, h("span", { class: "bad" }, ` (raised in ${run.metrics_errors[name]} rollouts)`)] : name, number(mean.value), interval(mean)))) : h("p", {}, "None.")),
        h("section", {}, h("h3", {}, "Failures"), run.failures.length ? table("Failed rollouts, by reason", ["reason", "rollouts", "the first one says", "list"],
          run.failures.map((kind) => h("tr", {}, h("th", { scope: "row" }, kind.reason), h("td", {}, number(kind.rollouts.length)), h("td", { class: "long" }, kind.example.slice(0, 400)), h("td", {}, jump({ failure: kind.reason }))))) : h("p", { class: "good" }, "No rollout failed.")),
        h("section", {}, h("h3", {}, "How episodes ended"), table("Rollouts by what ended them", ["ended by", "rollouts", "list"],
          Object.entries(run.endings).map(([name, count]) => cells(name, number(count), jump({ stop: name })))))),
      h("h3", {}, "Tasks"), tasks(run, index), settings(run),
      h("h2", { id: "rollouts" }, "Rollouts"), rolloutList(index)];
  }

  // The list of rollouts

  const messageTexts = [];
  const textOf = (message) => (messageTexts[message] ??= searchable(data.messages[message]));
  function searchable(value) { // texts as they are read, not as JSON writes them
    const texts = [];
    const walk = (item) => {
      if (typeof item === "string") texts.push(item);
      else if (Array.isArray(item)) item.forEach(walk);
      else if (item && typeof item === "object") Object.entries(item).forEach(([name, each]) => { if (name !== "role") walk(each); });
      else if (typeof item === "number") texts.push(String(item));
    };
    walk(value);
    return texts.join("\n").toLowerCase();
  }
  function matching(run) {
    const wanted = filters.text.trim().toLowerCase();
    const hits = wanted ? data.messages.map((_, index) => textOf(index).includes(wanted)) : null;
    const has = (row) => {
      const said = [...row.prompt, ...row.completion, ...(row.steps || []).flatMap((step) => [...(step.prompt || []), ...(step.completion || [])])];
      return said.some((message) => hits[message]) || searchable([row.failure, row.rest, row.metrics_errors, row.cleanup_errors, row.ended, (row.tools || []).map((tool) => data.tools[tool])]).includes(wanted);
    };
    const within = (reward) => (filters.least === "" || reward >= Number(filters.least)) && (filters.most === "" || reward <= Number(filters.most));
    return run.rows.filter((row) => (!filters.stop || row.ended === filters.stop)
      && (!filters.failure || (filters.failure === "\u0000any" ? row.failed : filters.failure === "\u0000none" ? !row.failed : row.failure && row.failure[0] === filters.failure))
      && within(numeric(row.counted) ?? NaN)
      && (!wanted || has(row)));
  }
  function rolloutList(index) {
    const run = data.runs[index];
    const box = h("div", {});
    const render = () => {
      const rows = matching(run);
      const names = Object.keys(run.metrics).slice(0, 4);
      const pages = pager("rollouts", rows.length, render);
      box.replaceChildren();
      append(box, [h("p", { id: "count" }, `${number(rows.length)} of ${number(run.rows.length)} rollouts`),
        rows.length ? table("Rollouts", ["rollout", "reward", "ended by", "failure", "turns", ...names, "tokens", "time"], page("rollouts", rows).map((row) => cells(
          h("a", { href: toRollout(index, row) }, `example ${row.example}, rollout ${row.rollout}`), number(row.counted ?? row.reward), row.ended,
          row.failed ? h("span", { class: "bad" }, row.failure[0]) : "", number(turnsOf(row).length), ...names.map((name) => number(row.metrics[name])),
          number((row.tokens.input_tokens || 0) + (row.tokens.output_tokens || 0) || null), seconds(row.seconds)))) : h("p", {}, "None matches: clear a filter."),
        pages]);
    };
    const change = (name) => (event) => { filters[name] = event.target.value; place.rollouts = 0; render(); say(box.firstChild.textContent); };
    const choice = (name, options) => {
      const select = h("select", { onchange: change(name) }, options.map(([value, text]) => h("option", { value }, text)));
      for (const option of select.options) option.selected = option.value === filters[name];
      return select;
    };
    render();
    return [h("form", { role: "search", "aria-label": "Filter the rollouts", onsubmit: (event) => event.preventDefault() },
      h("label", {}, "Text in them", h("input", { type: "search", id: "filter-text", value: filters.text, oninput: change("text") })),
      h("label", {}, "Reward from", h("input", { type: "number", step: "any", value: filters.least, oninput: change("least") })),
      h("label", {}, "Reward to", h("input", { type: "number", step: "any", value: filters.most, oninput: change("most") })),
      h("label", {}, "Ended by", choice("stop", [["", "anything"], ...Object.keys(run.endings).map((name) => [name, name])])),
      h("label", {}, "Failure", choice("failure", [["", "failed or not"], ["\u0000any", "failed"], ["\u0000none", "not failed"], ...run.failures.map((kind) => [kind.reason, kind.reason])])),
      h("button", { type: "button", onclick: () => { Object.assign(filters, { text: "", stop: "", failure: "", least: "", most: "" }); show(); document.getElementById("filter-text").focus(); } }, "Clear")), box];
  }

  // One rollout

  // A turn is an answer of the model, with what stands before it since the last one and what stands after it until the next one.
  function turnsOf(row) {
    const all = [...row.prompt, ...row.completion];
    const answers = all.map((message, at) => [data.messages[message].role, at]).filter(([role, at]) => role === "assistant" && at >= row.prompt.length).map(([, at]) => at);
    return answers.map((at, index) => ({ from: index ? answers[index - 1] + 1 : 0, at, to: index + 1 < answers.length ? answers[index + 1] : all.length }));
  }
  function isBoard(block) {
    const lines = block.split("\n").filter((line) => line.trim());
    if (lines.length < 2 || lines.some((line) => line.length > 160)) return false;
    if (/[\u2500-\u25ff\u2654-\u265f]/.test(block) || lines.every((line) => /[|+]/.test(line))) return true;
    const words = block.match(/[\p{L}]{3,}/gu) || [];
    const sameLength = lines.every((line) => line.trimEnd().length === lines[0].trimEnd().length);
    return words.join("").length < 0.3 * block.replace(/\s/g, "").length || (sameLength && lines.length > 2) || lines.filter((line) => /\S {2,}\S/.test(line)).length > lines.length / 2;
  }
  function textBlocks(text) {
    const made = [];
    const fences = text.split(/^```[^\n]*\n([\s\S]*?)^```[^\n]*$/m);
    fences.forEach((part, index) => {
      if (index % 2) { made.push(h("pre", { tabindex: "0", role: "group", "aria-label": "Code" }, part.replace(/\n$/, ""))); return; }
      let prose = [];
      const flush = () => { if (prose.length) made.push(h("div", { class: "text" }, prose.join("\n\n"))); prose = []; };
      for (const block of part.replace(/^\n+|\n+$/g, "").split(/\n{2,}/)) {
        if (isBoard(block)) { flush(); made.push(h("pre", { tabindex: "0", role: "group", "aria-label": "Board" }, block)); } else if (block) prose.push(block);
      }
      flush();
    });
    if (text.length <= FOLD_FROM) return made;
    const folded = h("div", { class: "folded", tabindex: "0", role: "group", "aria-label": "Long text" }, made);
    return [folded, h("button", { type: "button", class: "no-print", onclick: (event) => { folded.classList.remove("folded"); event.target.remove(); } }, `Show all ${number(text.length)} characters`)];
  }
  function picture(part, where) {
    const url = data.images[part.image];
    if (!/^data:image\//i.test(url)) return h("p", { class: "soft" }, `Image that is not in this page: ${url.slice(0, 500)}`);
    return h("img", { src: url, alt: where, loading: "lazy" });
  }
  function content(value, where) {
    if (value === null || value === undefined || value === "") return null;
    if (typeof value === "string") return textBlocks(value);
    if (!Array.isArray(value)) return json(value);
    const images = value.filter((part) => part && part.type === "image").length;
    let image = 0;
    return value.map((part) => {
      if (typeof part === "string") return textBlocks(part);
      if (part.type === "image") return picture(part, `Image ${(image += 1)} of ${images} in ${where}`);
      return typeof part.text === "string" ? textBlocks(part.text) : json(part);
    });
  }
  const json = (value) => h("pre", { class: "wrap", tabindex: "0", role: "group", "aria-label": "Data" }, typeof value === "string" ? value : JSON.stringify(value, null, 2));
  function pretty(text) {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  }
  function call(item) {
    const made = item.function || item;
    return h("div", {}, h("p", { class: "label" }, "Tool call ", h("strong", {}, made.name || "")), json(typeof made.arguments === "string" ? pretty(made.arguments) : made.arguments ?? {}));
  }
  const REASONING = ["reasoning_content", "reasoning", "thinking_blocks", "reasoning_details"];
  function messageBox(number_, where, note) {
    const message = data.messages[number_];
    const rest = Object.entries(message).filter(([name]) => !["role", "content", "tool_calls", "tool_call_id", "name", ...REASONING].includes(name));
    return h("div", { role: "group", class: `message ${/^[a-z]+$/.test(message.role) ? message.role : ""}`, "aria-label": where },
      h("p", { class: "who" }, h("strong", {}, message.role, message.name ? ` ${message.name}` : ""), h("span", { class: "soft" }, where), note),
      REASONING.filter((name) => message[name]).map((name) => h("div", { class: "reasoning" }, h("p", { class: "label" }, "Reasoning"), content(message[name], where))),
      content(message.content, where), (message.tool_calls || []).map(call),
      rest.map(([name, value]) => h("div", {}, h("p", { class: "label" }, name), json(value))));
  }
  function stepNotes(row) {
    const notes = new Map();
    for (const step of row.steps || []) if (step.at !== undefined) notes.set(row.prompt.length + step.at, step);
    return notes;
  }
  function stepNote(step) {
    if (!step) return null;
    const reward = step.reward !== null && step.reward !== undefined ? h("strong", {}, `step reward ${number(step.reward)}`) : null;
    return [reward, step.rest && "advantage" in step.rest ? h("span", {}, `advantage ${number(step.rest.advantage)}`) : null];
  }
  function conversation(row, turn) {
    const all = [...row.prompt, ...row.completion];
    const turns = turnsOf(row), notes = stepNotes(row);
    const turnAt = (at) => turns.findIndex((each) => at >= each.from && at < (turns.at(-1) === each ? all.length : each.at + 1));
    const shown = turn === null ? { from: 0, to: all.length } : turns[turn] || { from: 0, to: 0 };
    const made = all.slice(shown.from, shown.to).map((message, offset) => {
      const at = shown.from + offset;
      const where = `message ${at + 1} of ${all.length}${turns.length ? `, turn ${turnAt(at) + 1}` : ""}, example ${row.example}, rollout ${row.rollout}`;
      const step = notes.get(at);
      return [messageBox(message, where, stepNote(step)), step && extras(step, row)];
    });
    if (turn !== null && !turns[turn]) return h("p", {}, `It has ${turns.length} turns.`);
    return made.length ? made : h("p", {}, "It has no messages.");
  }
  function extras(step, row) {
    const rest = Object.entries(step.rest || {}).filter(([name]) => name !== "advantage");
    if (!rest.length && !step.prompt) return null;
    return h("details", {}, h("summary", {}, step.prompt ? "This turn: another prompt than what stands above" : "More of this turn"),
      step.prompt ? step.prompt.map((message, at) => messageBox(message, `prompt message ${at + 1} of ${step.prompt.length}, example ${row.example}, rollout ${row.rollout}`)) : null,
      rest.map(([name, value]) => [h("p", { class: "label" }, name), json(value)]));
  }
  function otherSteps(row) {
    const apart = (row.steps || []).filter((step) => step.at === undefined);
    if (!apart.length) return null;
    return h("details", { open: true }, h("summary", {}, `${apart.length} turns that are not part of the conversation above`), apart.map((step, index) => [
      (step.prompt || []).map((message, at) => messageBox(message, `side turn ${index + 1}, prompt message ${at + 1}, example ${row.example}, rollout ${row.rollout}`)),
      (step.completion || []).map((message) => messageBox(message, `side turn ${index + 1}, answer, example ${row.example}, rollout ${row.rollout}`, stepNote(step)))]));
  }
  function rolloutArticle(runIndex, row, turn, level) {
    const run = data.runs[runIndex];
    const title = h(level, { id: level === "h2" ? "title" : null, tabindex: "-1" }, `Example ${row.example}, rollout ${row.rollout}`, level === "h3" ? `: ${run.name}` : "");
    const pairs = [["counts with", number(row.counted)], ["reward", number(row.reward)], ["ended by", `${row.ended}${row.truncated ? ", an answer was cut off" : ""}`], ["time", seconds(row.seconds)],
      ...Object.entries(row.tokens).map(([name, value]) => [name.replaceAll("_", " "), number(value)]), ...Object.entries(row.metrics).map(([name, value]) => [name, number(value)]),
      ...Object.entries(Object(row.rest.human)).map(([name, value]) => [`person: ${name}`, String(value)])];
    const rest = Object.entries(row.rest);
    return h("article", {}, title, h("dl", { class: "pairs" }, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      row.failed ? h("p", { class: "bad" }, h("strong", {}, `Failed: ${row.failure[0]}. `), row.failure[1]) : null,
      ["metrics_errors", "cleanup_errors"].map((key) => row[key] && h("div", { class: "bad" }, h("p", {}, key.replace("_", " ")), json(row[key]))),
      row.tools ? h("details", {}, h("summary", {}, `${row.tools.length} tools`), row.tools.map((tool) => json(data.tools[tool]))) : null,
      h("div", { class: "conversation" }, conversation(row, turn)), otherSteps(row),
      rest.length ? h("details", {}, h("summary", {}, "All else of the row"), h("dl", { class: "pairs" }, rest.map(([name, value]) => [h("dt", {}, name), h("dd", {}, json(value))]))) : null);
  }
  function rolloutView(where) {
    const run = data.runs[where.run];
    const row = run.rows.find((each) => String(each.example) === where.example && String(each.rollout) === where.rollout);
    if (!row) return [h("h2", { id: "title", tabindex: "-1" }, "No such rollout"), h("p", {}, `This run has no rollout ${where.rollout} of example ${where.example}. `, h("a", { href: link({ run: where.run }) }, "All rollouts"))];
    const rows = matching(run).includes(row) ? matching(run) : run.rows;
    const at = rows.indexOf(row);
    const pair = (index) => data.runs[index].rows.find((each) => taskKey(data.runs[index], each) === taskKey(run, row));
    const others = data.runs.map((_, index) => index).filter((index) => index !== where.run && pair(index));
    const beside = where.beside === "none" ? null : where.beside === null ? others[0] ?? null : others.includes(Number(where.beside)) ? Number(where.beside) : null;
    const partners = [[where.run, row], ...(beside === null ? [] : [[beside, pair(beside)]])];
    const count = Math.max(...partners.map(([, each]) => turnsOf(each).length));
    const turn = where.turn === null || !count ? null : Math.min(Math.max(Number(where.turn) || 1, 1), count) - 1;
    const self = (change) => link({ run: where.run, example: row.example, rollout: row.rollout, turn: where.turn, beside: where.beside, ...change });
    const button = (text, target, isOn) => h("button", { type: "button", disabled: target === null, "aria-pressed": isOn === undefined ? null : String(isOn), onclick: () => move(target) }, text);
    const neighbour = (offset) => (rows[at + offset] ? toRollout(where.run, rows[at + offset], { beside: where.beside, turn: where.turn && "1" }) : null);
    return [
      h("div", { class: "bar" }, h("a", { href: link({ run: where.run }) }, "All rollouts"), button("Previous rollout", neighbour(-1)), h("span", {}, `${at + 1} of ${rows.length}`), button("Next rollout", neighbour(1)),
        others.length ? h("label", {}, "Beside it", (() => {
          const select = h("select", { onchange: (event) => move(self({ beside: event.target.value })) }, h("option", { value: "none" }, "nothing"), others.map((index) => h("option", { value: index }, data.runs[index].name)));
          select.value = beside === null ? "none" : String(beside);
          return select;
        })()) : null),
      h("div", { class: "bar", role: "group", "aria-label": "Turns" }, button("Whole conversation", self({ turn: null }), turn === null), button("Turn by turn", count ? self({ turn: turn === null ? 1 : turn + 1 }) : null, turn !== null),
        turn === null ? null : [button("← Previous turn", turn > 0 ? self({ turn }) : null), h("span", { id: "turn" }, `Turn ${turn + 1} of ${count}`), button("Next turn →", turn + 1 < count ? self({ turn: turn + 2 }) : null)],
        h("button", { type: "button", "aria-pressed": String(place.isMono), onclick: () => { place.isMono = !place.isMono; show(); } }, "All text in monospace")),
      h("div", { class: `columns${partners.length > 1 ? " two" : ""}${place.isMono ? " mono" : ""}` }, partners.map(([index, each], number_) => rolloutArticle(index, each, turn, number_ ? "h3" : "h2")))];
  }
  function move(target) {
    if (target !== null) location.replace(target);
  }

  // Showing

  let opened = "";
  function show() {
    const where = route();
    const isRollout = where.example !== null;
    main.replaceChildren();
    append(main, isRollout ? rolloutView(where) : overview(where.run));
    header(where);
    const name = isRollout ? `${where.run} ${where.example} ${where.rollout}` : String(where.run);
    document.title = `${isRollout ? `Example ${where.example}, rollout ${where.rollout} · ` : ""}${data.runs[where.run].name}`;
    if (opened && opened !== name) { window.scrollTo(0, 0); document.getElementById("title").focus({ preventScroll: true }); }
    opened = name;
    if (isRollout && where.turn) say(document.getElementById("turn")?.textContent || "");
  }
  function header(where) {
    const top = document.getElementById("top");
    top.replaceChildren();
    append(top, [h("h1", {}, data.runs.length > 1 ? `${data.runs.length} runs` : "A run"), data.runs.length > 1 ? h("nav", { "aria-label": "Runs" }, h("ul", {}, data.runs.map((run, index) =>
      h("li", {}, h("a", { href: link({ run: index }), "aria-current": index === where.run ? "page" : null }, run.name))))) : null]);
  }
  addEventListener("keydown", (event) => {
    if (!data || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, pre, .scroll, .folded")) return;
    const where = route();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (where.example === null || !step) return;
    event.preventDefault();
    const turn = Math.max(1, (Number(where.turn) || 0) + step);
    move(link({ run: where.run, example: where.example, rollout: where.rollout, beside: where.beside, turn }));
  });
  document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

  async function unpack() {
    const packed = atob(document.getElementById("data").textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  unpack().then((unpacked) => {
    data = unpacked;
    addEventListener("hashchange", show);
    show();
  }).catch((error) => {
    main.replaceChildren();
    append(main, [h("h1", {}, "This page could not be unpacked"), h("p", {}, `It needs a browser of 2023 or later. ${error}`)]);
  });
})();
