// What the steps up to one make: pods on nodes, keys in queues, counts.

import { placeOf } from "./movement.js";
import { subjectOf } from "./record.js";

/** Pods of which nothing is remembered but that they are gone, at most: as many as there are steps. */
const MAX_GONE = 65536;
/** Objects that are known by their uid, at most; of older ones the uid is shown. */
const MAX_NAMED = 65536;

/** The states of pods; first those that somebody should look at. */
const STATES = ["failed", "pending", "bound", "starting", "running", "ended"];

/** How many are in each of the states that there are. */
export function countedByState(states) {
  const counts = new Map();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return STATES.filter((state) => counts.has(state)).map((state) => [state, counts.get(state)]);
}

/** As `1 failed, 998 running`. */
export function inWords(counted) {
  return counted.map(([state, count]) => `${count} ${state}`).join(", ");
}

function isCreateOfPod(step) {
  return step.step === "Stored" && step.resource === "pods" && step.operation === "create";
}

export class Picture {
  pods = new Map();
  /** By name what is said of them: nothing of those that take pods. */
  nodes = new Map();
  /** Of those that are deleted something may still be said, as that their sandbox is gone. */
  #gone = new Set();
  queues = new Map();
  counts = new Map();
  /** By uid what an object is called, for keys of queues that are uids. */
  #named = new Map();

  /** Pods that were there before the first step that is remembered: of those that are there now, all whose create is
   * not among the steps to come. */
  seed(pods, toCome) {
    const later = new Set(toCome.filter(isCreateOfPod).map((step) => `${step.namespace}/${step.name}`));
    for (const { metadata, spec, status } of pods) {
      if (later.has(`${metadata.namespace}/${metadata.name}`)) continue;
      const state = { Running: "running", Succeeded: "ended", Failed: "failed" }[status?.phase] ?? (spec.nodeName ? "bound" : "pending");
      const key = `${metadata.namespace}/${metadata.name}`;
      if (!this.pods.has(key) && !this.#gone.has(key)) this.pods.set(key, { node: spec.nodeName ?? "", state });
    }
  }

  apply(step) {
    const place = placeOf(step.component);
    if (place) this.counts.set(place, (this.counts.get(place) ?? 0) + 1);
    if (step.step === "Stored") this.counts.set("etcd", (this.counts.get("etcd") ?? 0) + 1);
    const pod = step.pod ? this.#pod(step.pod) : null;
    switch (step.step) {
      case "Stored":
        this.#name(step);
        if (step.resource === "pods") this.#stored(`${step.namespace}/${step.name}`, step.operation);
        break;
      case "Bound":
      case "Assumed":
        pod.node = step.node;
        // A kubelet may have begun before the scheduler has noted that the binding was written.
        if (pod.state === "pending") pod.state = "bound";
        break;
      case "SandboxCreated":
      case "ImagePulled":
      case "ContainerCreated":
        pod.node = step.node;
        pod.state = "starting";
        break;
      case "ContainerStarted":
        pod.node = step.node;
        pod.state = "running";
        break;
      case "ContainerExited":
        pod.state = step.exitCode === 0 ? "ended" : "failed";
        break;
      case "Enqueued":
        this.#queue(step.queue).keys.add(step.key);
        break;
      case "ReconcileStarted": {
        const queue = this.#queue(step.controller);
        queue.keys.delete(step.key);
        queue.worked += 1;
        queue.last = this.#named.get(step.key) ?? step.key;
        break;
      }
    }
  }

  #name(step) {
    const { uid } = step;
    if (!uid || this.#named.has(uid)) return;
    this.#named.set(uid, subjectOf(step));
    if (this.#named.size > MAX_NAMED) this.#named.delete(this.#named.keys().next().value);
  }

  #pod(key) {
    const pod = this.pods.get(key) ?? { node: "", state: "pending" };
    if (!this.#gone.has(key)) this.pods.set(key, pod);
    return pod;
  }

  #stored(key, operation) {
    if (operation === "delete") {
      this.pods.delete(key);
      this.#gone.add(key);
      if (this.#gone.size > MAX_GONE) this.#gone.delete(this.#gone.values().next().value);
    } else {
      this.#gone.delete(key);
      this.#pod(key);
    }
  }

  /** Kept so that what moved last is last. */
  #queue(name) {
    const queue = this.queues.get(name) ?? { keys: new Set(), worked: 0, last: "" };
    this.queues.delete(name);
    this.queues.set(name, queue);
    return queue;
  }
}
