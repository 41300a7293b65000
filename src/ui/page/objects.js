// Every object: as kubectl's tables, by owner, as YAML that can be edited and applied, with events, logs and a
// shell.

import { FORBIDDEN, ask, forgetKinds, json, kinds, pathOf, resourceOf } from "./api.js";
import { Conflict, apply, replace } from "./applying.js";
import { aftermath } from "./caused.js";
import { logs, shell } from "./containers.js";
import { calmly, el, labelled, show } from "./dom.js";
import { difference } from "./happened.js";
import { yamlOf, yamlText } from "./yaml.js";

const CONFLICT = 409;
const NOT_FOUND = 404;
/** These say that what is asked for is another thing than the table shows, and cannot be had. */
const UNLISTED = new Set([400, FORBIDDEN, NOT_FOUND]);
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
/** Rows of a table; the rest is said to be there. */
const MAX_ROWS = 500;
/** Ages grow, though nothing is written: as often as one can differ, in milliseconds, by how the youngest ends. */
const AGEING = [[/\ds$/, 5_000], [/\dm$/, 60_000], [/\d[hdy]$/, 600_000]];
/** What is written may change a table or an object that is shown: it is read anew so seldom at most. */
const READ_AGAIN = 700;
const EXAMPLE = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: default\nspec:\n  replicas: 3\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: nginx\n        image: nginx\n";

