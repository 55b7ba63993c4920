// One rollout: its conversation as a whole, or turn by turn with the board or image in sight.

// A turn is what stands before an answer of the model since the last one, and the answer. What follows the last answer is the end.
function turnsOf(row) {
  const all = [...row.prompt, ...row.completion], turns = [];
  let from = 0;
  all.forEach((message, at) => {
    if (at >= row.prompt.length && data.messages[message].role === "assistant") { turns.push({ from, to: at + 1 }); from = at + 1; }
  });
  if (turns.length && from < all.length) turns.push({ from, to: all.length, isEnd: true });
  return turns;
}
function turnName(turns, turn) {
  const many = turns.length - (turns.at(-1)?.isEnd ? 1 : 0);
  return turn === null ? count(many, "turn") : turns[turn].isEnd ? "The end" : `Turn ${turn + 1} of ${many}`;
}

function conversation(row, asked) {
  const all = [...row.prompt, ...row.completion], turns = turnsOf(row);
  const notes = new Map((row.steps || []).filter((step) => step.at !== undefined).map((step) => [row.prompt.length + step.at, step]));
  const name = (at) => {
    const of = turns.findIndex((each) => at < each.to);
    return `message ${at + 1} of ${all.length}${turns[of] && !turns[of].isEnd ? `, turn ${of + 1}` : ""}, task ${row.example}, rollout ${row.rollout}`;
  };
  if (asked === null || !turns.length) return messagesOf(row, all, 0, all.length, notes, name, null);
  const turn = Math.min(asked, turns.length - 1); // a rollout that is shorter than the one beside it stays at its end
  const board = boardUntil(all, turns[turn].to, name);
  const talk = h("div", { class: "talk" }, messagesOf(row, all, turns[turn].from, turns[turn].to, notes, name, board), turn === turns.length - 1 && outcome(row));
  return board ? h("div", { class: "game" }, h("div", { class: "stage" }, board.element, board.at < turns[turn].from && h("p", { class: "label" }, "from an earlier turn")), talk) : talk;
}
function boardUntil(all, to, name) {
  for (let at = to - 1; at >= 0; at -= 1) {
    const found = boardIn(all[at], name(at));
    if (found) return { ...found, at };
  }
  return null;
}
function messagesOf(row, all, from, to, notes, name, board) {
  if (!all.length) return h("p", {}, "It has no messages.");
  return all.slice(from, to).map((message, offset) => {
    const at = from + offset, step = notes.get(at);
    return [messageBox(message, name(at), { isPrompt: at < row.prompt.length, apart: board?.at === at ? board.part : null, note: stepNote(step) }), step && extras(step, row)];
  });
}
function stepNote(step) {
  if (!step) return null;
  const reward = step.reward !== null && step.reward !== undefined ? h("span", {}, `step reward ${number(step.reward)}`) : null;
  return [reward, step.rest && "advantage" in step.rest ? h("span", {}, `advantage ${number(step.rest.advantage)}`) : null];
}
function extras(step, row) {
  const rest = Object.entries(step.rest || {}).filter(([name, value]) => name !== "advantage" && !(name === "extras" && Object.keys(value).join() === "reward"));
  if (!rest.length && !step.prompt) return null;
  return h("details", { class: "more" }, h("summary", {}, step.prompt ? "This turn: another prompt than what stands above" : "More of this turn"),
    step.prompt?.map((message, at) => messageBox(message, `prompt message ${at + 1} of ${step.prompt.length}, task ${row.example}, rollout ${row.rollout}`)),
    rest.map(([name, value]) => [h("p", { class: "label" }, name), json(value)]));
}
function otherSteps(row) {
  const apart = (row.steps || []).filter((step) => step.at === undefined);
  if (!apart.length) return null;
  return h("details", { open: true }, h("summary", {}, `${count(apart.length, "turn")} beside the conversation above`), apart.map((step, index) => [
    (step.prompt || []).map((message, at) => messageBox(message, `side turn ${index + 1}, prompt message ${at + 1}, task ${row.example}, rollout ${row.rollout}`)),
    (step.completion || []).map((message) => messageBox(message, `side turn ${index + 1}, answer, task ${row.example}, rollout ${row.rollout}`, { note: stepNote(step) }))]));
}
function outcome(row) {
  return h("p", { class: "outcome" }, h("strong", {}, `Reward ${number(row.reward)}`), ` · ${row.failure ? `failed: ${row.failure[0]}` : row.ended}`);
}
const titleOf = (run, row, isShort) => [run.env, isShort ? "" : ` · ${run.label}`, " · task ", h("span", { class: "id" }, row.example), ", rollout ", h("span", { class: "id" }, row.rollout)];
function facts(row) {
  const counted = row.counted !== row.reward && [" (counts with ", row.counted === null ? "nothing" : number(row.counted), ")"];
  return h("p", { class: "facts" }, h("span", {}, "reward ", h("strong", {}, number(row.reward)), counted), h("span", { class: row.failure ? "bad" : null }, row.ended),
    row.troubles?.includes("an answer of the model was cut off") && h("span", { class: "bad" }, "an answer was cut off"),
    h("span", {}, count(row.turns, "turn")), row.tokens !== null && h("span", {}, `${number(row.tokens, 0)} tokens`), row.seconds >= 0.05 && h("span", {}, seconds(row.seconds)));
}
function details(row) {
  const numbers = [...Object.entries(row.metrics), ...Object.entries(row.usage).map(([name, value]) => [name.replaceAll("_", " "), value])].map(([name, value]) => [name, number(value)]);
  const person = Object.entries(Object(row.rest.human)).map(([name, value]) => [`person: ${name}`, String(value)]);
  const rest = Object.entries(row.rest).map(([name, value]) => [name, json(value)]);
  return [row.tools && folded(count(row.tools.length, "tool"), () => row.tools.map((tool) => json(data.tools[tool]))),
    folded("Metrics and all else of the row", () => pairs([...numbers, ...person, ...(row.fingerprint ? [["fingerprint", h("span", { class: "id" }, row.fingerprint)]] : []), ...rest]))];
}
function rolloutArticle(run, row, turn, hasOther) {
  return h("article", {}, hasOther && h("h2", {}, run.label), hasOther && facts(row),
    row.failure && h("p", { class: "bad failure" }, h("strong", {}, `Failed: ${row.failure[0]}. `), row.failure[1]),
    ["metrics_errors", "cleanup_errors"].map((key) => row[key] && h("div", { class: "bad" }, h("p", {}, key.replace("_", " ")), json(row[key]))),
    h("div", { class: "conversation" }, conversation(row, turn)), turn === null && [outcome(row), otherSteps(row)], details(row));
}

