// Every object: as kubectl's tables, by owner, as YAML that can be edited and applied, with events, logs and a
// shell.

import { ask, forgetKinds, json, kinds, pathOf, resourceOf } from "./api.js";
import { calmly, el, labelled, show } from "./dom.js";
import { terminal } from "./terminal.js";
import { yamlOf, yamlText } from "./yaml.js";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
/** Rows of a table; the rest is said to be there. */
const MAX_ROWS = 500;
/** Lines of a log. */
const MAX_LINES = 1000;
const EXAMPLE = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: default\nspec:\n  replicas: 3\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: nginx\n        image: nginx\n";

/** The view; `tell` opens a story. */
export function objectsView(view, record, tell) {
  let all = [];
  let open = null;
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
    open = [of, inside, name];
    try {
      const object = await json(pathOf(of, inside, name));
      const pane = el("div", { class: "pane" });
      const shows = {
        YAML: () => whole(object, pane),
        Edit: () => edit(yamlText(object), pathOf(of, inside, name)),
        Owners: () => owners(object, of, pane),
        Events: () => events(object, pane),
        ...(of.plural === "pods" && !of.group ? { Logs: () => logs(object, pane), Shell: () => shell(object, pane) } : {}),
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
    const rows = list.items.map((one) => el("li", { class: one.type === "Warning" ? "bad" : "" }, `${one.lastTimestamp ?? one.series?.lastObservedTime ?? one.eventTime} ${one.reason}: ${one.message}${(one.count ?? one.series?.count) > 1 ? ` (${one.count ?? one.series.count} times)` : ""}`));
    show(pane, rows.length ? el("ul", {}, rows) : el("p", {}, "no events"));
  }

  function containers(object) {
    return [...object.spec.containers, ...(object.spec.initContainers ?? [])].map((one) => one.name);
  }

  function logs(object, pane) {
    const output = el("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "Log" });
    const container = el("select", { onchange: () => read() }, containers(object).map((name) => el("option", {}, name)));
    show(pane, labelled("Container", container), output);
    let ends = new AbortController();
    const read = async () => {
      ends.abort();
      ends = new AbortController();
      close = () => ends.abort();
      show(output);
      const query = new URLSearchParams({ container: container.value, follow: "true", tailLines: MAX_LINES });
      try {
        const response = await ask(`${pathOf(open[0], open[1], open[2])}/log?${query}`, { accept: "*/*", signal: ends.signal });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          output.append(part.value);
          output.scrollTop = output.scrollHeight;
        }
      } catch (error) {
        if (error.name !== "AbortError") output.append(error.message);
      }
    };
    read();
  }

  function shell(object, pane) {
    const opened = terminal(pathOf(open[0], open[1], open[2]), containers(object)[0]);
    close = opened.close;
    show(pane, opened.root);
  }

  async function remove(of, inside, name, pane) {
    const sure = el("button", { type: "button", onclick: async () => {
      await ask(pathOf(of, inside, name), { method: "DELETE" }).then(() => show(detail, el("p", { role: "status" }, `${name} is being deleted`)), (error) => show(pane, error.message));
      load();
    } }, `Delete ${name}`);
    show(pane, sure);
    sure.focus();
  }

  /** YAML to change or to make: with a path it replaces that object, as `kubectl edit` does; else it is applied. */
  function edit(text, path) {
    const area = el("textarea", { rows: "28", cols: "70", spellcheck: "false", "aria-label": "YAML" });
    area.value = text;
    const outcome = el("p", { role: "status" });
    const send = async (dryRun) => {
      try {
        show(outcome, path ? await replace(path, area.value, dryRun) : await apply(area.value, dryRun));
        forgetKinds();
        await begin();
      } catch (error) {
        show(outcome, error.message);
      }
    };
    const target = path ? detail.querySelector(".pane") : detail;
    show(target, area, el("div", { class: "bar" }, el("button", { type: "button", onclick: () => send(false) }, path ? "Replace" : "Apply"), el("button", { type: "button", onclick: () => send(true) }, "Dry run")), outcome);
    area.focus();
  }

  async function replace(path, body, dryRun) {
    const answer = await ask(`${path}?fieldManager=kubarium-ui${dryRun ? "&dryRun=All" : ""}`, { method: "PUT", body, type: "application/yaml" });
    const { kind: of, metadata } = await answer.json();
    return `${of} ${metadata.name} ${dryRun ? "would be replaced" : "replaced"}`;
  }

  /** One after the other, since what comes first may be what the next is in. */
  async function apply(text, dryRun) {
    const done = [];
    for (const part of text.split(/^---\s*$/m).filter((one) => one.trim())) done.push(await applyOne(part, dryRun));
    return done.join(", ");
  }

  async function applyOne(body, dryRun) {
    const { apiVersion, kind: called, name, namespace: inside, generateName } = headOf(body);
    if (!apiVersion || !called || !(name || generateName)) throw new Error("there is no apiVersion, kind or metadata.name to be found");
    const [version, group] = apiVersion.includes("/") ? apiVersion.split("/").reverse() : [apiVersion, ""];
    const of = (await kinds()).find((one) => one.group === group && one.kind === called);
    if (!of) throw new Error(`no kind ${called} is served in ${apiVersion}`);
    const path = pathOf({ ...of, version }, of.namespaced ? (inside ?? (namespace.value || "default")) : "", name);
    const query = `?fieldManager=kubarium-ui&fieldValidation=Strict${dryRun ? "&dryRun=All" : ""}`;
    if (name) {
      await ask(`${path}${query}`, { method: "PATCH", body, type: "application/apply-patch+yaml" });
      return `${of.kind} ${name} ${dryRun ? "would be applied" : "applied"}`;
    }
    const made = await (await ask(`${path}${query}`, { method: "POST", body, type: "application/yaml" })).json();
    return `${of.kind} ${made.metadata.name} ${dryRun ? "would be created" : "created"}`;
  }

  const again = calmly(700, () => !view.hidden && load());
  record.addEventListener("steps", ({ detail: steps }) => {
    const mine = current() && resourceOf(current());
    if (steps.some((step) => step.step === "Stored" && step.resource === mine)) again();
  });
  view.addEventListener("chosen", () => begin().catch((error) => show(said, error.message)));
}

/** What is needed to know where an object belongs, of JSON, or of YAML as people write it. */
function headOf(body) {
  const tree = parsed(body);
  if (tree) return { apiVersion: tree.apiVersion, kind: tree.kind, ...tree.metadata };
  const value = `["']?([^"'\\s#,}]+)`;
  const top = (field) => body.match(new RegExp(`^${field}:\\s*${value}`, "m"))?.[1];
  const flow = body.match(/^metadata:\s*\{([^}]*)/m)?.[1];
  const metadata = body.match(/^metadata:\s*\n((?:[ \t]+.*\n?|\s*\n)*)/m)?.[1] ?? "";
  // What stands deeper, as a label of that name, is another one.
  const indent = metadata.match(/^[ \t]+(?=\S)/m)?.[0] ?? "";
  const within = (field) => (flow ?? metadata).match(new RegExp(flow === undefined ? `^${indent}${field}:\\s*${value}` : `(?:^|[,\\s])${field}:\\s*${value}`, "m"))?.[1];
  return { apiVersion: top("apiVersion"), kind: top("kind"), name: within("name"), namespace: within("namespace"), generateName: within("generateName") };
}

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
