// What a write of this page leads to, shown as it happens: what is alike is one line, with how often it was.

import { el, show } from "./dom.js";

/** Lines that are shown; of further ones the number is told. */
const MAX_LINES = 40;
/** Steps that are followed, at most: what is not over by then is looked at in a story. */
const MAX_STEPS = 20000;
const WRITES = new Set(["create", "update", "patch", "delete"]);
const DONE = { create: "created", update: "updated", delete: "deleted" };
/** Of steps that are no writes: what they are called where there are several. */
const CALLED = {
  Bound: "pods bound to nodes",
  ContainerStarted: "containers started",
  ContainerExited: "containers ended",
  SandboxStopped: "sandboxes stopped",
  WebhookCalled: "calls of webhooks",
  Denied: "refusals by admission",
  Refused: "refusals",
};

/** A list that is empty until a write begins; `open` opens a step. */
export function aftermath(record, open) {
  const count = el("p", {});
  const list = el("ol", { class: "steps caused", "aria-label": "What it leads to", tabindex: "0" });
  const root = el("section", { hidden: true }, el("h3", {}, "What it leads to"), count, list);
  let paths = null;
  let mine = new Set();
  let groups = new Map();
  let isDue = false;

  const paint = () => {
    isDue = false;
    root.hidden = !mine.size;
    count.textContent = `${mine.size} steps until now`;
    const all = [...groups.values()];
    const more = all.length - MAX_LINES;
    show(list, all.slice(0, MAX_LINES).map((group) => line(group, open)), more > 0 ? el("li", {}, `and ${more} more`) : null);
  };
  const look = (steps) => {
    if (!paths || mine.size > MAX_STEPS) return;
    const before = mine.size;
    for (const step of steps) {
      if (!mine.has(step.cause) && !isOurs(step, paths, record)) continue;
      mine.add(step.id);
      const key = keyOf(step, record);
      if (!key) continue;
      if (!groups.has(key)) groups.set(key, { steps: [], names: new Set(), by: askedBy(step, record) });
      groups.get(key).steps.push(step);
      groups.get(key).names.add(`${step.namespace}/${step.name}`);
    }
    if (mine.size === before || isDue) return;
    isDue = true;
    requestAnimationFrame(paint);
  };
  record.addEventListener("steps", ({ detail: steps }) => {
    if (root.isConnected) look(steps);
    else paths = null;
  });
  /** Of requests to these paths that came after a step. */
  const follow = (sentTo, since) => {
    paths = new Set(sentTo);
    look(record.steps.slice(Math.max(since + 1 - record.first, 0)));
  };
  const clear = () => {
    [paths, mine, groups] = [null, new Set(), new Map()];
    show(list);
    root.hidden = true;
  };
  return { root, follow, clear };
}

/** Whether it is such a request, and no component's. */
function isOurs(step, paths, record) {
  const isAsked = !step.cause || record.get(step.cause)?.step === "Discovered";
  return step.step === "RequestReceived" && paths.has(step.path) && WRITES.has(step.verb) && isAsked;
}

/** What is alike; none of what is told by other steps. */
function keyOf(step, record) {
  if (step.step === "EventRecorded") return step.warning ? `event ${step.reason}` : null;
  if (step.step !== "Stored") return CALLED[step.step] ? step.step : null;
  // Those of events repeat what is told, and a binding is told of by whoever binds.
  if (/^events\b/.test(step.resource) || record.requestOf(step.id)?.path?.endsWith("/binding")) return null;
  return `${step.operation} ${step.resource} ${askedBy(step, record)}`;
}

/** Which component; kubelets together. */
function askedBy(step, record) {
  const before = record.get(record.requestOf(step.id)?.cause);
  const by = before && before.step !== "Discovered" ? before.component : "";
  return by.startsWith("kubelet/") ? "kubelets" : by || "you";
}

function line({ steps, names, by }, open) {
  const step = steps.at(-1);
  const opening = el("button", { type: "button", class: "link", onclick: () => open(step) }, wordsOf(steps, names, by));
  return el("li", { class: ["Denied", "Refused", "EventRecorded"].includes(step.step) ? "bad" : null }, opening);
}

function wordsOf(steps, names, by) {
  const [step, many] = [steps.at(-1), steps.length];
  if (step.step === "Stored") {
    const done = DONE[step.operation] ?? step.operation;
    if (names.size > 1) return `${names.size} ${step.resource} ${done}${many > names.size ? ` ${many} times` : ""} by ${by}`;
    return `${step.resource} ${step.namespace ? `${step.namespace}/` : ""}${step.name} ${done}${many > 1 ? ` ${many} times` : ""} by ${by}`;
  }
  if (many === 1) return step.words;
  return step.step === "EventRecorded" ? `${many} events ${step.reason}: ${step.message}` : `${many} ${CALLED[step.step]}`;
}
