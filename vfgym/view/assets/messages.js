// Messages as they are shown: text, boards, images, tool calls, reasoning.

const FOLD_FROM = 6000; // characters from which a text is folded
const RULES_FROM = 500; // characters, or
const RULES_LINES = 8; //  lines of a prompt, from which only its end is shown: what stands before it are the rules
const REASONING = ["reasoning_content", "reasoning", "thinking_blocks", "reasoning_details"];

const isProse = (line) => /\p{Ll}{2,}[,.;:]? +\p{Ll}{2,}/u.test(line);
function isBoard(block) {
  const lines = block.split("\n").filter((line) => line.trim());
  if (lines.length < 2 || lines.some((line) => line.length > 160)) return false;
  if (/[\u2500-\u25ff\u2654-\u265f]/.test(block) || lines.every((line) => /[|+]/.test(line))) return true;
  const words = block.match(/[\p{L}]{3,}/gu) || [];
  if (words.join("").length < 0.3 * block.replace(/\s/g, "").length) return true;
  if (lines.filter((line) => /\S {2,}\S/.test(line)).length > lines.length / 2) return true;
  const widths = lines.map((line) => line.replace(/[\s[\]()]/g, "").length); // brackets may mark a square
  const width = widths.at(-1);
  return widths.filter((each, index) => each === width && !isProse(lines[index])).length >= Math.max(3, lines.length - 1); // beside a title
}
// A text as parts, in order: { code }, { board } or { prose }.
function partsOf(text) {
  const parts = [];
  text.split(/^```[^\n]*\n([\s\S]*?)^```[^\n]*$/m).forEach((piece, index) => {
    if (index % 2) { parts.push({ code: piece.replace(/\n$/, "") }); return; }
    for (const block of piece.replace(/^\n+|\n+$/g, "").split(/\n{2,}/)) if (block) parts.push(isBoard(block) ? { board: block } : { prose: block });
  });
  return parts;
}
function partElement({ code, board, prose }) {
  if (prose !== undefined) return h("div", { class: "text" }, prose);
  return h("pre", { tabindex: "0", role: "group", "aria-label": code !== undefined ? "Code" : "Board" }, code ?? board);
}
function textBlocks(text, { isPrompt = false, apart = null } = {}) {
  const parts = partsOf(text).filter((part) => part !== apart && (apart?.board === undefined || part.board !== apart.board));
  const isLong = text.length > FOLD_FROM;
  if (isPrompt && parts.length > 1 && (text.length > RULES_FROM || text.split("\n").length > RULES_LINES)) {
    const rules = parts.slice(0, -1), first = (rules[0].prose ?? "").split("\n", 1)[0].slice(0, 100);
    return [h("details", { class: "rules" }, h("summary", {}, first || "What stands before", h("span", { class: "soft" }, ` … ${count(rules.length, "paragraph")}`)), rules.map(partElement)), partElement(parts.at(-1))];
  }
  if (!isLong || isPrinting) return parts.map(partElement);
  const long = h("div", { class: "folded", tabindex: "0", role: "group", "aria-label": "Long text" }, parts.map(partElement));
  return [long, button(`Show all ${number(text.length)} characters`, { class: "no-print", onclick: (event) => { long.classList.remove("folded"); event.target.remove(); } })];
}
function picture(part, where) {
  const url = data.images[part.image];
  if (!/^data:image\//i.test(url)) return h("p", { class: "soft" }, `Image that is not in this page: ${url.slice(0, 500)}`);
  return h("img", { src: url, alt: where });
}
function content(value, where, how) {
  if (value === null || value === undefined || value === "") return null;
  if (typeof value === "string") return textBlocks(value, how);
  if (!Array.isArray(value)) return json(value);
  const images = value.filter((part) => part && part.type === "image").length;
  let image = 0;
  return value.map((part) => {
    if (typeof part === "string") return textBlocks(part, how);
    if (part?.type === "image") return (image += 1, part === how?.apart ? null : picture(part, `Image ${image} of ${images} in ${where}`));
    return typeof part?.text === "string" ? textBlocks(part.text, how) : json(part);
  });
}
const json = (value) => h("pre", { class: "wrap", tabindex: "0", role: "group", "aria-label": "Data" }, typeof value === "string" ? value : JSON.stringify(value, null, 2));
function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, text.length > 60 ? 2 : 0); } catch { return text; }
}
function call(item) {
  const made = item.function || item;
  return h("div", { class: "call" }, h("p", { class: "label" }, "Tool call ", h("strong", {}, made.name || "")), json(typeof made.arguments === "string" ? pretty(made.arguments) : made.arguments ?? {}));
}
function reasoning(value, where) {
  const text = typeof value === "string" ? value : "";
  return h("details", { class: "reasoning", open: text.length < FOLD_FROM / 4 }, h("summary", {}, "Reasoning"), content(value, where));
}
// A message. How: isPrompt, apart (a part that is shown elsewhere), note (what stands beside its role), turn (a number in small print).
function messageBox(index, where, how = {}) {
  const message = data.messages[index];
  const rest = Object.entries(message).filter(([name]) => !["role", "content", "tool_calls", "tool_call_id", "name", ...REASONING].includes(name));
  return h("div", { role: "group", class: `message ${/^[a-z]+$/.test(message.role) ? message.role : ""}`, "aria-label": where },
    h("p", { class: "who" }, h("strong", {}, message.role, message.name ? ` ${message.name}` : ""), how.note),
    REASONING.filter((name) => message[name]).map((name) => reasoning(message[name], where)),
    content(message.content, where, how), (message.tool_calls || []).map(call),
    rest.map(([name, value]) => h("div", {}, h("p", { class: "label" }, name), json(value))));
}
// The last board or image in a message of a game: { part, element } or null.
function boardIn(index, where) {
  const { role, content: value } = data.messages[index];
  if (role === "assistant" || role === "system") return null;
  const parts = typeof value === "string" ? [value] : Array.isArray(value) ? value : [];
  for (const part of [...parts].reverse()) {
    if (part?.type === "image" && /^data:image\//i.test(data.images[part.image])) return { part, element: picture(part, `Image in ${where}`) };
    const text = typeof part === "string" ? part : part?.text;
    const board = typeof text === "string" && text.length < 10 * FOLD_FROM ? partsOf(text).findLast((each) => each.board !== undefined) : undefined;
    if (board) return { part: board, element: partElement(board) };
  }
  return null;
}
