// An object as YAML, each field in the colour of the manager that owns it (`metadata.managedFields`).

import { el } from "./dom.js";

/** Colours that are told apart; further managers share the last. */
const COLOURS = 8;

/** The YAML as elements, and who has which colour; `pick` is told whose entry of managedFields is chosen, by name or
 * by a field, and which field, as its path and as the way to it (see `valueIn`): what nobody has said to own has no
 * entry. By keyboard arrows lead from field to field, and Enter picks. */
export function yamlOf(object, pick) {
  const { managedFields = [], ...metadata } = object.metadata ?? {};
  const managers = managedFields.map((entry) => ({
    name: entry.subresource ? `${entry.manager} (${entry.subresource})` : entry.manager,
    // A write of the scale has no time, as upstream.
    how: entry.time ? `${entry.operation} at ${entry.time}` : entry.operation,
    fields: entry.fieldsV1 ?? {},
  }));
  const rows = [];
  write(rows, { ...object, metadata }, 0, managers.map((manager) => manager.fields), managers);
  const colour = (at) => `owner-${Math.min(at, COLOURS - 1)}`;
  const picking = (at, way) => pick && (() => pick(managedFields[at], way && pathOf(way), way));
  const named = (manager, at) => (pick ? el("button", { type: "button", class: "link", onclick: picking(at) }, manager.name) : manager.name);
  const legend = el("ul", { class: "legend" }, managers.map((manager, at) => el("li", { class: colour(at), title: manager.how }, named(manager, at))));
  const body = el("pre", { class: "yaml", tabindex: "0", onkeydown: walk, "aria-label": "Fields: arrows move, Enter leads to the write" }, rows.map(([line, owners, way]) => {
    const title = owners.map((at) => `${managers[at].name}: ${managers[at].how}`).join(", ");
    return el("span", { class: owners.length ? colour(owners[0]) : null, title: title || null, tabindex: pick ? "-1" : null, onclick: picking(owners[0], way) || null }, `${line}\n`);
  }));
  return { legend, body };
}

/** From line to line by arrows, Home and End; Enter and Space do what a click does. */
function walk(event) {
  const lines = [...event.currentTarget.children];
  const at = lines.indexOf(document.activeElement);
  if (event.key === "Enter" || event.key === " ") {
    if (at < 0) return;
    lines[at].click();
  } else {
    const to = { ArrowDown: Math.min(at + 1, lines.length - 1), ArrowUp: Math.max(at - 1, 0), Home: 0, End: lines.length - 1 }[event.key];
    if (to === undefined) return;
    lines[to].focus();
  }
  event.preventDefault();
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
function write(rows, value, depth, owned, managers, within = []) {
  const pad = "  ".repeat(depth);
  for (const [key, inner] of Object.entries(value)) {
    const way = [...within, key];
    const below = owned.map((fields) => fields && (isEmpty(fields) ? fields : fields[`f:${key}`]));
    if (isEmpty(inner) || typeof inner !== "object" || inner === null) {
      rows.push([`${pad}${scalar(key)}: ${scalar(inner)}`, ownersOf(below), way]);
      continue;
    }
    rows.push([`${pad}${scalar(key)}:`, ownersOf(below), way]);
    if (Array.isArray(inner)) writeItems(rows, inner, depth, below, managers, way);
    else write(rows, inner, depth + 1, below, managers, way);
  }
}

function writeItems(rows, items, depth, owned, managers, within) {
  const pad = "  ".repeat(depth);
  for (const [at, item] of items.entries()) {
    const found = owned.map((fields) => fields && itemOf(fields, item));
    const below = found.map((one) => one?.fields);
    const way = [...within, found.find((one) => one?.known)?.known ?? { at }];
    if (item === null || typeof item !== "object" || isEmpty(item)) {
      rows.push([`${pad}- ${scalar(item)}`, ownersOf(below), way]);
      continue;
    }
    const inner = [];
    if (Array.isArray(item)) writeItems(inner, item, depth + 1, below, managers, way);
    else write(inner, item, depth + 1, below, managers, way);
    const [[first, owners, field], ...rest] = inner;
    rows.push([`${pad}- ${first.trimStart()}`, owners, field], ...rest);
  }
}

/** As people write it: `spec.containers.image`. */
function pathOf(way) {
  return way.filter((part) => typeof part === "string").join(".");
}

/** What is at the end of a way: of names, and of items of lists, which are known by their keys, by what they are, or
 * by where they stand. */
export function valueIn(object, way) {
  return way.reduce((value, part) => {
    if (typeof part === "string") return value?.[part];
    if (!Array.isArray(value)) return undefined;
    return "at" in part ? value[part.at] : value.find((item) => isKnownAs(item, part));
  }, object);
}

function isKnownAs(item, { keys, is }) {
  return keys ? Object.entries(keys).every(([key, value]) => item?.[key] === value) : JSON.stringify(item) === is;
}

/** What is said of an item of a list, and as what it is known: by its keys (`k:`), or by its value (`v:`); else what is
 * said of the whole list. */
function itemOf(fields, item) {
  for (const [path, below] of Object.entries(fields)) {
    const text = path.slice(2);
    const known = path.startsWith("v:") ? { is: text } : path.startsWith("k:") ? { keys: JSON.parse(text) } : null;
    if (known && isKnownAs(item, known)) return { fields: below, known };
  }
  const isWhole = !Object.keys(fields).some((path) => path.startsWith("k:") || path.startsWith("v:"));
  return isWhole ? { fields } : undefined;
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
  const isWord = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i.test(value);
  return isPlain && !isWord && Number.isNaN(Number(value)) ? value : JSON.stringify(value);
}
