// Every object: as kubectl's tables, by owner, as YAML that can be edited and applied, with events, logs and a
// shell.

import { ask, forgetKinds, json, kinds, pathOf, resourceOf } from "./api.js";
import { Conflict, apply, replace } from "./applying.js";
import { logs, shell } from "./containers.js";
import { calmly, el, labelled, show } from "./dom.js";
import { yamlOf, yamlText } from "./yaml.js";

const CONFLICT = 409;
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
/** Rows of a table; the rest is said to be there. */
const MAX_ROWS = 500;
const EXAMPLE = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: default\nspec:\n  replicas: 3\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: nginx\n        image: nginx\n";

/** The view; `tell` opens a story. */
export function objectsView(view, record, tell) {
  let all = [];
  let close = () => {};
  const kind = el("select", { onchange: () => load() });
  const namespace = el("input", { size: "16", placeholder: "all", onchange: () => load() });
  const bar = el("div", { class: "bar" }, labelled("Kind", kind), labelled("Namespace", namespace), el("button", { type: "button", onclick: () => edit(EXAMPLE) }, "Apply YAML"));
  const said = el("p", { role: "status" });
  const table = el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Objects" });
  const detail = el("aside", { class: "detail", "aria-label": "The chosen object" });
  show(view, bar, said, el("div", { class: "columns" }, table, detail));
  const current = () => all[Number(kind.value)];

  async function begin() {
    const chosen = current() ? resourceOf(current()) : "pods";
    all = (await kinds()).filter((one) => one.verbs.includes("list"));
    show(kind, all.map((one, at) => el("option", { value: at, selected: resourceOf(one) === chosen }, resourceOf(one))));
    return load();
  }

  async function load() {
    try {
      const path = `${pathOf(current(), namespace.value)}?limit=${MAX_ROWS}`;
      paint(await json(path, { accept: TABLE }));
    } catch (error) {
      show(said, error.message);
    }
  }

  function paint(answer) {
    const columns = answer.columnDefinitions.filter((column) => column.priority === 0);
    const more = answer.metadata?.remainingItemCount ? `, and ${answer.metadata.remainingItemCount} more` : "";
    show(said, `${answer.rows?.length ?? 0} ${resourceOf(current())}${more}`);
    const heads = [current().namespaced ? el("th", { scope: "col" }, "Namespace") : null, ...columns.map((column) => el("th", { scope: "col" }, column.name))];
    const rows = (answer.rows ?? []).map((row) => {
      const { name, namespace: inside } = row.object.metadata;
      const cells = columns.map((column) => {
        const cell = row.cells[answer.columnDefinitions.indexOf(column)];
        const pick = () => choose(current(), inside, name);
        return el("td", {}, column.format === "name" ? el("button", { class: "link", onclick: pick }, String(cell)) : String(cell ?? ""));
      });
      return el("tr", {}, current().namespaced ? el("td", {}, inside) : null, cells);
    });
    show(table, el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)));
  }

  async function choose(of, inside, name) {
    close();
    close = () => {};
    try {
      const object = await json(pathOf(of, inside, name));
      const pane = el("div", { class: "pane" });
      const shows = {
        YAML: () => whole(object, pane),
        Edit: () => edit(yamlText(object), pathOf(of, inside, name)),
        Owners: () => owners(object, of, pane),
        Events: () => events(object, pane),
        ...(of.plural === "pods" && !of.group ? { Logs: () => { close = logs(pathOf(of, inside, name), object, pane); }, Shell: () => { close = shell(pathOf(of, inside, name), object, pane); } } : {}),
        Story: () => tell(resourceOf(of), inside ?? "", name),
        Delete: () => remove(of, inside, name, pane),
      };
      const buttons = Object.entries(shows).map(([title, act]) => el("button", { type: "button", onclick: () => { close(); close = () => {}; act(); } }, title));
      show(detail, el("h2", {}, name), el("div", { class: "bar", role: "toolbar", "aria-label": "What to see of it" }, buttons), pane);
      whole(object, pane);
    } catch (error) {
      show(detail, el("p", { role: "alert" }, error.message));
    }
  }

  function whole(object, pane) {
    const { legend, body } = yamlOf(object);
    show(pane, legend, body);
  }

  /** What owns it, up to the first, and what it owns, down to the last. */
  async function owners(object, of, pane) {
    const inside = object.metadata.namespace;
    const near = all.filter((one) => one.namespaced && !["events", "events.events.k8s.io"].includes(resourceOf(one)));
    const lists = await Promise.all(near.map(async (one) => {
      const list = await json(`${pathOf(one, inside)}?limit=${MAX_ROWS}`).catch(() => ({ items: [] }));
      return (list.items ?? []).map((item) => ({ of: one, ...item.metadata }));
    }));
    // What is worked out anew for each reader, as metrics are, has no uid, and nobody owns it.
    const others = lists.flat().filter((one) => one.uid && one.uid !== object.metadata.uid);
    const every = [{ of, ...object.metadata }, ...others];
    const byUid = new Map(every.filter((one) => one.uid).map((one) => [one.uid, one]));
    const ownerOf = (one) => byUid.get(one.ownerReferences?.[0]?.uid);
    // Owners may own each other: nobody is passed twice.
    const above = new Set();
    let top = every[0];
    while (ownerOf(top) && !above.has(ownerOf(top))) {
      top = ownerOf(top);
      above.add(top);
    }
    const drawn = new Set();
    const branch = (one) => {
      drawn.add(one);
      const owned = every.filter((other) => ownerOf(other) === one && !drawn.has(other));
      const pick = () => choose(one.of, one.namespace, one.name);
      const label = el("button", { class: "link", onclick: pick, "aria-current": one.uid === object.metadata.uid ? "true" : null }, `${resourceOf(one.of)} ${one.name}`);
      return el("li", {}, label, owned.length ? el("ul", {}, owned.map(branch)) : null);
    };
    show(pane, el("ul", { class: "tree" }, branch(top)));
  }

  async function events(object, pane) {
    const inside = object.metadata.namespace ?? "default";
    const query = new URLSearchParams({ fieldSelector: `involvedObject.uid=${object.metadata.uid}` });
    const list = await json(`/api/v1/namespaces/${inside}/events?${query}`);
    const rows = list.items.map((one) => el("li", { class: one.type === "Warning" ? "bad" : "" }, `${one.lastTimestamp ?? one.series?.lastObservedTime ?? one.eventTime} ${one.type} ${one.reason}: ${one.message}${(one.count ?? one.series?.count) > 1 ? ` (${one.count ?? one.series.count} times)` : ""}`));
    show(pane, rows.length ? el("ul", {}, rows) : el("p", {}, "no events"));
  }

  async function remove(of, inside, name, pane) {
    const sure = el("button", { type: "button", onclick: async () => {
      await ask(pathOf(of, inside, name), { method: "DELETE" }).then(() => show(detail, el("p", { role: "status" }, `${name} is being deleted`)), (error) => show(pane, error.message));
      load();
    } }, `Delete ${name}`);
    show(pane, sure);
    sure.focus();
  }

  /** YAML to change or to make: with a path it replaces that object, as `kubectl replace` does; else it is applied. */
  function edit(text, path) {
    const area = el("textarea", { rows: "28", cols: "70", spellcheck: "false", "aria-label": "YAML" });
    area.value = text;
    const outcome = el("div", { role: "status", class: "outcome" });
    // What is forced is part of the text that was sent, and not of what has become of it since.
    const send = async (dryRun, sent = { text: area.value, inside: namespace.value || "default" }, forced = new Map()) => {
      try {
        show(outcome, path ? await replaced(dryRun, sent) : await applied(dryRun, sent, forced));
        forgetKinds();
        await begin();
      } catch (error) {
        const offered = (fields) => send(dryRun, sent, forced.set(error.at, fields));
        const isPast = path && error.code === CONFLICT;
        show(outcome, error instanceof Conflict ? disputed(error, area.value === sent.text && offered) : isPast ? overtaken(error) : error.message);
      }
    };
    /** What is changed next is changed in what there is now: its version has grown. */
    const replaced = async (dryRun, { text: whole }) => {
      const { object, words } = await replace(path, whole, dryRun);
      if (!dryRun && area.value === whole) area.value = yamlText(object);
      return words;
    };
    /** Somebody was faster, as controllers are with a status: the text as it is goes onto what there is now. */
    const overtaken = ({ message }) => {
      const title = "Without its resourceVersion: whatever was written since it was read is written over";
      const force = () => {
        area.value = area.value.replace(/^ {2}resourceVersion:.*\n/m, "");
        send(false);
      };
      return [el("p", {}, message), el("button", { type: "button", title, onclick: force }, "Replace all the same")];
    };
    area.addEventListener("input", () => outcome.querySelector("button")?.remove());
    /** Of what is forced it is said what was taken. */
    const applied = async (dryRun, { text: whole, inside }, forced) => {
      const done = await apply(whole, { inside, dryRun, forced: new Set(forced.keys()) });
      const words = el("p", {}, done.map((one) => one.words).join(", "));
      return forced.size ? [words, el("p", {}, dryRun ? "These fields would be taken:" : "These fields were taken:"), fieldList([...forced.values()].flat())] : [words];
    };
    const disputed = ({ message, fields }, take) => {
      const title = "As kubectl apply --server-side --force-conflicts";
      return [el("p", {}, message), fieldList(fields), take ? el("button", { type: "button", title, onclick: () => take(fields) }, "Take these fields") : null];
    };
    const target = path ? detail.querySelector(".pane") : detail;
    show(target, area, el("div", { class: "bar" }, el("button", { type: "button", onclick: () => send(false) }, path ? "Replace" : "Apply"), el("button", { type: "button", onclick: () => send(true) }, "Dry run")), outcome);
    area.focus();
  }

  const again = calmly(700, () => !view.hidden && load());
  record.addEventListener("steps", ({ detail: steps }) => {
    const mine = current() && resourceOf(current());
    if (steps.some((step) => step.step === "Stored" && step.resource === mine)) again();
  });
  view.addEventListener("chosen", () => begin().catch((error) => show(said, error.message)));
}

/** Of each field who has it. */
function fieldList(fields) {
  return el("ul", { class: "fields" }, fields.map(({ field, message }) => el("li", {}, el("code", {}, field), ` ${message}`)));
}
