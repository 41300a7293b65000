// The story of one object: every step that made it what it is, what each is caused by and led to, and who wrote
// which field.

import { json, kindNamed, pathOf } from "./api.js";
import { calmly, el, labelled, show } from "./dom.js";
import { happened, valueAt } from "./happened.js";
import { subjectOf } from "./record.js";
import { valueIn, yamlOf } from "./yaml.js";

/** What every step has, told apart from what it says. */
const FRAME = new Set(["id", "cause", "atMicroseconds", "step", "component", "words", "entry", "isBeat"]);

/** So many steps that one led to are listed; of further ones the number is told. */
const MAX_EFFECTS = 200;

/** Values of an object that are looked up for one field, at most. */
const MAX_VALUES = 50;
/** Writes, and requests, of which a saved story has the values and bodies: the last ones. */
const MAX_SAVED = 100;
const NOT_FOUND = 404;
const GENERATION = "metadata.generation";
/** What the steps of a request are, from its coming to its answer: of these headers and bodies are kept. */
const OF_REQUEST = new Set([
  "RequestReceived", "TraceContinued", "Authenticated", "NotAuthenticated", "Impersonated", "Authorized", "NotAuthorized", "Routed", "Decoded", "Admitted", "WebhookCalled", "Denied",
  "Validated", "Stored", "ReadBack", "Terminating", "PassedOn", "Responded", "DryRun", "Refused",
]);

