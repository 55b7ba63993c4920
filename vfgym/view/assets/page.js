// Which view is shown, keys, printing, and what is new.

// Routes: #run=0&example=7&rollout=1&turn=3&beside=1
function route() {
  const given = new URLSearchParams(location.hash.slice(1));
  const asked = given.get("run"), run = Number(asked ?? 0);
  const isKnown = data.runs[run] !== undefined, last = data.runs.length - 1;
  const unknown = isKnown ? null : `This page has no run ${asked}: ${last ? `its runs are 0 to ${last}` : "its only run is 0"}. All of them are shown.`;
  return { run: asked === null || !isKnown ? null : run, unknown, example: isKnown ? given.get("example") : null, rollout: given.get("rollout") || "0", turn: given.get("turn"), beside: given.get("beside") };
}
function toRollout(run, row, more) {
  const parts = Object.entries({ run, example: row.example, rollout: row.rollout, ...more }).filter(([, value]) => value !== null && value !== undefined);
  return `#${new URLSearchParams(parts).toString()}`;
}

let isPrinting = false;
let opened = null;
function show() {
  if (newest) { data = newest; newest = null; readRows(); }
  const where = route(), isRollout = where.example !== null;
  if (isRollout && where.run === null) where.run = 0;
  const focused = document.activeElement?.id, [from, to] = [document.activeElement?.selectionStart, document.activeElement?.selectionEnd];
  const open = new Set([...main.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  stepper?.leave();
  stepper = null;
  put(main, isRollout ? rolloutView(where) : overview(where));
  const name = isRollout ? `${where.run} ${where.example} ${where.rollout}` : "";
  document.title = isRollout ? document.getElementById("title").textContent : data.runs.map((run) => run.name).join(", ");
  if (isPrinting) return;
  if (opened !== null && opened !== name) arrive(isRollout ? 0 : scrolled);
  else {
    for (const details of main.querySelectorAll("details")) if (open.has(details.firstChild.textContent)) { details.make?.(); details.open = true; }
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (typeof from === "number") document.activeElement.setSelectionRange?.(from, to);
  }
  opened = name;
}
let scrolled = 0; // where the list was left
function arrive(top) {
  window.scrollTo(0, top);
  document.getElementById("title").focus({ preventScroll: true });
}
addEventListener("scroll", () => { if (opened === "") scrolled = window.scrollY; }, { passive: true });

addEventListener("keydown", (event) => {
  if (!stepper || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, pre, .scroll, .folded")) return;
  const isFree = !event.target.closest("button, a, summary");
  const does = { ArrowLeft: () => stepper.step(-1), ArrowRight: () => stepper.step(1), Escape: stepper.whole, ...(isFree && { " ": stepper.toggle }) }[event.key];
  if (does) { event.preventDefault(); does(); }
});
// Print shows everything: all rollouts of a list, the whole conversation, whatever is folded.
addEventListener("beforeprint", () => {
  isPrinting = true;
  show();
  for (const details of main.querySelectorAll("details")) { details.make?.(); details.open = true; }
});
addEventListener("afterprint", () => { isPrinting = false; show(); });
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

let newest = null; // what has come since the view was made; a rollout that is looked at stays as it is
function take(unpacked) {
  newest = unpacked;
  if (!opened) show();
}
async function unpack() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
}
// A page that is served asks for what is new, until its server has gone.
async function follow() {
  const note = document.getElementById("follow");
  note.hidden = false;
  let seen = document.body.getAttribute("data-follows");
  for (;;) {
    await new Promise((done) => setTimeout(done, document.hidden ? 5000 : 1000));
    try {
      const answer = await fetch("data", { headers: { "If-None-Match": seen }, cache: "no-store" });
      if (answer.status === 200) { seen = answer.headers.get("ETag"); take(await answer.json()); }
      put(note, `Following: ${count((newest || data).runs.reduce((sum, run) => sum + run.rows.length, 0), "rollout")} so far.`);
    } catch {
      put(note, "No longer following: the server has stopped. What was read stays.");
      return;
    }
  }
}
unpack().then((unpacked) => {
  addEventListener("hashchange", show);
  take(unpacked);
  if (document.body.hasAttribute("data-follows")) follow();
}).catch((error) => {
  put(main, h("h1", { id: "title" }, "This page could not be unpacked"), h("p", {}, `It needs a browser of 2023 or later. ${error}`));
});
