// What happened in a step, looked up when somebody opens it: the value in etcd, what an informer's cache holds, what a
// controller saw change. All of it is read through the API, at the revision of the step, with the rights of who looks.

import { json, kinds, pathOf, resourceOf } from "./api.js";
import { el } from "./dom.js";
import { yamlText } from "./yaml.js";

/** Fields of a difference that are shown; of further ones the number is told. */
const MAX_CHANGES = 100;
/** What changes with each write, and is asked for by nobody. */
const UNTOLD = new Set(["managedFields", "resourceVersion"]);
/** Of these no value is shown to anybody. */
const SECRETS = "secrets";

/** Elements that say it; none of a step that has nothing but its own words. `places` says by resource in which version
 * objects are stored. */
export async function happened(step, record, places = {}) {
  const seen = seenBy(step, record);
  try {
    if (step.step === "Stored") return await stored(step, places);
    return seen ? await cached(seen, step, record, places) : [];
  } catch (error) {
    return [el("p", {}, `What was there is not known any more: ${error.message}`)];
  }
}

/** The value under the key, and from what to what the write changed it. */
async function stored(step, places) {
  const at = (revision) => valueAt(step.resource, step.namespace, step.name, revision, places);
  if (step.resource === SECRETS) return [el("p", {}, "Values of Secrets are shown to nobody here.")];
  const isGone = step.operation === "delete";
  const before = step.operation === "create" ? null : await at(step.revision - 1);
  const now = isGone ? null : await at(step.revision);
  const title = isGone ? `The value that was in etcd before revision ${step.revision}` : `The value in etcd at revision ${step.revision}`;
  return [...(before && now ? difference("What the write changed", before, now) : []), ...value(title, now ?? before)];
}

/** The step by which a component saw what it does something about. */
function seenBy(step, record) {
  if (step.step === "InformerUpdated") return step;
  if (!["Enqueued", "ReconcileStarted", "SchedulingAttempt", "PodWorkerSync"].includes(step.step)) return null;
  return record.causes(step.id).find((one) => one.step === "InformerUpdated");
}

/** What a cache holds of an object, and what is new in it. */
async function cached(seen, step, record, places) {
  if (seen.resource === SECRETS) return [el("p", {}, "Values of Secrets are shown to nobody here.")];
  const [namespace, name] = seen.key.includes("/") ? seen.key.split("/") : ["", seen.key];
  const at = (revision) => valueAt(seen.resource, namespace, name, revision, places);
  const isGone = seen.callback === "OnDelete";
  const known = seen.callback === "OnAdd" ? null : heldBefore(seen, record);
  const before = known ? await at(known) : null;
  const now = isGone ? null : await at(seen.revision);
  const isOwn = seen === step;
  const what = isOwn ? "" : ` of ${seen.resource} ${seen.key}`;
  const title = `The entry in the indexer of ${seen.component}${what}${isGone ? ", which is gone now" : ""}`;
  const changed = before && now ? difference(`What ${seen.component} saw change${what}, from ${known} to ${seen.revision}`, before, now) : [];
  return [...changed, ...entry(seen), ...value(title, now ?? before)];
}

/** Under which key and in which indices it is found; where that is not noted, why. */
export function entry(seen) {
  const indices = seen.entry?.indices ?? [];
  const rows = [["key", seen.key], ...indices.map(([index, found]) => [`index ${index}`, found || "(none)"])];
  const list = el("dl", { class: "entry" }, rows.flatMap(([term, words]) => [el("dt", {}, term), el("dd", {}, words)]));
  return seen.entry ? [list] : [list, el("p", {}, "Its indices were not noted: nobody looked then, or too much happened at once.")];
}

/** The revision that the cache held before: as was noted, else what it was told of last. */
function heldBefore(seen, record) {
  if (seen.entry) return seen.entry.before;
  for (let at = seen.id - 1; at >= record.first; at -= 1) {
    const one = record.get(at);
    if (one?.step === "InformerUpdated" && one.component === seen.component && one.resource === seen.resource && one.key === seen.key) return one.revision;
  }
  return null;
}

/** An object as it was at a revision; etcd keeps old ones until it is compacted. */
export async function valueAt(resource, namespace, name, revision, places) {
  const found = (await kinds()).find((one) => resourceOf(one) === resource);
  if (!found) throw new Error(`${resource} is not served any more`);
  const version = places[resource]?.version.split("/").at(-1) ?? found.version;
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}`, resourceVersion: revision, resourceVersionMatch: "Exact" });
  const list = await json(`${pathOf({ ...found, version }, namespace)}?${query}`);
  const object = list.items?.[0];
  // What stands once for a whole list is part of each object where it is kept.
  return object ? { apiVersion: list.apiVersion, kind: found.kind, ...object } : null;
}

function value(title, object) {
  if (!object) return [];
  return [el("h3", {}, title), el("pre", { class: "value", tabindex: "0" }, yamlText(object))];
}

/** Which fields differ between an object as it was and as it is, as a table. */
export function difference(title, before, now) {
  const rows = changes(before, now);
  const shown = rows.slice(0, MAX_CHANGES).map(([path, from, to]) => el("tr", {}, el("th", { scope: "row" }, path), el("td", {}, written(from)), el("td", {}, written(to))));
  const head = el("tr", {}, ["field", "from", "to"].map((column) => el("th", { scope: "col" }, column)));
  const more = rows.length > MAX_CHANGES ? el("p", {}, `and ${rows.length - MAX_CHANGES} more`) : null;
  const body = rows.length ? el("div", { class: "table difference", tabindex: "0", role: "region", "aria-label": title }, el("table", {}, el("thead", {}, head), el("tbody", {}, shown))) : el("p", {}, "nothing but its version");
  return [el("h3", {}, title), body, more];
}

/** Which fields differ: path, from what, to what. */
function changes(before, now, path = "") {
  if (JSON.stringify(before) === JSON.stringify(now)) return [];
  const isTree = (one) => one !== null && typeof one === "object";
  const isAlike = isTree(before) && isTree(now) && Array.isArray(before) === Array.isArray(now) && (!Array.isArray(now) || before.length === now.length);
  if (!isAlike) return [[path, before, now]];
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((name) => !UNTOLD.has(name));
  const below = (name) => (Array.isArray(now) ? `${path}[${name}]` : path ? `${path}.${name}` : name);
  return names.flatMap((name) => changes(before[name], now[name], below(name)));
}

function written(value) {
  return value === undefined ? "(not there)" : JSON.stringify(value);
}