/** The view; `tell` shows the story of an object. */
export function storyView(view, record) {
  /** By a step's name: where the code is that does it, and what the real component is called. */
  let sources = {};
  fetch("/sources.json").then(async (response) => (sources = await response.json())).catch(() => {});
  let shown = null;
  let chosen = null;
  /** How often a field or a name was picked. */
  let picked = 0;
  const kind = el("input", { value: "pods", size: "24", required: true });
  const namespace = el("input", { value: "default", size: "16" });
  const name = el("input", { size: "28", required: true });
  const save = el("button", { type: "button", onclick: saveStory }, "Save as HTML");
  const form = el("form", { class: "bar", onsubmit: asked }, labelled("Kind", kind), labelled("Namespace", namespace), labelled("Name", name), el("button", {}, "Tell"), save);
  const said = el("p", { role: "status" });
  const list = el("ol", { class: "story", "aria-label": "Steps" });
  const detail = el("aside", { class: "detail", "aria-label": "The chosen step", tabindex: "-1" });
  const fields = el("section", { class: "fields", "aria-label": "Who wrote which field" });
  show(view, form, said, el("div", { class: "columns" }, list, el("div", {}, detail, fields)));

  function asked(event) {
    event.preventDefault();
    load();
  }

  /** `id` is of the step that is to be opened. */
  async function load(id) {
    try {
      const query = new URLSearchParams({ resource: kind.value, namespace: namespace.value, name: name.value, standing: true });
      const told = await json(`/flowz?${query}`);
      shown = told;
      paint(told);
      const step = id && record.get(id);
      if (step) {
        const button = list.querySelector(`[data-step="${id}"]`);
        choose(step, button);
        button?.scrollIntoView({ block: "nearest" });
      }
      await paintFields();
    } catch (error) {
      // What was told of another object is none of this one's; of who does not answer it is still how it was.
      if (error.code === NOT_FOUND) forget();
      show(said, error.code === NOT_FOUND ? `There is no such kind: ${error.message.trim()}` : error.message);
    }
  }

  function forget() {
    shown = null;
    chosen = null;
    for (const part of [list, detail, fields]) show(part);
  }

  function paint(told) {
    const end = told.steps.at(-1);
    const length = end ? `${told.steps.length} steps in ${lasted(end.atMicroseconds)}` : `nothing is recorded${told.forgotten ? " as far back as the record goes" : ""}`;
    show(said, `${told.subject}: ${length}${told.beginsForgotten ? "; the beginning is forgotten" : ""}`);
    const opening = (step) => el("button", { class: "link", "data-step": step.id, onclick: (event) => choose(step, event.currentTarget) }, line(step));
    show(list, [...listOf(told, opening).children]);
  }

  /** What is known of a step: what it says, what it is caused by back to the first, what it led to. */
  function choose(step, button) {
    detail.scrollIntoView({ block: "nearest" });
    chosen?.removeAttribute("aria-current");
    chosen = button;
    chosen?.setAttribute("aria-current", "step");
    const other = (one) => el("li", {}, el("button", { class: "link", onclick: () => choose(one, null) }, `#${one.id} ${one.component || "you"}: ${one.words}`));
    const causes = record.causes(step.id);
    const all = record.effects(step.id);
    const effects = all.slice(0, MAX_EFFECTS);
    const way = [step, ...causes];
    const request = way.find((one) => one.step === "RequestReceived");
    const sent = el("section", { "aria-label": "What was sent and what came back" });
    if (request) paintSent(sent, request, way.slice(0, way.indexOf(request)).every((one) => OF_REQUEST.has(one.step)));
    const found = el("section", { "aria-label": "What was there" });
    happened(step, record, shown?.storage).then((elements) => show(found, elements));
    show(
      detail,
      el("h2", {}, `#${step.id} ${step.step}`),
      el("p", {}, step.words),
      facts(step, shown?.storage, placeOf(step)),
      found,
      sent,
      el("h3", {}, "Caused by"),
      causes.length ? el("ol", {}, ends(causes, other)) : el("p", {}, "nobody: it is where this story begins"),
      el("h3", {}, "Led to"),
      effects.length ? el("ol", {}, effects.map(other)) : el("p", {}, "nothing yet"),
      all.length > MAX_EFFECTS ? el("p", {}, `and ${all.length - MAX_EFFECTS} more`) : null,
    );
  }

  /** Where our code is that does a step, and what does it in the real cluster. */
  function placeOf(step) {
    const source = sources[step.step];
    if (!source) return [];
    const words = `${source.file}:${source.line}`;
    return [["our code", el("a", { href: source.link, target: "_blank" }, words), words], ["the real one", source.real, source.real]];
  }

  /** The story as one file that needs nothing else: for a talk, a book or a bug report. */
  async function saveStory() {
    if (!shown) return;
    const told = shown;
    const style = await (await fetch("/page/style.css")).text();
    const found = await lookedUp(told);
    const list = listOf(told, (step) => el("details", {}, el("summary", {}, line(step)), facts(step, told.storage, placeOf(step).map(([term, , words]) => [term, words])), found.get(step.id) ?? null));
    download(told, styled(fileOf(told, list), style));
  }

  /** Of a story's writes what they changed, and of its requests what was sent: whoever reads the file cannot ask. */
  async function lookedUp(told) {
    const all = told.steps.map((step) => asRecorded(step, record));
    const some = (kind) => all.filter((step) => step.step === kind).slice(-MAX_SAVED);
    const sent = ({ id }) => json(`/kubarium/v1/exchanges?step=${id}`).then(({ exchanges }) => exchanges.slice(0, 1).flatMap((one) => exchanged(one, true)), () => []);
    const asked = some("RequestReceived").map(async (step) => [step.id, await sent(step)]);
    const written = some("Stored").map(async (step) => [step.id, await happened(step, record, told.storage)]);
    return new Map(await Promise.all([...asked, ...written]));
  }

  /** The steps, below the component in which each happened. */
  function listOf(told, shownAs) {
    let before = "";
    const lines = told.steps.map((step) => {
      const full = record.get(step.id) ?? { ...step, words: step.step, component: "" };
      const heading = full.component !== before ? el("li", { class: "heading" }, full.component || "you") : null;
      before = full.component;
      return [heading, el("li", {}, shownAs({ ...full, atMicroseconds: step.atMicroseconds }))];
    });
    const standing = (told.standing ?? []).map((words) => el("li", { class: "standing" }, `=> ${words}`));
    return el("ol", { class: "story" }, lines.flat(), standing.length ? el("li", { class: "heading" }, "How it stands") : null, standing);
  }

  /** The object as it is, each field with who wrote it. */
  async function paintFields() {
    const told = shown;
    const found = await kindNamed(kind.value);
    if (!found) {
      show(fields, el("h2", {}, "No such kind is served"));
      return;
    }
    const object = await json(pathOf(found, namespace.value, name.value)).catch((error) => {
      show(fields, el("h2", {}, whyMissing(told, error)));
    });
    if (!object) return;
    const { legend, body } = yamlOf(object, async (entry, path, way) => {
      picked += 1;
      const mine = picked;
      const written = await writeThatMade({ told, object, entry, path, way }, record);
      // Values are looked up meanwhile: another field may have been chosen.
      if (mine !== picked) return undefined;
      if (written?.id) return choose(written, null);
      const whose = entry ? `The write of ${entry.manager}${entry.time ? ` at ${entry.time}` : ""}` : `The write of ${path}`;
      const why = written?.from ? `Nobody has changed ${path} after revision ${written.from.revision}; what was before that is not known any more.` : `${whose} is not remembered.`;
      return show(detail, el("p", { role: "status" }, why));
    });
    show(fields, el("h2", {}, "Who wrote which field"), el("p", {}, "A name or a field leads to the request that wrote it."), legend, body);
  }

  const again = calmly(500, () => shown && !view.hidden && load());
  record.addEventListener("steps", ({ detail: steps }) => {
    const mine = (step) => step.name === name.value || (step.pod ?? step.key ?? "").endsWith(`/${name.value}`);
    if (shown && steps.some(mine)) again();
  });
  return {
    tell(resource, inside, called, id) {
      [kind.value, namespace.value, name.value] = [resource, inside, called];
      load(id);
    },
    /** A step that belongs to no object's story. */
    open(step) {
      forget();
      show(said);
      choose(step, null);
    },
  };
}

