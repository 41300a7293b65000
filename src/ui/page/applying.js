// Manifests that are applied, as `kubectl apply --server-side` does it.

import { ask, kinds, pathOf } from "./api.js";

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
 * and the object. A `Conflict` names the fields that somebody else has; they are taken by those objects of the text
 * that are `forced`. */
export async function apply(text, { inside = "default", dryRun = false, forced = new Set() } = {}) {
  const done = [];
  for (const [at, part] of text.split(/^---\s*$/m).filter((one) => one.trim()).entries()) {
    try {
      done.push(await applyOne(part, { inside, dryRun, force: forced.has(at) }));
    } catch (error) {
      if (error instanceof Conflict) error.at = at;
      throw error;
    }
  }
  return done;
}

async function applyOne(body, { inside, dryRun, force }) {
  const { apiVersion, kind: called, name, namespace, generateName } = headOf(body);
  if (!apiVersion || !called || !(name || generateName)) throw new Error("there is no apiVersion, kind or metadata.name to be found");
  const [version, group] = apiVersion.includes("/") ? apiVersion.split("/").reverse() : [apiVersion, ""];
  const of = (await kinds()).find((one) => one.group === group && one.kind === called);
  if (!of) throw new Error(`no kind ${called} is served in ${apiVersion}`);
  const path = pathOf({ ...of, version }, of.namespaced ? (namespace ?? inside) : "", name);
  const query = `?fieldManager=${MANAGER}&fieldValidation=Strict${dryRun ? "&dryRun=All" : ""}`;
  if (!name) {
    const object = await (await ask(`${path}${query}`, { method: "POST", body, type: "application/yaml" })).json();
    return { object, of, words: `${of.kind} ${object.metadata.name} ${dryRun ? "would be created" : "created"}` };
  }
  const sent = { method: "PATCH", body, type: "application/apply-patch+yaml" };
  const object = await (await ask(`${path}${query}${force ? "&force=true" : ""}`, sent).catch(conflicting)).json();
  return { object, of, words: `${of.kind} ${name} ${dryRun ? "would be applied" : "applied"}` };
}

/** A refusal that says which fields are whose is one that can be overruled. */
function conflicting(error) {
  const causes = (error.status?.details?.causes ?? []).filter(({ reason }) => reason === "FieldManagerConflict");
  throw causes.length ? new Conflict(error.message, causes.map(({ field, message }) => ({ field, message }))) : error;
}

/** An object as it is to be from now on, as `kubectl edit` does it. */
export async function replace(path, body, dryRun) {
  const answer = await ask(`${path}?fieldManager=${MANAGER}${dryRun ? "&dryRun=All" : ""}`, { method: "PUT", body, type: "application/yaml" });
  const { kind, metadata } = await answer.json();
  return `${kind} ${metadata.name} ${dryRun ? "would be replaced" : "replaced"}`;
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