function rolloutView(where) {
  const run = data.runs[where.run];
  const row = run.rows.find((each) => String(each.example) === where.example && String(each.rollout) === where.rollout);
  const back = h("a", { href: "#", class: "back" }, "← All rollouts");
  if (!row) return [h("div", { class: "bar" }, back), h("h1", { id: "title", tabindex: "-1" }, "No such rollout"), h("p", {}, `${run.label} has no rollout ${where.rollout} of task ${where.example}.`)];
  const found = matching(), rows = found.some((each) => each.row === row) ? found : listed;
  const at = rows.findIndex((each) => each.row === row);
  const key = (index, each) => `${data.runs[index].env} ${each.fingerprint || each.example} ${each.rollout}`;
  const partner = (index) => data.runs[index].rows.find((each) => key(index, each) === key(where.run, row));
  const others = data.runs.map((_, index) => index).filter((index) => index !== where.run && partner(index));
  const beside = others.includes(Number(where.beside ?? NaN)) ? Number(where.beside) : null;
  const shown = [[run, row], ...(beside === null ? [] : [[data.runs[beside], partner(beside)]])];
  const to = (offset) => rows[at + offset] && toRollout(rows[at + offset].run, rows[at + offset].row, { beside: where.beside, turn: where.turn && "1" });
  const neighbour = (text, name, offset) => button(text, { id: name.split(" ")[0].toLowerCase(), "aria-label": name, title: name, disabled: !to(offset), onclick: () => location.replace(to(offset)) });
  const choice = select({ id: "beside", "aria-label": "Compare with", onchange: (event) => location.replace(toRollout(where.run, row, { turn: where.turn, beside: event.target.value || null })) }, [["", "compare …"], ...others.map((index) => [String(index), `with ${data.runs[index].label}`])], String(beside ?? ""));
  const columns = h("div", { class: `columns${shown.length > 1 ? " two" : ""}` });
  const render = (turn) => put(columns, shown.map(([each, its]) => rolloutArticle(each, its, turn, shown.length > 1)));
  const longest = shown.map(([, each]) => each).reduce((a, b) => (turnsOf(b).length > turnsOf(a).length ? b : a));
  return [
    h("div", { class: "bar top no-print" }, back, others.length > 0 && choice,
      h("span", { class: "neighbours" }, neighbour("‹", "Previous rollout", -1), h("span", {}, `${number(at + 1)} of ${number(rows.length)}`), neighbour("›", "Next rollout", 1))),
    h("h1", { id: "title", tabindex: "-1" }, titleOf(run, row, shown.length > 1)), shown.length === 1 && facts(row), player(where, row, turnsOf(longest), render), columns];
}
// Whatever moves from turn to turn: keys, a slider, buttons, a clock.
let stepper = null;
function player(where, row, turns, render) {
  const last = turns.length - 1, isOn = () => turn !== null;
  let turn = where.turn === null || !turns.length || isPrinting ? null : Math.min(Math.max(Number(where.turn) || 1, 1), last + 1) - 1, clock = null, written = null;
  const slider = h("input", { type: "range", id: "turns", min: 1, max: last + 1, value: 1, "aria-label": "Turn", oninput: (event) => go(Number(event.target.value) - 1) });
  const label = h("span", { id: "turn", class: "turn" });
  const back = button("◀", { "aria-label": "Previous turn", title: "Previous turn (←)", onclick: () => go(turn - 1) });
  const next = button("▶", { "aria-label": "Next turn", title: "Next turn (→)", onclick: () => go(isOn() ? turn + 1 : 0) });
  const play = button("", { class: "play", title: "Play (space)", onclick: () => toggle() });
  const whole = button("Whole", { "aria-label": "Whole conversation", title: "Whole conversation (Escape)", onclick: () => go(null) });
  const paint = () => {
    slider.value = isOn() ? turn + 1 : 1;
    label.textContent = turnName(turns, turn);
    slider.setAttribute("aria-valuetext", label.textContent);
    back.disabled = !isOn() || turn === 0;
    next.disabled = isOn() && turn === last;
    whole.setAttribute("aria-pressed", String(!isOn()));
    put(play, clock ? "Pause" : "Play");
    render(turn);
  };
  const go = (to) => {
    turn = to === null ? null : Math.min(Math.max(to, 0), last);
    if (turn === null || turn === last) stop();
    clearTimeout(written); // browsers refuse to write the address for each step of a slider
    written = setTimeout(() => history.replaceState(null, "", toRollout(where.run, row, { turn: isOn() ? turn + 1 : null, beside: where.beside })), 150);
    paint();
    say(label.textContent);
  };
  const stop = () => { clearInterval(clock); clock = null; };
  const toggle = () => {
    if (clock) { stop(); paint(); return; }
    clock = setInterval(() => go(turn + 1), 900);
    go(isOn() && turn < last ? turn : 0);
  };
  stepper = { leave: () => { stop(); clearTimeout(written); }, toggle, step: (by) => go(isOn() ? turn + by : by > 0 ? 0 : last), whole: () => go(null) };
  paint();
  if (!turns.length) { stepper = null; return null; }
  return h("div", { class: "bar player no-print", role: "group", "aria-label": "Turns" }, whole, back, play, next, slider, label);
}