/** The write that led to what somebody has chosen: to what a manager has, or to a field. */
async function writeThatMade({ told, object, entry, path, way }, record) {
  if (!entry) return path === GENERATION ? writeOfGeneration(told, object, record) : writeOfUnowned(told, path, record);
  if (!way) return writeOf(told, entry, record);
  const { written, from } = await writeOfValue(told, object.metadata.uid, way, record);
  if (written) return written;
  // Of those who wrote later it is known that they did not write this.
  const ofManager = from && writeOf(told, entry, record);
  return ofManager?.id <= from?.id ? ofManager : { from };
}

/** The last write that has changed a field: whoever owns it may have written it long before what else they own. Where
 * the values are not known any more, or too many would have to be looked up: from which write on it was no other. */
async function writeOfValue(told, uid, way, record) {
  const all = writesThatLeft(told, uid);
  // Of an item of a list the record says where it stood then.
  const names = way.slice(0, way.findIndex((part) => typeof part !== "string") >>> 0);
  const isPlain = names.length === way.length;
  const known = new Map();
  const after = async ({ resource, namespace, name, revision }) => {
    if (!known.has(revision)) known.set(revision, JSON.stringify(valueIn(await valueAt(resource, namespace, name, revision, told.storage), way)));
    return known.get(revision);
  };
  for (const [at, write] of [...all.entries()].reverse()) {
    if (at === 0 && write.operation === "create") return { written: asRecorded(write, record) };
    const said = saysChange(write, names.join("."), record);
    const isKnown = said === false || (said && isPlain);
    try {
      if (!isKnown && (at === 0 || known.size > MAX_VALUES)) return { from: write };
      if (isKnown ? said : (await after(write)) !== (await after(all[at - 1]))) return { written: asRecorded(write, record) };
    } catch {
      // They are compacted.
      return { from: write };
    }
  }
  return {};
}

