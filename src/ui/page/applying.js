// Manifests that are applied, as `kubectl apply --server-side` does it.

import { ask, json, kinds, pathOf } from "./api.js";

const NOT_FOUND = 404;

/** Under which name the page's own writes stand in `metadata.managedFields`. */
const MANAGER = "kubarium-ui";

/** Fields that others have said to own and that are to be something else now. */
export class Conflict extends Error {
  /** Which object of the text it is about, counted from 0. */
  at = 0;
  /** Of each field who has it. */
  fields;

  constructor(message, fields) {
    super(message);
    this.fields = fields;
  }
}

/** Each object of a text, one after the other, since what comes first may be what the next is in: what became of it,
 * the object, what it was `before` a dry run (null: it was not there), and the path that was asked. A `Conflict` names the fields that somebody else has; they are taken by those objects of the text
 * that are `forced`. */
export async function apply(text, { inside = "default", dryRun = false, forced = new Set() } = {}) {
  const all = await manifests(text);
  if (!all.length) throw new Error("there is nothing to apply: the text has no object in it");
  const done = [];
  for (const [at, manifest] of all.entries()) {
    try {
      done.push(await applyOne(manifest, { inside, dryRun, force: forced.has(at) }));
    } catch (error) {
      if (error instanceof Conflict) error.at = at;
      throw error;
    }
  }
  return done;
}

/** The objects of a text, those of a List each by itself: what each is, and what is sent of it. Where a document is one
 * object its own text is sent, in which the server sees what is said twice. */
async function manifests(text) {
  const documents = (await json("/manifests", { method: "POST", body: text, type: "application/yaml" })).filter((one) => one !== null);
  const parts = text.split(/^---\s*$/m).filter((one) => one.trim());
  const textOf = (at) => (parts.length === documents.length ? parts[at] : JSON.stringify(documents[at]));
  return documents.flatMap((head, at) => itemsOf(head)?.map((item) => ({ head: item, body: JSON.stringify(item) })) ?? [{ head, body: textOf(at) }]);
}

/** As kubectl takes a list apart; what is in a list of one kind may leave it to the list to say which. */
function itemsOf({ apiVersion, kind, items }) {
  if (typeof kind !== "string" || !kind.endsWith("List") || !Array.isArray(items)) return null;
  const named = kind === "List" ? {} : { apiVersion, kind: kind.slice(0, -"List".length) };
  return items.map((item) => ({ ...named, ...item }));
}

/** What an object has to say of itself, and does not. */
function lackedBy({ apiVersion, kind, metadata }) {
  const said = { apiVersion, kind, "metadata.name": metadata?.name || metadata?.generateName };
  return Object.keys(said).filter((field) => typeof said[field] !== "string" || !said[field]);
}

async function applyOne({ head, body }, { inside, dryRun, force }) {
  const lacked = lackedBy(head);
  if (lacked.length) throw new Error(`an object has no ${lacked.join(", no ")}`);
  const { apiVersion, kind: called } = head;
  const { name, namespace } = head.metadata;
  const [version, group] = apiVersion.includes("/") ? apiVersion.split("/").reverse() : [apiVersion, ""];
  const of = (await kinds()).find((one) => one.group === group && one.kind === called);
  if (!of) throw new Error(`no kind ${called} is served in ${apiVersion}`);
  const path = pathOf({ ...of, version }, of.namespaced ? (namespace ?? inside) : "", name);
  const query = `?fieldManager=${MANAGER}&fieldValidation=Strict${dryRun ? "&dryRun=All" : ""}`;
  if (!name) {
    const object = await (await ask(`${path}${query}`, { method: "POST", body, type: "application/yaml" })).json();
    return { object, of, path, before: null, words: `${of.kind} ${object.metadata.name} ${dryRun ? "would be created" : "created"}` };
  }
  const before = dryRun ? await asItIs(path) : undefined;
  const sent = { method: "PATCH", body, type: "application/apply-patch+yaml" };
  const object = await (await ask(`${path}${query}${force ? "&force=true" : ""}`, sent).catch(conflicting)).json();
  return { object, of, path, before, words: `${of.kind} ${name} ${!dryRun ? "applied" : before === null ? "would be created" : "would be applied"}` };
}

/** A refusal that says which fields are whose is one that can be overruled. */
function conflicting(error) {
  const causes = (error.status?.details?.causes ?? []).filter(({ reason }) => reason === "FieldManagerConflict");
  throw causes.length ? new Conflict(error.message, causes.map(({ field, message }) => ({ field, message }))) : error;
}

/** Null if there is no such object, undefined if nobody says. */
function asItIs(path) {
  return json(path).catch(({ code }) => (code === NOT_FOUND ? null : undefined));
}

/** An object as it is to be from now on: what became of it, the object as it is then, and what it was before a dry run. */
export async function replace(path, body, dryRun) {
  const before = dryRun ? await asItIs(path) : undefined;
  const answer = await ask(`${path}?fieldManager=${MANAGER}${dryRun ? "&dryRun=All" : ""}`, { method: "PUT", body, type: "application/yaml" });
  const object = await answer.json();
  return { object, before, words: `${object.kind} ${object.metadata.name} ${dryRun ? "would be replaced" : "replaced"}` };
}
