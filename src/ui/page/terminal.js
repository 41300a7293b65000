// A shell at a terminal in a container, over the channels that kubectl uses. It shows lines: what moves a cursor
// about, as an editor does, is left out.

import { socket } from "./api.js";
import { el, labelled } from "./dom.js";

const [STDIN, STDOUT, STDERR, ERROR, RESIZE] = [0, 1, 2, 3, 4];
/** Of what was said; the oldest goes first. */
const MAX_TEXT = 200000;
/** What a terminal is told by keys that are no text. */
const KEYS = { c: "\x03", d: "\x04" };
const SIZE = { Width: 100, Height: 30 };

/** A terminal; `close` ends it. */
export function terminal(path, container) {
  const query = new URLSearchParams({ container, command: "sh", stdin: "true", stdout: "true", tty: "true" });
  const opened = socket(`${path}/exec?${query}`, ["v5.channel.k8s.io"]);
  const output = el("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "What the shell says" });
  const input = el("input", { autocomplete: "off", spellcheck: "false", onkeydown: pressed });
  const screen = new Screen();
  const decoder = new TextDecoder();
  // However much comes between two frames, it is drawn once.
  let isDue = false;
  const draw = () => {
    isDue = false;
    output.textContent = screen.text;
    output.scrollTop = output.scrollHeight;
  };
  const say = (text) => {
    screen.write(text);
    if (!isDue) requestAnimationFrame(draw);
    isDue = true;
  };
  const send = (channel, text) => {
    if (opened.readyState === WebSocket.OPEN) opened.send(new Uint8Array([channel, ...new TextEncoder().encode(text)]));
  };
  opened.onopen = () => send(RESIZE, JSON.stringify(SIZE));
  opened.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data);
    if (bytes[0] === STDOUT || bytes[0] === STDERR) say(decoder.decode(bytes.subarray(1), { stream: true }));
    if (bytes[0] === ERROR) say(ended(new TextDecoder().decode(bytes.subarray(1))));
  };
  opened.onclose = () => {
    // Who is there stays there: what is disabled loses the focus to nothing.
    input.readOnly = true;
    for (const control of keys) control.setAttribute("aria-disabled", "true");
    say("\nthe connection has ended\n");
  };
  opened.onerror = () => say("\nthe shell cannot be reached\n");
  const typed = (event) => {
    event.preventDefault();
    send(STDIN, `${input.value}\r`);
    input.value = "";
  };
  // A key goes to whatever runs, with what stands before it: that is no line yet.
  const press = (key) => {
    send(STDIN, `${input.value}${KEYS[key]}`);
    input.value = "";
  };
  function pressed(event) {
    const key = event.key.toLowerCase();
    const copies = key === "c" && input.selectionStart !== input.selectionEnd;
    if (!event.ctrlKey || event.altKey || event.metaKey || copies || !KEYS[key]) return;
    event.preventDefault();
    press(key);
  }
  const key = (name, text, title) => el("button", { type: "button", title, onclick: () => { press(name); input.focus(); } }, text);
  const keys = [key("c", "^C", "Interrupt what runs (Ctrl-C)"), key("d", "^D", "No more input (Ctrl-D)")];
  const root = el("form", { class: "terminal", onsubmit: typed }, output, el("div", { class: "bar" }, labelled("Type", input), keys));
  return { root, close: () => opened.close() };
}

/** What a terminal shows, as text. */
class Screen {
  /** Whole lines, and the one that is being written: only that is changed. */
  #lines = "";
  #line = "";
  /** A sequence of control letters, or an end of a line, of which not all has come. */
  #begun = "";

  write(written) {
    const all = this.#begun + written;
    const open = all.search(/(?:\r|\x1b(?:\[[0-9;?]*)?)$/);
    this.#begun = open < 0 ? "" : all.slice(open);
    const shown = (open < 0 ? all : all.slice(0, open)).replaceAll(/\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])/g, "").replaceAll("\r\n", "\n").replaceAll(/[\x00\x07]/g, "");
    for (const part of shown.split(/([\b\r])/)) this.#put(part);
    if (this.#lines.length + this.#line.length > MAX_TEXT) this.#forget();
  }

  get text() {
    return this.#lines + this.#line;
  }

  #forget() {
    const kept = this.text.slice(-MAX_TEXT / 2);
    const end = kept.lastIndexOf("\n") + 1;
    this.#lines = kept.slice(0, end);
    this.#line = kept.slice(end);
  }

  #put(part) {
    // The cursor goes back by one, or to the beginning of its line: what comes is written over what is there.
    if (part === "\b") this.#line = this.#line.slice(0, -1);
    else if (part === "\r") this.#line = "";
    else this.#append(part);
  }

  #append(part) {
    const end = part.lastIndexOf("\n") + 1;
    if (end) this.#lines += this.#line + part.slice(0, end);
    this.#line = end ? part.slice(end) : this.#line + part;
  }
}

function ended(text) {
  try {
    const status = JSON.parse(text);
    return status.status === "Success" ? "\nthe shell has ended\n" : `\n${status.message}\n`;
  } catch {
    return `\n${text}\n`;
  }
}