/** Whether a write changed a field, as far as the record has what it changed. */
function saysChange(write, path, record) {
  const changed = (requestOf(write, "Validated", record)?.changed ?? []).map((one) => one.path);
  if (changed.some((one) => one === path || one.startsWith(`${path}.`) || one.startsWith(`${path}[`) || path.startsWith(`${one}.`))) return true;
  // Of very many only the number is told.
  return !changed.length || changed.some((one) => one.startsWith("and ")) ? undefined : false;
}

/** The write by which a manager came by what it owns: the last of that second, of that part of the object, by the name
 * that the request gave, or else by who asked, as far as these are known. A write of the scale is noted without a time,
 * as upstream. */
function writeOf(told, { manager, time, operation, subresource = "" }, record) {
  const second = (at) => Math.floor((told.beganUnixMicroseconds + at) / 1e6);
  // The time is noted before what is written lies in etcd.
  const took = (step) => {
    const [end, begin] = [record.get(step.id), requestOf(step, "RequestReceived", record)];
    return end && begin ? end.atMicroseconds - begin.atMicroseconds : 0;
  };
  const isThen = (step, noted) => second(step.atMicroseconds - took(step)) <= noted && noted <= second(step.atMicroseconds);
  const then = writesOf(told, subresource, record).filter((step) => !time || isThen(step, Date.parse(time) / 1000));
  const isNamed = (step) => requestOf(step, "Routed", record)?.options?.split("&").includes(`fieldManager=${encodeURIComponent(manager)}`);
  const isBy = (step) => managerOf(requestOf(step, "RequestReceived", record)?.user ?? "") === manager;
  const isOther = (step) => !managerOf(requestOf(step, "RequestReceived", record)?.user ?? "");
  const fitting = [isNamed, isBy, isOther].map((fits) => then.filter(fits)).find((found) => found.length);
  // What is applied is applied once more; who updates has made what it owns, if it has made the object in that second.
  const written = operation === "Update" ? (fitting?.find((step) => step.operation === "create") ?? fitting?.at(-1)) : fitting?.at(-1);
  return written && asRecorded(written, record);
}

/** Why an object is not shown: what never was is not gone. */
function whyMissing(told, error) {
  if (error.code !== NOT_FOUND) return `It cannot be read: ${error.message}`;
  if (told.uid || told.steps.some((step) => isWriteOf(step, told))) return "It is not there any more";
  return told.forgotten ? "There is no such object, and none was seen as far back as the record goes" : "There is no such object, and the record has never seen one";
}

/** Of what nobody has said to own: the binding wrote the node's name, each write the version, and what is left came
 * with the object. */
function writeOfUnowned(told, path, record) {
  const [whole, status, bound] = ["", "status", "binding"].map((part) => writesOf(told, part, record));
  const all = [...whole, ...status, ...bound].sort((one, other) => one.id - other.id);
  const of = path === "spec.nodeName" ? bound : path.startsWith("status") ? status : path === "metadata.resourceVersion" ? all : whole.filter((step) => step.operation === "create");
  const written = of.at(-1);
  return written && asRecorded(written, record);
}

/** The first write after which the generation is what it is: it only grows, so that few values have to be looked up. None
 * where the value before is not known any more. */
async function writeOfGeneration(told, { metadata }, record) {
  const all = writesThatLeft(told, metadata.uid);
  // What an object begins with needs no look at what is compacted by now.
  if (metadata.generation === 1 && all[0]?.operation === "create") return asRecorded(all[0], record);
  const known = new Map();
  const isThereAfter = async (at) => {
    const { resource, namespace, name, revision } = all[at];
    if (!known.has(at)) known.set(at, await valueAt(resource, namespace, name, revision, told.storage).catch(() => null));
    return known.get(at)?.metadata.generation >= metadata.generation;
  };
  let [before, after] = [-1, all.length - 1];
  while (after - before > 1) {
    const half = (before + after) >> 1;
    if (await isThereAfter(half)) after = half;
    else before = half;
  }
  const isFirst = before < 0 ? all[0]?.operation === "create" : known.get(before);
  return isFirst && asRecorded(all[after], record);
}

