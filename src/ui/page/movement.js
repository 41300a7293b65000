// From where to where something moves in each step, as names of spots in the drawing.

const APISERVER = "kube-apiserver";
const MANAGER = "kube-controller-manager";
const SCHEDULER = "kube-scheduler";
/** Parts of the controller manager that are not called controllers, as accounts and in events. */
const OF_MANAGER = new Set([
  "bootstrap-signer", "cidrAllocator", "controller-accounts", "controllermanager", "device-taint-eviction", "ephemeral_volume", "generic-garbage-collector", "horizontal-pod-autoscaler",
  "legacy-service-account-token-cleaner", "persistent-volume-binder", "pod-garbage-collector", "resource_claim", "root-ca-cert-publisher", "token-cleaner", "volume_expand",
]);
const ACCOUNT = "system:serviceaccount:kube-system:";

/** Where the components stand: x, y, width, height; what they are called; and what is in them. */
export const PLACES = {
  you: [20, 120, 150, 90, "You", "kubectl and others"],
  [APISERVER]: [290, 60, 270, 210, APISERVER, "handler chain, registry, watch cache"],
  etcd: [350, 330, 150, 70, "etcd", "the store"],
  [MANAGER]: [700, 20, 480, 210, MANAGER, "informers, work queues, reconcilers"],
  [SCHEDULER]: [700, 250, 230, 100, SCHEDULER, "filter, score, bind"],
  kubelets: [20, 430, 1160, 160, "Nodes", "kubelets, and their pods"],
};

/** What moves, by the colour in which it does; each has a name below the map. */
export const KINDS = {
  request: "request and answer",
  store: "write to etcd",
  watch: "watch event",
  queue: "queue item",
  reconcile: "reconcile, scheduling cycle",
  binding: "binding",
  status: "status",
  bad: "refusal",
};

/** Steps in which nothing goes from one spot to another: they tell more of one that stands where it is. */
export const STILL = new Set([
  "Started", "TraceContinued", "Authenticated", "NotAuthenticated", "Impersonated", "Authorized", "NotAuthorized", "Routed", "Decoded", "Admitted", "Denied", "Validated", "ReadBack", "Terminating",
  "Filtered", "Scored", "Assumed", "PodWorkerSync", "PodPrepared", "SandboxCreated", "ImagePulled", "ContainerCreated", "ContainerStarted", "ContainerExited", "SandboxStopped", "EventRecorded",
]);

/** By the step's name: from where to where. None if it stays where it is after all. */
const MOVES = {
  Discovered: () => ["you", APISERVER],
  RequestReceived: (step, record) => [askerOf(step, record), APISERVER],
  Responded: answer,
  Refused: answer,
  DryRun: answer,
  // Webhooks and other API servers are other people's.
  WebhookCalled: () => [APISERVER, "you"],
  PassedOn: () => [APISERVER, "you"],
  Stored: () => [APISERVER, "etcd"],
  WatchDelivered: () => ["etcd", APISERVER],
  Listed: ({ component }) => [APISERVER, cacheOf(component)],
  InformerUpdated: ({ component }) => [APISERVER, cacheOf(component)],
  Enqueued: ({ queue }) => ["informers", `queue:${queue}`],
  ReconcileStarted: ({ controller }) => [`queue:${controller}`, `worker:${controller}`],
  ReconcileEnded: ({ cause, result }, record) => {
    const controller = record.get(cause)?.controller;
    return controller && result !== "done" ? [`worker:${controller}`, `queue:${controller}`] : null;
  },
  SchedulingAttempt: () => ["pods to schedule", "scheduling cycle"],
  Bound: ({ node }) => ["scheduling cycle", `node:${node}`],
};

/** From which spot to which something moves in a step; none if it stays where it is, or has no place in the drawing. */
export function movement(step, record) {
  const between = MOVES[step.step]?.(step, record);
  return between?.every(Boolean) ? between : null;
}

