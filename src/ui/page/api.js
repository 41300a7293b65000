// The session, and requests in its name. The key is kept for this tab alone, and is never in an address.

const KEPT = "kubarium-session";
/** The code of an answer to who may not ask this. */
export const FORBIDDEN = 403;
let session = null;

/** Who is let in: by the invitation in the link, or by the session that this tab has. */
export async function enter() {
  const invitation = location.hash.slice(1);
  if (invitation) {
    history.replaceState(null, "", location.pathname);
    const response = await fetch("/session", { method: "POST", body: invitation });
    if (response.ok) {
      session = await response.json();
      sessionStorage.setItem(KEPT, JSON.stringify(session));
      return session.user;
    }
    if (!sessionStorage.getItem(KEPT)) throw new Error(await response.text());
  }
  session = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  if (!session) throw new Error("This page opens with a link that `kubarium ui` prints.");
  return session.user;
}

/** Nobody answered at all. */
export class Unanswered extends Error {
  constructor() {
    super("the cluster has ended or does not answer");
  }
}

/** A browser says of whoever does not answer only that something was no success. */
function unanswered(error) {
  throw error instanceof TypeError ? new Unanswered() : error;
}

/** A request to the API; what fails throws the message of its Status, and the Status and the code with it. */
export async function ask(path, { method = "GET", body, type, accept = "application/json", signal } = {}) {
  const headers = { authorization: `Bearer ${session.session}`, accept };
  if (body !== undefined) headers["content-type"] = type ?? "application/json";
  const response = await fetch(path, { method, body, headers, signal }).catch(unanswered);
  if (response.ok) return response;
  if (response.status === 401) sessionStorage.removeItem(KEPT);
  const text = await response.text();
  const status = statusIn(text);
  const error = new Error(status?.message || text || `${response.status} ${response.statusText}`);
  error.status = status;
  error.code = response.status;
  throw error;
}

function statusIn(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The answer as JSON. */
export async function json(path, options) {
  return (await ask(path, options)).json();
}

/** Each line of the answer as JSON, as it comes; `began` is called when there is an answer. */
export async function* lines(path, began = () => {}, signal) {
  const reader = (await ask(path, { signal })).body.pipeThrough(new TextDecoderStream()).getReader();
  began();
  // A line comes in many pieces: only what is new of it is looked at.
  let begun = [];
  for (;;) {
    const { done, value } = await reader.read().catch(unanswered);
    if (done) return;
    const parts = value.split("\n");
    for (const part of parts.slice(0, -1)) {
      const line = begun.length ? begun.join("") + part : part;
      begun = [];
      if (line) yield JSON.parse(line);
    }
    begun.push(parts.at(-1));
  }
}

/** A websocket in the session's name; a browser can say that among the protocols alone. */
export function socket(path, protocols) {
  const text = btoa(session.session).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const url = new URL(path, location.href);
  url.protocol = "ws:";
  const opened = new WebSocket(url, [...protocols, `base64url.bearer.authorization.k8s.io.${text}`]);
  opened.binaryType = "arraybuffer";
  return opened;
}

let known = null;

/** All kinds that are served: {group, version, kind, plural, namespaced, verbs, short}. */
export async function kinds() {
  known ??= discover();
  return known;
}

/** Asks again at the next question, as after a definition was made. */
export function forgetKinds() {
  known = null;
}

const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async function discover() {
  const found = await Promise.all(["/api", "/apis"].map((path) => json(path, { accept: DISCOVERY })));
  const all = [];
  for (const group of found.flatMap((list) => list.items)) {
    // The first version that has it, as kubectl prefers it; not every resource is in the first of its group.
    const taken = new Set();
    for (const [version, resource] of group.versions.flatMap((one) => (one.resources ?? []).map((each) => [one, each]))) {
      if (taken.has(resource.resource)) continue;
      taken.add(resource.resource);
      all.push({
        group: group.metadata.name ?? "",
        version: version.version,
        kind: resource.responseKind.kind,
        plural: resource.resource,
        singular: resource.singularResource,
        namespaced: resource.scope === "Namespaced",
        verbs: resource.verbs ?? [],
        short: resource.shortNames ?? [],
      });
    }
  }
  return all;
}

/** The path of a kind's objects, or of one. */
export function pathOf(kind, namespace, name) {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const within = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${within}/${kind.plural}${name ? `/${encodeURIComponent(name)}` : ""}`;
}

/** As `deployments.apps`. */
export function resourceOf(kind) {
  return kind.group ? `${kind.plural}.${kind.group}` : kind.plural;
}

/** The kind that people name so: deploy, pods, Deployment, deployments.apps. */
export async function kindNamed(text) {
  const wanted = text.toLowerCase();
  const names = (kind) => [kind.plural, kind.singular, kind.kind.toLowerCase(), resourceOf(kind), ...kind.short];
  return (await kinds()).find((kind) => names(kind).includes(wanted));
}