/** A step of a story with what the record has of it beside: its words, and where it happened. */
function asRecorded(step, record) {
  return { ...record.get(step.id), ...step };
}

/** The writes of the story's own object, of one part of it: a subresource, or all the rest. */
function writesOf(told, subresource, record) {
  const isPart = (step) => subresourceOf(requestOf(step, "RequestReceived", record)?.path ?? "") === subresource;
  return told.steps.filter((step) => isWriteOf(step, told) && isPart(step));
}

/** The writes after which there was a value of this very object. */
function writesThatLeft(told, uid) {
  return told.steps.filter((step) => isWriteOf(step, told) && step.uid === uid && step.operation !== "delete");
}

function isWriteOf(step, told) {
  return step.step === "Stored" && subjectOf(step) === told.subject;
}

function requestOf(step, kind, record) {
  return record.causes(step.id).find((one) => one.step === kind);
}

/** What stands behind the object's name in a path of the API. */
function subresourceOf(path) {
  const parts = path.split("/").filter(Boolean);
  const below = parts.slice(parts[0] === "api" ? 2 : 3);
  const isInNamespace = below[0] === "namespaces" && below.length > 2 && !["status", "finalize"].includes(below[2]);
  return (isInNamespace ? below.slice(4) : below.slice(2)).join("/");
}

/** What a component's writes are called in managedFields; of people nobody knows it. */
function managerOf(user) {
  if (user.startsWith("system:node:")) return "kubelet";
  if (user === "system:kube-scheduler") return "kube-scheduler";
  return user.startsWith("system:serviceaccount:kube-system:") || user === "system:kube-controller-manager" ? "kube-controller-manager" : "";
}

/** What led to a step at once, and what it all began with: a long way has a gap. */
function ends(causes, shownAs) {
  const [near, far] = [20, 12];
  if (causes.length <= near + far) return causes.map(shownAs);
  const between = el("li", {}, `... ${causes.length - near - far} more ...`);
  return [...causes.slice(0, near).map(shownAs), between, ...causes.slice(-far).map(shownAs)];
}

/** Headers and bodies of the request to which a step belongs or which led to it, as far as they are kept and we may read
 * them. Why they are not is told of a step that `isOwn` to the request alone: others have none. */
async function paintSent(sent, request, isOwn) {
  try {
    const { exchanges, isKept, withheld, maxExchanges } = await json(`/kubarium/v1/exchanges?step=${request.id}`);
    const why = isOwn ? el("p", {}, whyNot(isKept, withheld, maxExchanges)) : null;
    show(sent, exchanges.length ? exchanged(exchanges[0], isOwn) : why);
  } catch (error) {
    if (isOwn) show(sent, el("p", {}, error.message));
  }
}

function whyNot(isKept, withheld, maxExchanges) {
  if (withheld) return "Headers and bodies are for those who may read all objects of this resource here; those of secrets for nobody.";
  const kept = isKept ? `the last ${maxExchanges} writes of people, and as many of components` : "writes that come while the page is open";
  return `No headers and bodies of this request are kept: it is a secret, was refused before it was read, or is older than what is. Kept are those of ${kept}.`;
}

function exchanged({ line, request, response }, isOwn) {
  const message = (title, { headers, body }) => [
    el("h3", {}, title),
    el("dl", {}, headers.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "(not kept)")])),
    body.bytes ? el("pre", { class: "sent", tabindex: "0" }, bodyText(body)) : null,
  ];
  const answer = response ? message(`Answer: ${response.code}`, response) : [el("p", {}, "There is no answer yet.")];
  return [...message(`${isOwn ? "Request" : "The request that led to it"}: ${line}`, request), ...answer];
}