/** Which colour it has. */
export function kindOf(step) {
  switch (step.step) {
    case "Refused":
    case "NotAuthorized":
      return "bad";
    case "WatchDelivered":
    case "InformerUpdated":
    case "Listed":
      return "watch";
    case "Stored":
      return "store";
    case "Enqueued":
      return "queue";
    case "ReconcileStarted":
    case "ReconcileEnded":
    case "SchedulingAttempt":
      return "reconcile";
    case "Bound":
      return "binding";
    case "RequestReceived":
      return step.path.endsWith("/status") ? "status" : step.path.endsWith("/binding") ? "binding" : "request";
    default:
      return "request";
  }
}

/** The places of components that have been asked for, since each step asks. */
const found = new Map();

/** Where a step happened: the place in the drawing; none of what is not drawn, as metrics-server. */
export function placeOf(component) {
  if (!found.has(component)) found.set(component, find(component));
  return found.get(component);
}

function find(component) {
  if (PLACES[component]) return component;
  if (component === "") return "you";
  if (component === "default-scheduler") return SCHEDULER;
  if (component.startsWith("kubelet")) return "kubelets";
  // What repairs the addresses and ports of Services is in the API server.
  if (component.endsWith("-repair-controller")) return APISERVER;
  const isOfManager = component.startsWith(`${MANAGER}/`) || component.endsWith("-controller") || OF_MANAGER.has(component) || component.startsWith("external-resizer ");
  return isOfManager ? MANAGER : null;
}

/** Where a component works. */
function spotOf(component) {
  if (component.startsWith("kubelet/")) return `node:${component.slice("kubelet/".length)}`;
  const place = placeOf(component);
  return place === MANAGER && component.endsWith("-controller") ? `worker:${component.slice(0, -"-controller".length)}` : place;
}

/** Where it keeps what it has heard of. */
function cacheOf(component) {
  const spot = spotOf(component);
  return placeOf(component) === MANAGER ? "informers" : spot === SCHEDULER ? "pods to schedule" : spot;
}

function askerOf(request, record) {
  const before = record.get(request.cause);
  // What a client asked before it asks for something is no other component's doing.
  if (before && before.step !== "Discovered") return spotOf(before.component);
  const { user } = request;
  if (!user) return "you";
  if (user.startsWith("system:node:")) return `node:${user.slice("system:node:".length)}`;
  if (user.startsWith(ACCOUNT)) return placeOf(user.slice(ACCOUNT.length));
  if (user.startsWith("system:")) return placeOf(user.slice("system:".length));
  // Kubarium's own part in it is no component's; whoever else has the cluster in their process is a person.
  return user.startsWith("kubarium:") ? null : "you";
}

function answer(step, record) {
  const request = record.requestOf(step.cause);
  return [APISERVER, request ? askerOf(request, record) : "you"];
}

/** Whether it is part of how one says that it is still there, a Lease that is renewed or a kubelet's word on its node,
 * to which people pay heed when it stays away or is another than before. Causes are asked before what they caused, and
 * tell what they said. */
export function isBeat(step, cause) {
  if (step.resource === LEASES) return true;
  return step.step === "RequestReceived" ? BEATS.test(step.path) : Boolean(cause?.isBeat);
}

const LEASES = "leases";
const BEATS = /^\/apis\/coordination\.k8s\.io\/[^/]+\/namespaces\/[^/]+\/leases\/|^\/api\/v1\/nodes\/[^/]+\/status$/;

const OF_ROUNDS = new Set(["Enqueued", "ReconcileStarted", "ReconcileEnded"]);

/** Whether it is what a controller looks at every few seconds, whether or not something is new: nobody caused it. */
export function isRound(step, record) {
  for (let at = step; at && OF_ROUNDS.has(at.step); at = record.get(at.cause)) {
    if (!at.cause) return at.step === "Enqueued";
  }
  return false;
}
