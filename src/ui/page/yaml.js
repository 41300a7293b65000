// An object as YAML, each field in the colour of the manager that owns it (`metadata.managedFields`).

import { el } from "./dom.js";

/** Colours that are told apart; further managers share the last. */
const COLOURS = 8;

/** The YAML as elements, and who has which colour; `pick` is told whose entry of managedFields is chosen, by name or
 * by a field. */
export function yamlOf(object, pick) {
  const { managedFields = [], ...metadata } = object.metadata ?? {};
  const managers = managedFields.map((entry) => ({
    name: entry.subresource ? `${entry.manager} (${entry.subresource})` : entry.manager,
    how: `${entry.operation} at ${entry.time}`,
    fields: entry.fieldsV1 ?? {},
  }));
  const rows = [];
  write(rows, { ...object, metadata }, 0, managers.map((manager) => manager.fields), managers);
  const colour = (at) => `owner-${Math.min(at, COLOURS - 1)}`;
  const picking = (at) => pick && (() => pick(managedFields[at]));
  const named = (manager, at) => (pick ? el("button", { type: "button", class: "link", onclick: picking(at) }, manager.name) : manager.name);
  const legend = el("ul", { class: "legend" }, managers.map((manager, at) => el("li", { class: colour(at), title: manager.how }, named(manager, at))));
  const body = el("pre", { class: "yaml", tabindex: "0" }, rows.map(([line, owners]) => {
    const title = owners.map((at) => `${managers[at].name}: ${managers[at].how}`).join(", ");
    return el("span", owners.length ? { class: colour(owners[0]), title, onclick: picking(owners[0]) || null } : {}, `${line}\n`);
  }));
  return { legend, body };
}

/** The YAML as text, without who owns what. */
export function yamlText(object) {
  const { managedFields, ...metadata } = object.metadata ?? {};
  void managedFields;
  const rows = [];
  write(rows, { ...object, metadata }, 0, [], []);
  return rows.map(([line]) => `${line}\n`).join("");
}

/** `owned` is, of each manager, what it owns below this value; what has nothing below it is owned whole. */
function write(rows, value, depth, owned, managers) {
  const pad = "  ".repeat(depth);
  for (const [key, inner] of Object.entries(value)) {
    const below = owned.map((fields) => fields && (isEmpty(fields) ? fields : fields[`f:${key}`]));
    const owners = ownersOf(below);
    if (isEmpty(inner) || typeof inner !== "object" || inner === null) {
      rows.push([`${pad}${scalar(key)}: ${scalar(inner)}`, owners]);
    } else if (Array.isArray(inner)) {
      rows.push([`${pad}${scalar(key)}:`, owners]);
      for (const item of inner) writeItem(rows, item, depth, below, managers);
    } else {
      rows.push([`${pad}${scalar(key)}:`, owners]);
      write(rows, inner, depth + 1, below, managers);
    }
  }
}

function writeItem(rows, item, depth, owned, managers) {
  const pad = "  ".repeat(depth);
  const below = owned.map((fields) => fields && itemOf(fields, item));
  if (item === null || typeof item !== "object" || isEmpty(item)) {
    rows.push([`${pad}- ${scalar(item)}`, ownersOf(below)]);
    return;
  }
  const inner = [];
  write(inner, item, depth + 1, below, managers);
  const [[first, owners], ...rest] = inner;
  rows.push([`${pad}- ${first.trimStart()}`, owners], ...rest);
}

/** What is said of an item of a list: by its keys (`k:`), or by its value (`v:`); else of the whole list. */
function itemOf(fields, item) {
  for (const [path, below] of Object.entries(fields)) {
    if (path.startsWith("v:") && path.slice(2) === JSON.stringify(item)) return below;
    if (!path.startsWith("k:")) continue;
    const keys = Object.entries(JSON.parse(path.slice(2)));
    if (keys.every(([key, value]) => item?.[key] === value)) return below;
  }
  const isWhole = !Object.keys(fields).some((path) => path.startsWith("k:") || path.startsWith("v:"));
  return isWhole ? fields : undefined;
}

function ownersOf(below) {
  return below.flatMap((fields, at) => (fields === undefined ? [] : [at]));
}

function isEmpty(value) {
  return value !== null && typeof value === "object" && Object.keys(value).length === 0;
}

/** What YAML would take for something else is in quotes. */
function scalar(value) {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  const isPlain = /^[A-Za-z_/.][\w./:@ %+-]*$/.test(value) && !/: |:$| #| $/.test(value);
  const isWord = /^(true|false|null|yes|no|on|off|y|n|~)$/i.test(value);
  return isPlain && !isWord && Number.isNaN(Number(value)) ? value : JSON.stringify(value);
}