/** The view; `tell` opens a story, `open` a step. */
export function objectsView(view, record, { tell, open }) {
  let all = [];
  let close = () => {};
  let asked = 0;
  let older = null;
  /** What is looked at of one object, and how it is read anew. */
  let chosen = null;
  /** Nothing is followed or read anew any more of the object that was looked at. */
  const leave = () => {
    close();
    close = () => {};
    chosen = null;
  };
  const kind = el("select", { onchange: () => load() });
  const rooms = el("datalist", { id: "namespaces" });
  const namespace = el("input", { size: "16", placeholder: "all", list: rooms.id, onchange: () => load() });
  const labels = el("input", { size: "16", placeholder: "app=web", onchange: () => load() });
  const wide = el("input", { type: "checkbox", onchange: () => load() });
  const bar = el("div", { class: "bar" }, labelled("Kind", kind), labelled("Namespace", namespace), rooms, labelled("Labels", labels), labelled("Wide", wide), el("button", { type: "button", onclick: () => { leave(); edit(EXAMPLE); } }, "Apply YAML"));
  const said = el("p", { role: "status" });
  const table = el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Objects" });
  const detail = el("aside", { class: "detail", "aria-label": "The chosen object" });
  show(view, bar, said, el("div", { class: "columns" }, table, detail));
  const current = () => all[Number(kind.value)];
  const caused = aftermath(record, open);

  async function begin() {
    const chosen = current() ? resourceOf(current()) : "pods";
    all = (await kinds()).filter((one) => one.verbs.includes("list"));
    show(kind, all.map((one, at) => el("option", { value: at, selected: resourceOf(one) === chosen }, resourceOf(one))));
    json(`/api/v1/namespaces?limit=${MAX_ROWS}`).then(({ items }) => show(rooms, items.map(({ metadata }) => el("option", { value: metadata.name }))), () => {});
    return load();
  }

  async function load() {
    asked += 1;
    const mine = asked;
    clearTimeout(older);
    try {
      const query = new URLSearchParams({ limit: MAX_ROWS, ...(labels.value.trim() ? { labelSelector: labels.value.trim() } : {}) });
      const answer = await json(`${pathOf(current(), namespace.value)}?${query}`, { accept: TABLE });
      // Meanwhile something else may have been asked for.
      if (mine === asked) paint(answer);
    } catch (error) {
      if (mine !== asked) return;
      const hint = error.code === FORBIDDEN && current().namespaced && !namespace.value ? " It may be allowed in one namespace: name it above." : "";
      show(said, `${error.message}${hint}`);
      // Of who does not answer it is still how it was.
      if (UNLISTED.has(error.code)) show(table);
    }
  }

  /** Nobody sees a table that is hidden grow older. */
  const loadIfSeen = () => !view.hidden && !document.hidden && load();
  document.addEventListener("visibilitychange", loadIfSeen);

  function paint(answer) {
    const columns = answer.columnDefinitions.filter((column) => wide.checked || column.priority === 0);
    const focused = table.contains(document.activeElement) ? document.activeElement.dataset.of : undefined;
    const more = answer.metadata?.remainingItemCount ? `, and ${answer.metadata.remainingItemCount} more` : "";
    show(said, `${answer.rows?.length ?? 0} ${resourceOf(current())}${more}`);
    const heads = [current().namespaced ? el("th", { scope: "col" }, "Namespace") : null, ...columns.map((column) => el("th", { scope: "col" }, column.name))];
    const rows = (answer.rows ?? []).map((row) => {
      const { name, namespace: inside } = row.object.metadata;
      const cells = columns.map((column) => {
        const cell = row.cells[answer.columnDefinitions.indexOf(column)];
        const pick = () => choose(current(), inside, name);
        return el("td", {}, column.format === "name" ? el("button", { class: "link", "data-of": `${inside ?? ""}/${name}`, onclick: pick }, String(cell)) : String(cell ?? ""));
      });
      return el("tr", {}, current().namespaced ? el("td", {}, inside) : null, cells);
    });
    show(table, el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)));
    // Who has come to an object by keyboard stays there, though the table is drawn anew.
    if (focused !== undefined) table.querySelector(`[data-of="${CSS.escape(focused)}"]`)?.focus();
    const age = answer.columnDefinitions.findIndex((column) => column.name === "Age");
    const pause = AGEING.find(([ends]) => (answer.rows ?? []).some((row) => ends.test(row.cells[age])))?.[1];
    if (pause) older = setTimeout(loadIfSeen, pause);
  }

  async function choose(of, inside, name) {
    leave();
    try {
      const path = pathOf(of, inside, name);
      let object = await json(path);
      const pane = el("div", { class: "pane" });
      const note = el("p", { role: "status" });
      /** What changes while somebody looks is read anew, and shown where it was. */
      const seen = (draw) => {
        const mine = { resource: resourceOf(of), namespace: inside ?? "", name };
        mine.again = async () => {
          try {
            object = await json(path);
            if (chosen === mine) await draw();
          } catch (error) {
            if (chosen === mine) show(note, error.code === NOT_FOUND ? "It is not there any more: this is how it was." : error.message);
          }
        };
        chosen = mine;
        return draw();
      };
      const shows = {
        YAML: () => seen(() => whole(object, pane)),
        Edit: () => edit(yamlText(object), path),
        Owners: () => seen(() => owners(object, of, pane)),
        Events: () => seen(() => events(object, pane)),
        ...(of.plural === "pods" && !of.group ? { Logs: () => { close = logs(pathOf(of, inside, name), object, pane); }, Shell: () => { close = shell(pathOf(of, inside, name), object, pane); } } : {}),
        Story: () => tell(resourceOf(of), inside ?? "", name),
        Delete: () => remove(of, inside, name, pane),
      };
      const buttons = Object.entries(shows).map(([title, act]) => el("button", { type: "button", onclick: () => { leave(); show(note); act(); } }, title));
      show(detail, el("h2", {}, name), el("div", { class: "bar", role: "toolbar", "aria-label": "What to see of it" }, buttons), note, pane);
      shows.YAML();
    } catch (error) {
      show(detail, el("p", { role: "alert" }, error.message));
    }
  }

  function whole(object, pane) {
    const { legend, body } = yamlOf(object);
    const before = pane.querySelector("pre.yaml");
    const [top, isFocused] = [before?.scrollTop ?? 0, before !== null && before === document.activeElement];
    show(pane, legend, body);
    body.scrollTop = top;
    if (isFocused) body.focus();
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
      const [path, since] = [pathOf(of, inside, name), record.newest];
      caused.clear();
      await ask(path, { method: "DELETE" }).then(() => {
        show(detail, el("h2", {}, name), el("p", { role: "status" }, `${name} is being deleted`), caused.root);
        caused.follow([path], since);
      }, (error) => show(pane, error.message));
      load();
    } }, `Delete ${name}`);
    show(pane, sure);
    sure.focus();
  }

  /** YAML to change or to make: with a path it replaces that object, as `kubectl replace` does; else it is applied. */
  function edit(text, path) {
    const area = el("textarea", { rows: "20", cols: "70", spellcheck: "false", "aria-label": "YAML" });
    area.value = text;
    const outcome = el("div", { role: "status", class: "outcome" });
    // What is forced is part of the text that was sent, and not of what has become of it since.
    const send = async (dryRun, sent = { text: area.value, inside: namespace.value || "default" }, forced = new Map()) => {
      caused.clear();
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
      const since = record.newest;
      const { object, before, words } = await replace(path, whole, dryRun);
      if (!dryRun && area.value === whole) area.value = yamlText(object);
      if (!dryRun) caused.follow([path], since);
      return [el("p", {}, words), wouldChange({ before, object })];
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
      const since = record.newest;
      const done = await apply(whole, { inside, dryRun, forced: new Set(forced.keys()) });
      if (!dryRun) caused.follow(done.map((one) => one.path), since);
      const words = el("p", {}, done.map((one) => one.words).join(", "));
      const taken = forced.size ? [el("p", {}, dryRun ? "These fields would be taken:" : "These fields were taken:"), fieldList([...forced.values()].flat())] : [];
      return [words, ...taken, ...done.flatMap(wouldChange)];
    };
    const disputed = ({ message, fields }, take) => {
      const title = "As kubectl apply --server-side --force-conflicts";
      return [el("p", {}, message), fieldList(fields), take ? el("button", { type: "button", title, onclick: () => take(fields) }, "Take these fields") : null];
    };
    const target = path ? detail.querySelector(".pane") : detail;
    show(target, path ? null : el("h2", {}, "Apply YAML"), area, el("div", { class: "bar" }, el("button", { type: "button", onclick: () => send(false) }, path ? "Replace" : "Apply"), el("button", { type: "button", onclick: () => send(true) }, "Dry run")), outcome, caused.root);
    caused.clear();
    area.focus();
    // What people change stands at the beginning.
    area.setSelectionRange(0, 0);
    area.scrollTop = 0;
  }

  const again = calmly(READ_AGAIN, loadIfSeen);
  const chosenAgain = calmly(READ_AGAIN, () => !view.hidden && chosen?.again());
  /** Events are called as what they are about, and more. */
  const isOfChosen = (step) => {
    if (step.step !== "Stored" || !chosen || step.namespace !== chosen.namespace) return false;
    return step.resource === chosen.resource ? step.name === chosen.name : /^events\b/.test(step.resource) && step.name.startsWith(`${chosen.name}.`);
  };
  record.addEventListener("steps", ({ detail: steps }) => {
    const mine = current() && resourceOf(current());
    if (steps.some((step) => step.step === "Stored" && step.resource === mine)) again();
    if (steps.some(isOfChosen)) chosenAgain();
  });
  view.addEventListener("chosen", () => begin().catch((error) => show(said, error.message)));
}

/** What a dry run says that would be otherwise; nothing of what is not there yet. */
function wouldChange({ before, object }) {
  return before ? difference(`What would change of ${object.kind} ${object.metadata.name}`, before, object) : [];
}

/** Of each field who has it. */
function fieldList(fields) {
  return el("ul", { class: "fields" }, fields.map(({ field, message }) => el("li", {}, el("code", {}, field), ` ${message}`)));
}
