// What is heard from a pod's containers, and said to them: logs, and a shell.

import { ask } from "./api.js";
import { el, labelled, show } from "./dom.js";
import { terminal } from "./terminal.js";

/** Lines of a log. */
const MAX_LINES = 1000;

/** All of them, as people look for them: those that do the work come first. */
function named({ spec }) {
  const { containers, initContainers = [], ephemeralContainers = [] } = spec;
  return [...containers, ...initContainers, ...ephemeralContainers].map((one) => one.name);
}

/** Those into which somebody can go: what has run and ended before the others has no shell any more. */
function withShells({ spec }) {
  const { containers, initContainers = [], ephemeralContainers = [] } = spec;
  const sidecars = initContainers.filter((one) => one.restartPolicy === "Always");
  return [...containers, ...sidecars, ...ephemeralContainers].map((one) => one.name);
}

function choosing(names, onchange) {
  return el("select", { onchange }, names.map((name) => el("option", {}, name)));
}

/** The log of a container as it is written, or of the one that ran before it; returns what ends it. */
export function logs(path, pod, pane) {
  const output = el("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "Log" });
  const container = choosing(named(pod), () => read());
  const previous = el("input", { type: "checkbox", onchange: () => read() });
  show(pane, el("div", { class: "bar" }, labelled("Container", container), labelled("Before its last restart", previous)), output);
  let ends = new AbortController();
  const read = async () => {
    ends.abort();
    ends = new AbortController();
    const { signal } = ends;
    show(output);
    // What has ended is not written any more.
    const of = previous.checked ? { previous: "true" } : { follow: "true" };
    const query = new URLSearchParams({ container: container.value, tailLines: MAX_LINES, ...of });
    try {
      const response = await ask(`${path}/log?${query}`, { accept: "*/*", signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done && !signal.aborted; part = await reader.read()) {
        output.append(part.value);
        output.scrollTop = output.scrollHeight;
      }
    } catch (error) {
      if (error.name !== "AbortError") output.append(error.message);
    }
  };
  read();
  return () => ends.abort();
}

/** A shell in a container; returns what ends it. */
export function shell(path, pod, pane) {
  let opened = null;
  const begin = () => {
    opened?.close();
    opened = terminal(path, container.value);
    show(place, opened.root);
  };
  const container = choosing(withShells(pod), () => begin());
  const place = el("div", {});
  show(pane, el("div", { class: "bar" }, labelled("Container", container)), place);
  begin();
  place.querySelector("input").focus();
  return () => opened.close();
}
