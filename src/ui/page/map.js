// The map: the components as a drawing, and what moves between them.

import { json } from "./api.js";
import { calmly, el, labelled, show, showChanged, svg } from "./dom.js";
import { steppingBar } from "./stepping.js";

/** Dots that move at once; what comes beyond is seen by the weight of its line. */
const MAX_DOTS = 240;
/** A dot is on its way for so long, in milliseconds. */
const FLIGHT = 650;
/** Two frames that come so late, in milliseconds, say that the machine has other work: the cluster's. One may be the
 * page's own fault, and is forgiven by ten in time. */
const LATE = 25;
const TOO_LATE = 2;
const FORGIVEN = 0.1;
/** Then dots are drawn so seldom, until frames have come in time for a while. */
const UNHURRIED = 100;
const HURRY_AGAIN = 1000;
/** Nodes that are drawn one by one; of further ones the sum is shown. */
const MAX_NODES = 12;
/** Nodes whose state is read, and how seldom at most, in milliseconds; of further ones pods tell that they are there. */
const MAX_NODES_READ = 100;
const NODES_READ = 2000;
/** Pods that are drawn one by one on a node. */
const MAX_PODS = 60;
/** Work queues that are shown: those that moved last. */
const MAX_QUEUES = 7;
/** Texts, queues and pods are drawn anew so seldom at most, in milliseconds. */
const REPAINT = 100;
/** As seldom while there is a crowd: nobody reads faster, and the cluster has the time instead. */
const CROWDED = 400;
/** So many steps between two paintings are a crowd. */
const CROWD = 300;
/** Of a cluster that is ahead by so many steps nobody sees how each came about: for a second dots move when texts are
 * drawn, and not between. */
const THRONG = 10000;
const THRONGED = 1000;
/** As seldom, while there is nothing but what controllers look at from time to time: a page at rest costs nothing. */
const CALM = 5000;
/** Lines of the list of what happened last. */
const MAX_LINES = 40;
const WIDTH = 1200;
const HEIGHT = 600;

/** Where the components stand: x, y, width, height; what they are called; and in upstream. */
const PLACES = {
  you: [20, 120, 150, 90, "You", "kubectl and others"],
  "kube-apiserver": [290, 60, 270, 210, "kube-apiserver", "handler chain, registry, watch cache"],
  etcd: [350, 330, 150, 70, "etcd", "the store"],
  "kube-controller-manager": [700, 20, 480, 210, "kube-controller-manager", "informers, work queues, reconcilers"],
  "kube-scheduler": [700, 250, 230, 100, "kube-scheduler", "filter, score, bind"],
  kubelets: [20, 430, 1160, 160, "Nodes", "kubelets, and their pods"],
};

/** The places of components that have been asked for, since each step asks. */
const found = new Map();

/** Where a step happened: the place in the drawing. */
function placeOf(component) {
  if (!found.has(component)) found.set(component, find(component));
  return found.get(component);
}

function find(component) {
  if (PLACES[component]) return component;
  if (component === "") return "you";
  if (component === "default-scheduler") return "kube-scheduler";
  if (component.startsWith("kubelet")) return "kubelets";
  return "kube-controller-manager";
}

/** From where to where something moves in a step; none if it stays where it is. */
function movement(step, record) {
  const before = record.get(step.cause);
  // What a client asked before it asks for something is no other component's doing.
  const cause = before?.step === "Discovered" ? null : before;
  switch (step.step) {
    case "Discovered":
      return ["you", "kube-apiserver"];
    case "RequestReceived":
      return [cause ? placeOf(cause.component) : step.user ? "kube-controller-manager" : "you", "kube-apiserver"];
    case "Stored":
      return ["kube-apiserver", "etcd"];
    case "WatchDelivered":
      return ["etcd", "kube-apiserver"];
    case "InformerUpdated":
      return ["kube-apiserver", placeOf(step.component)];
    case "Responded":
    case "Refused": {
      const asked = record.causes(step.id).find((one) => one.step === "RequestReceived");
      const asker = asked && record.get(asked.cause);
      return ["kube-apiserver", asker && asker.step !== "Discovered" ? placeOf(asker.component) : "you"];
    }
    default:
      return null;
  }
}

/** A place is shown to be busy for so long after its last step, in milliseconds. */
const BUSY = 300;
/** Pods of which nothing is remembered but that they are gone, at most: as many as there are steps. */
const MAX_GONE = 65536;
/** Pods that are read at once, where the record does not begin with the cluster. */
const MAX_SEEDED = 5000;

