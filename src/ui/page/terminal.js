// A shell in a container, line by line, over the channels that kubectl uses.

import { socket } from "./api.js";
import { el, labelled } from "./dom.js";

const [STDIN, STDOUT, STDERR, ERROR] = [0, 1, 2, 3];
/** Of what was said; the oldest goes first. */
const MAX_TEXT = 200000;

/** A terminal; `close` ends it. */
export function terminal(path, container) {
  const query = new URLSearchParams({ container, command: "sh", stdin: "true", stdout: "true", stderr: "true" });
  const opened = socket(`${path}/exec?${query}`, ["v5.channel.k8s.io"]);
  const output = el("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "What the shell says" });
  const input = el("input", { autocomplete: "off", spellcheck: "false" });
  const say = (text) => {
    output.append(text);
    if (output.textContent.length > MAX_TEXT) output.textContent = output.textContent.slice(-MAX_TEXT / 2);
    output.scrollTop = output.scrollHeight;
  };
  opened.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data);
    const text = new TextDecoder().decode(bytes.subarray(1));
    if (bytes[0] === STDOUT || bytes[0] === STDERR) say(text);
    if (bytes[0] === ERROR) say(ended(text));
  };
  opened.onclose = () => {
    input.disabled = true;
    say("the connection has ended\n");
  };
  opened.onerror = () => say("the shell cannot be reached\n");
  const send = (event) => {
    event.preventDefault();
    say(`$ ${input.value}\n`);
    opened.send(new Uint8Array([STDIN, ...new TextEncoder().encode(`${input.value}\n`)]));
    input.value = "";
  };
  const root = el("form", { class: "terminal", onsubmit: send }, output, labelled("$", input));
  return { root, close: () => opened.close() };
}

function ended(text) {
  try {
    const status = JSON.parse(text);
    return status.status === "Success" ? "the shell has ended\n" : `${status.message}\n`;
  } catch {
    return `${text}\n`;
  }
}