function bodyText({ text, bytes, isCut }) {
  if (!text) return `(${bytes} bytes that are no text, or more of it than is kept)`;
  if (isCut) return `${text}... (${bytes} bytes in all)`;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A value as people read it: what is alike is a table, a row each. */
function text(value) {
  if (!Array.isArray(value)) return value !== null && typeof value === "object" ? pairs(Object.entries(value)) : String(value);
  if (value.length && value.every((one) => !Array.isArray(one) && typeof one === "object")) return tableOf(value.map(spread));
  return el("ul", {}, value.map((one) => el("li", {}, Array.isArray(one) ? one.join(": ") : String(one))));
}

function pairs(entries) {
  return entries.map(([key, one]) => `${key} ${Array.isArray(one) ? one.join(", ") : one}`).join(", ");
}

/** A row of a table: pairs, as scores by plugin, are columns of their own. */
function spread(row) {
  return Object.fromEntries(Object.entries(row).flatMap(([key, value]) => (isPairs(value) ? value : [[key, Array.isArray(value) ? value.join(", ") : value]])));
}

function isPairs(value) {
  return Array.isArray(value) && value.length > 0 && value.every((one) => Array.isArray(one) && one.length === 2);
}

function tableOf(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))];
  const head = el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": columns.join(", ") }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((column) => el("td", {}, String(row[column] ?? ""))))))));
}

/** Under which key of etcd it is, as far as the server has said where it keeps what is of its kind. */
function etcdKey(step, storage) {
  const place = step.step === "Stored" && storage?.[step.resource];
  return place ? `${place.prefix}${step.namespace ? `${step.namespace}/` : ""}${step.name}` : "";
}

/** For people: three digits or so, as `kubarium trace` writes it. */
export function lasted(microseconds) {
  if (microseconds < 1e6) return `${(microseconds / 1e3).toFixed(1)} ms`;
  if (microseconds < 1e8) return `${(microseconds / 1e6).toFixed(2)} s`;
  const seconds = Math.floor(microseconds / 1e6);
  return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`;
}

function line(step) {
  return `${(step.atMicroseconds / 1000).toFixed(3)} ms  ${step.words}`;
}

/** What a step says, under which key of etcd it is, and `more`. */
function facts(step, storage, more) {
  const isSaid = (value) => value !== "" && !(Array.isArray(value) && !value.length);
  const rows = Object.entries(step).filter(([key, value]) => !FRAME.has(key) && isSaid(value));
  const key = etcdKey(step, storage);
  const all = [...rows.map(([term, value]) => [term, text(value)]), ...(key ? [["etcd key", el("code", {}, key)]] : []), ...more];
  return el("dl", {}, all.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
}

/** A page by itself, in which each step opens without a script. */
function fileOf(told, list) {
  const page = document.implementation.createHTMLDocument(`The story of ${told.subject}`);
  page.documentElement.lang = "en";
  const add = (tag, text, to, attributes = {}) => {
    const made = page.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    to.append(made);
    return made;
  };
  add("meta", "", page.head, { charset: "utf-8" });
  add("meta", "", page.head, { name: "viewport", content: "width=device-width, initial-scale=1" });
  const main = add("main", "", page.body);
  add("h1", `The story of ${told.subject}`, main);
  main.append(page.importNode(list, true));
  add("script", JSON.stringify(told).replaceAll("<", "\\u003c"), page.body, { type: "application/json" });
  return page;
}

/** Its text, with the style in it: as an element that would be of this page, whose policy allows none. */
function styled(page, style) {
  const tag = "style";
  const rules = `<${tag}>${style}\n.story { max-height: none; }\n</${tag}></head>`;
  return `<!doctype html>\n${page.documentElement.outerHTML.replace("</head>", () => rules)}`;
}

function download(told, html) {
  const file = new Blob([html], { type: "text/html" });
  const link = el("a", { href: URL.createObjectURL(file), download: `${told.subject.replaceAll(/[ /]/g, "-")}.html` });
  link.click();
  // A browser may read what it saves after this: the file is let go when it surely has.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