function isCreateOfPod(step) {
  return step.step === "Stored" && step.resource === "pods" && step.operation === "create";
}

/** What the steps up to one make: pods on nodes, keys in queues, counts. */
class Picture {
  pods = new Map();
  /** By name what is said of them: nothing of those that take pods. */
  nodes = new Map();
  /** Of those that are deleted something may still be said, as that their sandbox is gone. */
  #gone = new Set();
  queues = new Map();
  counts = new Map();

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
    this.counts.set(place, (this.counts.get(place) ?? 0) + 1);
    if (step.step === "Stored") this.counts.set("etcd", (this.counts.get("etcd") ?? 0) + 1);
    const pod = step.pod ? this.#pod(step.pod) : null;
    switch (step.step) {
      case "Stored":
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
        queue.last = step.key;
        break;
      }
    }
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

/** Dots on their way, over the drawing. It draws only while something moves. */
class Dots {
  #canvas;
  #flying = [];
  #drawing = false;
  #drawn = 0;
  #late = 0;
  #busyUntil = 0;
  #isHeld = false;
  #still = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(canvas) {
    this.#canvas = canvas;
  }

  send(from, to, kind) {
    if (this.#flying.length >= MAX_DOTS || document.hidden) return;
    if (this.#still.matches) return;
    this.#flying.push({ from: middle(from), to: middle(to), kind, began: performance.now(), lane: Math.random() * 16 - 8 });
    if (!this.#drawing) {
      this.#drawing = true;
      this.#drawn = 0;
      this.#next();
    }
  }

  /** They stand still between two calls of `drawOnce`. */
  hold(isHeld) {
    if (this.#isHeld === isHeld) return;
    this.#isHeld = isHeld;
    if (!isHeld && this.#drawing) this.#next();
  }

  drawOnce() {
    if (this.#isHeld && this.#drawing) this.#draw(performance.now());
  }

  /** At each frame, but for a machine that is busy. */
  #next() {
    if (this.#isHeld) return;
    const draw = () => requestAnimationFrame((now) => this.#draw(now));
    if (performance.now() < this.#busyUntil) setTimeout(draw, UNHURRIED);
    else draw();
  }

  /** Whoever waits for frames longer than they take leaves the machine to others for a while. */
  #note(now) {
    const due = performance.now() < this.#busyUntil ? UNHURRIED + LATE : LATE;
    const isLate = this.#drawn > 0 && now - this.#drawn > due;
    this.#late = isLate ? this.#late + 1 : Math.max(this.#late - FORGIVEN, 0);
    if (this.#late >= TOO_LATE) [this.#busyUntil, this.#late] = [now + HURRY_AGAIN, TOO_LATE - 1];
    this.#drawn = now;
  }

  clear() {
    this.#flying = [];
  }

  #draw(now) {
    if (this.#isHeld) this.#drawn = 0;
    else this.#note(now);
    const canvas = this.#canvas;
    const scale = canvas.clientWidth / WIDTH;
    const dense = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(canvas.clientWidth * dense), Math.round(HEIGHT * scale * dense)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.scale(scale * dense, scale * dense);
    const style = getComputedStyle(canvas);
    // Those of one colour are one shape.
    const shapes = new Map();
    this.#flying = this.#flying.filter((dot) => now - dot.began < FLIGHT);
    for (const { from, to, kind, began, lane } of this.#flying) {
      const way = (now - began) / FLIGHT;
      const eased = way * way * (3 - 2 * way);
      const [x, y] = [from[0] + (to[0] - from[0]) * eased + lane, from[1] + (to[1] - from[1]) * eased + lane];
      if (!shapes.has(kind)) shapes.set(kind, new Path2D());
      const shape = shapes.get(kind);
      shape.moveTo(x + 5, y);
      shape.arc(x, y, 5, 0, 7);
    }
    for (const [kind, shape] of shapes) {
      context.fillStyle = style.getPropertyValue(`--${kind}`) || "gray";
      context.fill(shape);
    }
    if (this.#flying.length) this.#next();
    else this.#drawing = false;
  }
}

function middle(place) {
  const [x, y, width, height] = PLACES[place];
  return [x + width / 2, y + Math.min(height / 2, 60)];
}

function kindOf(step) {
  if (step.step === "Refused" || step.step === "NotAuthorized") return "bad";
  if (step.step === "WatchDelivered" || step.step === "InformerUpdated") return "watch";
  return step.step === "Stored" ? "store" : "request";
}

/** The view. `tell` opens the story of an object. */
export function mapView(view, record, player, tell) {
  const canvas = el("canvas", { class: "dots", "aria-hidden": "true" });
  const moving = new Dots(canvas);
  const drawing = draw();
  const list = el("ol", { class: "steps", "aria-label": "What happened last", tabindex: "0" });
  const controls = playing(record, player);
  show(view, steppingBar(view), controls.bar, el("div", { class: "map" }, drawing.root, canvas), list);
  let picture = new Picture();
  let told = [];
  let due = Infinity;
  let timer = null;
  let painted = 0;
  let paintedAt = 0;
  let throngedUntil = 0;
  let isCalm = false;

  const paint = () => {
    due = Infinity;
    isCalm = follows();
    painted = performance.now();
    paintedAt = player.at;
    moving.drawOnce();
    drawing.paint(picture, tell);
    const lines = told.slice(-MAX_LINES).reverse();
    showChanged(list, lines.map((step) => step.id), () => lines.map((step) => line(step, tell)));
    controls.paint();
  };
  const follows = () => player.live && player.running && player.speed >= 1;
  // While much happens dots move in each frame, and what is to be read changes as often as it can be read.
  const paintWithin = (milliseconds) => {
    const now = performance.now();
    const at = Math.max(painted + milliseconds, now);
    if (view.hidden || at >= due) return;
    due = at;
    clearTimeout(timer);
    timer = at > now ? setTimeout(paintIfItIsTime, at - now) : null;
    if (timer === null) requestAnimationFrame(paint);
  };
  // What began as a trickle may have become a crowd meanwhile.
  const paintIfItIsTime = () => {
    const left = painted + repaint() - performance.now();
    if (left > 1 && due < Infinity && player.running) timer = setTimeout(paintIfItIsTime, left);
    else requestAnimationFrame(paint);
  };
  const repaint = () => (player.at - paintedAt > CROWD ? CROWDED : REPAINT);
  const paintSoon = () => {
    isCalm = false;
    paintWithin(repaint());
  };
  const seed = async (into) => {
    const list = await json(`/api/v1/pods?limit=${MAX_SEEDED}`).catch(() => ({ items: [] }));
    into.seed(list.items, record.steps.slice(Math.max(player.at - record.first + 1, 0)));
    paintSoon();
  };
  let nodes = new Map();
  const readNodes = calmly(NODES_READ, async () => {
    const list = await json(`/api/v1/nodes?limit=${MAX_NODES_READ}`).catch(() => null);
    if (!list) return;
    nodes = new Map(list.items.map((node) => [node.metadata.name, saidOf(node)]));
    picture.nodes = nodes;
    paintSoon();
  });
  readNodes();
  player.onMove = (step) => {
    picture.apply(step);
    if (step.step === "Stored" && step.resource === "nodes") readNodes();
    const isNews = !isPeriodic(step, record);
    if (isNews) told.push(step);
    if (told.length > 4 * MAX_LINES) told = told.slice(-MAX_LINES);
    const between = movement(step, record);
    if (between && between[0] !== between[1]) moving.send(...between, kindOf(step));
    if (!isNews) return;
    drawing.touch(placeOf(step.component));
    if (step.step === "Stored") drawing.touch("etcd");
    paintSoon();
  };
  player.addEventListener("jump", () => {
    picture = new Picture();
    picture.nodes = nodes;
    moving.clear();
    const shown = record.steps.slice(0, Math.max(player.at - record.first + 1, 0));
    for (const step of shown) picture.apply(step);
    if (record.first > 1) seed(picture);
    told = [];
    for (let at = shown.length - 1; at >= 0 && told.length < MAX_LINES; at -= 1) if (!isPeriodic(shown[at], record)) told.unshift(shown[at]);
    paintSoon();
  });
  const holdWhileThronged = () => moving.hold(performance.now() < throngedUntil);
  record.addEventListener("steps", () => {
    if (record.behind <= THRONG) return;
    throngedUntil = performance.now() + THRONGED;
    holdWhileThronged();
    setTimeout(holdWhileThronged, THRONGED + 1);
  });
  player.addEventListener("moved", () => paintWithin(isCalm && follows() ? CALM : repaint()));
  view.addEventListener("chosen", paintSoon);
  paint();
}

/** Why a node takes no pods, in kubectl's words. */
function saidOf({ spec, status }) {
  const isReady = (status?.conditions ?? []).some((one) => one.type === "Ready" && one.status === "True");
  return [isReady ? "" : "NotReady", spec?.unschedulable ? "SchedulingDisabled" : ""].filter(Boolean).join(", ");
}

/** What a controller looks at every few seconds, whether or not something is new: nobody caused it. */
function isPeriodic(step, record) {
  if (!["Enqueued", "ReconcileStarted", "ReconcileEnded"].includes(step.step)) return false;
  const first = record.causes(step.id).at(-1) ?? step;
  return first.step === "Enqueued";
}

/** A line of the list, with what can be asked about it. */
function line(step, tell) {
  const subject = subjectOf(step);
  const open = () => tell(...subject);
  const words = subject ? el("button", { class: "link", onclick: open }, step.words) : step.words;
  return el("li", { class: kindOf(step) }, el("span", { class: "id" }, `#${step.id}`), " ", el("span", { class: "component" }, step.component || "you"), " ", words);
}

/** Whose story a step belongs to: resource, namespace, name. */
export function subjectOf(step) {
  if (step.step === "Stored") return [step.resource, step.namespace, step.name];
  if (step.pod) return ["pods", ...step.pod.split("/")];
  if (step.step === "InformerUpdated" || step.step === "WatchDelivered") {
    const [namespace, name] = step.key.includes("/") ? step.key.split("/") : ["", step.key];
    return [step.resource, namespace, name];
  }
  return null;
}

/** The buttons of the player, and the way through the record. */
function playing(record, player) {
  const button = (text, title, act) => el("button", { type: "button", title, onclick: act }, text);
  const pause = button("Pause", "Stand still, or go on", () => (player.running ? player.pause() : player.play()));
  const speed = el(
    "select",
    { onchange: () => player.play(Number(speed.value)) },
    [["1", "as it happens"], ["0.1", "10 times slower"], ["0.01", "100 times slower"]].map(([value, text]) => el("option", { value }, text)),
  );
  const until = el("input", { type: "search", size: "18", placeholder: "bound default/web", oninput: () => (player.until = until.value) });
  const way = el("input", { type: "range", min: "0", max: "0", value: "0", class: "way", "aria-label": "Rewind", oninput: () => { player.pause(); player.goTo(Number(way.value)); } });
  const at = el("output", {});
  const bar = el(
    "div",
    { class: "bar", role: "toolbar", "aria-label": "Playing" },
    pause,
    button("Step", "One step on", () => player.step()),
    button("Stage", "On to the next component", () => player.stage()),
    button("Live", "Follow what happens", () => { speed.value = "1"; player.follow(); }),
    labelled("Speed", speed),
    labelled("Until", until),
    way,
    at,
  );
  const paint = () => {
    pause.textContent = player.running ? "Pause" : "Play";
    way.min = String(record.first - 1);
    way.max = String(record.newest);
    way.value = String(player.at);
    const missed = record.missed ? `, ${record.missed} forgotten` : "";
    at.textContent = `step ${player.at} of ${record.newest}${missed}`;
  };
  return { bar, paint };
}

/** The drawing itself, and how it is painted. */
function draw() {
  const boxes = {};
  const counts = {};
  const groups = Object.entries(PLACES).map(([name, [x, y, width, height, title, words]]) => {
    boxes[name] = svg("rect", { x, y, width, height, rx: 10, class: "place" });
    counts[name] = svg("text", { x: x + width - 12, y: y + 22, class: "count", "text-anchor": "end" });
    return svg("g", { role: "group", "aria-label": title }, boxes[name], svg("text", { x: x + 12, y: y + 24, class: "title" }, title), svg("text", { x: x + 12, y: y + 42, class: "words" }, words), counts[name]);
  });
  const lines = [["you", "kube-apiserver"], ["kube-apiserver", "etcd"], ["kube-apiserver", "kube-controller-manager"], ["kube-apiserver", "kube-scheduler"], ["kube-apiserver", "kubelets"]].map(([from, to]) => {
    const [[x1, y1], [x2, y2]] = [middle(from), middle(to)];
    return svg("line", { x1, y1, x2, y2, class: "way" });
  });
  const queues = svg("g", {});
  const nodes = svg("g", {});
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "The components of the cluster and what moves between them" }, lines, groups, queues, nodes);
  const touched = new Map();
  const touch = (place) => {
    const now = performance.now();
    if (touched.has(place)) return touched.set(place, now);
    boxes[place].classList.add("busy");
    touched.set(place, now);
    const calm = () => {
      const left = touched.get(place) + BUSY - performance.now();
      if (left > 0) return setTimeout(calm, left);
      touched.delete(place);
      boxes[place].classList.remove("busy");
    };
    setTimeout(calm, BUSY);
  };
  const paint = (picture, tell) => {
    for (const [place, count] of picture.counts) if (counts[place]) counts[place].textContent = place === "etcd" ? `${count} writes` : `${count} steps`;
    for (const place of Object.keys(counts)) if (!picture.counts.has(place)) counts[place].textContent = "";
    showChanged(queues, [...picture.queues].map(([name, { keys, worked }]) => [name, keys.size, worked]), () => queueLines(picture));
    // Who has come to a pod by keyboard stays there, though it is drawn anew.
    const at = nodes.contains(document.activeElement) ? document.activeElement.getAttribute("data-pod") : null;
    showChanged(nodes, [[...picture.nodes], [...picture.pods]], () => nodeBoxes(picture, tell));
    if (at !== null && !nodes.contains(document.activeElement)) nodes.querySelector(`[data-pod="${CSS.escape(at)}"]`)?.focus();
  };
  return { root, touch, paint };
}

function queueLines(picture) {
  const [x, y] = PLACES["kube-controller-manager"];
  const last = [...picture.queues].slice(-MAX_QUEUES).sort(([one], [other]) => one.localeCompare(other));
  return last.map(([name, queue], row) => {
    const top = y + 68 + row * 20;
    const depth = Math.min(queue.keys.size, 30);
    return svg("g", {}, svg("text", { x: x + 12, y: top, class: "queue" }, name), svg("rect", { x: x + 190, y: top - 10, width: depth * 4, height: 11, class: "depth" }), svg("text", { x: x + 196 + depth * 4, y: top, class: "words" }, `${queue.keys.size} wait, ${queue.worked} done, last ${queue.last}`));
  });
}

function nodeBoxes(picture, tell) {
  const byNode = new Map([...picture.nodes.keys()].map((name) => [name, []]));
  for (const [key, pod] of picture.pods) {
    const node = pod.node || "not bound yet";
    if (!byNode.has(node)) byNode.set(node, []);
    byNode.get(node).push([key, pod.state]);
  }
  const names = [...byNode.keys()].sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
  const drawn = names.slice(0, MAX_NODES);
  const [x, y, width] = PLACES.kubelets;
  const each = (width - 24) / Math.max(drawn.length, 3);
  const boxes = drawn.map((name, at) => nodeBox([name, picture.nodes.get(name)], byNode.get(name), x + 12 + at * each, y + 56, each - 8, tell));
  const hidden = names.slice(MAX_NODES);
  if (!hidden.length) return boxes;
  const pods = hidden.reduce((sum, name) => sum + byNode.get(name).length, 0);
  return [...boxes, svg("text", { x: x + width - 12, y: y + 42, class: "words", "text-anchor": "end" }, `and ${hidden.length} more nodes with ${pods} pods`)];
}

function nodeBox([name, said], pods, x, y, width, tell) {
  const perRow = Math.max(Math.floor((width - 8) / 13), 1);
  const squares = pods.slice(0, Math.min(MAX_PODS, perRow * 5)).map(([key, state], at) => {
    const place = { x: x + 6 + (at % perRow) * 13, y: y + 26 + Math.floor(at / perRow) * 13, width: 11, height: 11 };
    const open = () => tell("pods", ...key.split("/"));
    const act = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open();
    };
    return svg("rect", { ...place, rx: 2, class: `pod ${state}`, "data-pod": key, tabindex: "0", role: "button", "aria-label": `pod ${key}, ${state}`, onclick: open, onkeydown: act }, svg("title", {}, `${key}: ${state}`));
  });
  const more = pods.length - squares.length;
  const title = `${name}: ${pods.length} pod${pods.length === 1 ? "" : "s"}${more ? `, ${more} not drawn` : ""}${said ? `, ${said}` : ""}`;
  return svg("g", {}, svg("rect", { x, y, width, height: 96, rx: 6, class: said ? "node away" : "node" }), svg("text", { x: x + 6, y: y + 17, class: "queue" }, title), squares);
}
