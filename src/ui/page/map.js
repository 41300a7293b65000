// The map: the components as a drawing, and what moves between them.

import { FORBIDDEN, json } from "./api.js";
import { calmly, el, labelled, show, showChanged, svg, write } from "./dom.js";
import { Dots } from "./dots.js";
import { fittedText } from "./fitting.js";
import { KINDS, PLACES, isRound, kindOf, movement, placeOf } from "./movement.js";
import { Picture, countedByState, inWords } from "./picture.js";
import { RECORD, REFUSED } from "./record.js";
import { steppingBar } from "./stepping.js";

/** Nodes that are drawn one by one; of further ones the sum is shown. */
const MAX_NODES = 12;
/** Nodes whose state is read, and how seldom at most, in milliseconds; of further ones pods tell that they are there. */
const MAX_NODES_READ = 100;
const NODES_READ = 2000;
/** Pods that are drawn one by one on a node. */
const MAX_PODS = 60;
/** How many rows of pods a node has room for, how far apart they stand, and where the first does. */
const POD_ROWS = 5;
const POD_STEP = 13;
const PODS_TOP = 26;
/** How wide the mark is that stands for the pods of a state, what is free behind it, and a digit of their number. */
const MARK = 9;
const MARK_GAP = 3;
const DIGIT = 7;
/** Pods that are read at once, where the record does not begin with the cluster. */
const MAX_SEEDED = 5000;
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
const CALM = 30000;
/** As seldom, while there is besides only that nodes and leaders are still there. */
const BEATS = 1000;
/** A place is shown to be busy for so long after its last step, in milliseconds. */
const BUSY = 300;
/** So many steps after a request it is looked for what it wrote. */
const NEAR = 500;
/** Lines of the list of what happened last. */
const MAX_LINES = 40;
const WIDTH = 1200;
const HEIGHT = 600;
/** Where the rows of work queues begin below the top of their box, and how far apart they are. */
const QUEUES_TOP = 68;
const QUEUE_HEIGHT = 20;
/** Where the names of work queues end and what is told of them begins, and what is left free at the right of a box. */
const QUEUE_NAMES = 190;
const MARGIN = 12;
/** The sizes of letters, as in style.css. */
const NAME_SIZE = 13;
const WORDS_SIZE = 12;

function middle(place) {
  const [x, y, width, height] = PLACES[place];
  return [x + width / 2, y + Math.min(height / 2, 60)];
}

/** The view. `tell` opens the story of an object, `open` a step. */
export function mapView(view, record, player, { tell, open }) {
  const canvas = el("canvas", { class: "dots", "aria-hidden": "true" });
  const moving = new Dots(canvas, WIDTH, HEIGHT);
  const drawing = draw();
  const list = el("ol", { class: "steps", "aria-label": "What happened last", tabindex: "0" });
  const controls = playing(record, player);
  show(view, steppingBar(view, record), controls.bar, whyEmpty(record), el("div", { class: "map" }, drawing.root, canvas), kindsThatMove(), list);
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
    showChanged(list, lines.map((step) => step.id), () => lines.map((step) => line(step, open)));
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
  let nodesAsked = 0;
  let areNodesStale = false;
  const readNodes = calmly(NODES_READ, async () => {
    nodesAsked += 1;
    const asked = nodesAsked;
    const list = await json(`/api/v1/nodes?limit=${MAX_NODES_READ}`).catch(({ code }) => {
      // Who was not answered does not know how they are; who may not list them asks no more.
      areNodesStale = code !== FORBIDDEN;
    });
    // An answer that took so long that it was asked again is of what was before.
    if (!list || asked !== nodesAsked) return;
    areNodesStale = false;
    const before = JSON.stringify([...nodes]);
    nodes = new Map(list.items.map((node) => [node.metadata.name, saidOf(node)]));
    picture.nodes = nodes;
    // A kubelet that only says that its node is still well changes nothing that is drawn.
    if (JSON.stringify([...nodes]) !== before) paintSoon();
  });
  record.addEventListener("heard", () => areNodesStale && readNodes());
  // Of steps that were forgotten, or passed over, it is not known what they wrote.
  player.addEventListener("jump", () => player.live && readNodes());
  readNodes();
  player.onMove = (step) => {
    picture.apply(step);
    if (step.step === "Stored" && step.resource === "nodes") readNodes();
    if (isRound(step, record)) return;
    told.push(step);
    if (told.length > 4 * MAX_LINES) told = told.slice(-MAX_LINES);
    const between = movement(step, record);
    if (between) moving.send(...between.map(drawing.at), kindOf(step), !step.isBeat);
    const place = placeOf(step.component);
    if (place) drawing.touch(place);
    if (step.step === "Stored") drawing.touch("etcd");
    if (step.isBeat) paintWithin(isCalm && follows() ? BEATS : repaint());
    else paintSoon();
  };
  player.addEventListener("jump", () => {
    picture = new Picture();
    picture.nodes = nodes;
    moving.clear();
    const shown = record.steps.slice(0, Math.max(player.at - record.first + 1, 0));
    for (const step of shown) picture.apply(step);
    if (record.first > 1) seed(picture);
    told = [];
    for (let at = shown.length - 1; at >= 0 && told.length < MAX_LINES; at -= 1) if (!isRound(shown[at], record)) told.unshift(shown[at]);
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

/** What is said in the map's place to whoever may not read the record: they see nothing move. */
function whyEmpty(record) {
  const words = el("p", { class: "unread", role: "status" });
  const missing = `What is missing is the verb get on the nonResourceURL ${RECORD}, in a ClusterRole that a ClusterRoleBinding binds to you. It is asked for again every ${REFUSED / 1000} seconds.`;
  record.addEventListener("trouble", ({ detail: error }) => {
    if (error.code === FORBIDDEN) write(words, `The map shows what the causal record tells, which you may not read: ${error.message}. ${missing}`);
  });
  record.addEventListener("heard", () => write(words, ""));
  return words;
}

/** Why a node takes no pods, in kubectl's words. */
function saidOf({ spec, status }) {
  const isReady = (status?.conditions ?? []).some((one) => one.type === "Ready" && one.status === "True");
  return [isReady ? "" : "NotReady", spec?.unschedulable ? "SchedulingDisabled" : ""].filter(Boolean).join(", ");
}

/** Which colour is what. */
function kindsThatMove() {
  const named = Object.entries(KINDS).map(([kind, words]) => el("li", {}, el("span", { class: `mark ${kind}`, "aria-hidden": "true" }), words));
  return el("ul", { class: "legend", "aria-label": "What moves" }, named);
}

/** A line of the list, which opens what happened in the step. */
function line(step, open) {
  const words = el("button", { class: "link", onclick: () => open(step) }, step.words);
  return el("li", { class: kindOf(step) }, el("span", { class: "id" }, `#${step.id}`), " ", el("span", { class: "component" }, step.component || "you"), " ", words);
}

/** In whose story a step is told: of what it is about, else of what its request wrote, else of what led to it. */
export function storyOf(step, record) {
  const own = subjectOf(step);
  if (own) return own;
  const before = record.causes(step.id).find((one) => subjectOf(one));
  const request = record.requestOf(step.id);
  // What led to a request stands before it: then it has not written yet.
  const isPart = (one) => one.step === "Stored" && record.requestOf(one.id) === request;
  const from = request ? request.id - record.first : 0;
  const written = request && request.id > (before?.id ?? 0) ? record.steps.slice(from, from + NEAR).find(isPart) : null;
  const near = written ?? before;
  return near ? subjectOf(near) : null;
}

/** What a step itself is about: resource, namespace, name. */
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
    [["1", "as it happens"], ["10", "10 times faster"], ["0.1", "10 times slower"], ["0.01", "100 times slower"]].map(([value, text]) => el("option", { value }, text)),
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
    write(pause, player.running ? "Pause" : "Play");
    way.min = String(record.first - 1);
    way.max = String(record.newest);
    way.value = String(player.at);
    const missed = record.missed ? `, ${record.missed} forgotten` : "";
    write(at, `step ${player.at} of ${record.newest}${missed}`);
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
  const spots = new Map(fixedSpots());
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
    for (const place of Object.keys(counts)) {
      const count = picture.counts.get(place);
      write(counts[place], count === undefined ? "" : `${count} ${place === "etcd" ? "writes" : "steps"}`);
    }
    showChanged(queues, [...picture.queues].map(([name, { keys, worked }]) => [name, keys.size, worked]), () => queueLines(picture, spots));
    // Who has come to a pod by keyboard stays there, though it is drawn anew.
    const at = nodes.contains(document.activeElement) ? document.activeElement.getAttribute("data-pod") : null;
    showChanged(nodes, [[...picture.nodes], [...picture.pods]], () => nodeBoxes(picture, spots, tell));
    if (at !== null && !nodes.contains(document.activeElement)) nodes.querySelector(`[data-pod="${CSS.escape(at)}"]`)?.focus();
  };
  const at = (spot) => spots.get(spot) ?? (PLACES[spot] ? middle(spot) : somewhereNear(spot));
  return { root, touch, paint, at };
}

/** Where what has a place of its own in the drawing stands, whatever is drawn. */
function fixedSpots() {
  const [x, y] = PLACES["kube-controller-manager"];
  const [left, top, width] = PLACES["kube-scheduler"];
  return [["informers", [x + 16, y + 50]], ["pods to schedule", [left + 20, top + 70]], ["scheduling cycle", [left + width - 30, top + 70]]];
}

/** Of what is not drawn by itself. */
function somewhereNear(spot) {
  const [x, y, width, height] = PLACES["kube-controller-manager"];
  if (spot.startsWith("queue:")) return [x + QUEUE_NAMES, y + height - 8];
  return spot.startsWith("worker:") ? [x + width - 16, y + height - 8] : middle("kubelets");
}

function queueLines(picture, spots) {
  const [x, y, width] = PLACES["kube-controller-manager"];
  for (const spot of [...spots.keys()]) if (/^(queue|worker):/.test(spot)) spots.delete(spot);
  const last = [...picture.queues].slice(-MAX_QUEUES).sort(([one], [other]) => one.localeCompare(other));
  return last.map(([name, queue], row) => {
    const top = y + QUEUES_TOP + row * QUEUE_HEIGHT;
    spots.set(`queue:${name}`, [x + QUEUE_NAMES, top - 5]);
    spots.set(`worker:${name}`, [x + width - 16, top - 5]);
    const depth = Math.min(queue.keys.size, 30);
    const told = x + QUEUE_NAMES + 6 + depth * 4;
    return svg(
      "g",
      {},
      fittedText({ x: x + 12, y: top, class: "queue" }, name, QUEUE_NAMES - 18, NAME_SIZE),
      svg("rect", { x: x + QUEUE_NAMES, y: top - 10, width: depth * 4, height: 11, class: "depth" }),
      fittedText({ x: told, y: top, class: "words" }, `${queue.keys.size} wait, ${queue.worked} done, last ${queue.last}`, x + width - MARGIN - told, WORDS_SIZE),
    );
  });
}

function nodeBoxes(picture, spots, tell) {
  for (const spot of [...spots.keys()]) if (spot.startsWith("node:")) spots.delete(spot);
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
  drawn.forEach((name, at) => spots.set(`node:${name}`, [x + 8 + (at + 0.5) * each, y + 104]));
  const boxes = drawn.map((name, at) => nodeBox([name, picture.nodes.get(name)], byNode.get(name), x + 12 + at * each, y + 56, each - 8, tell));
  const hidden = names.slice(MAX_NODES);
  if (!hidden.length) return boxes;
  const states = hidden.flatMap((name) => byNode.get(name).map(([, state]) => state));
  const counted = states.length ? ` (${inWords(countedByState(states))})` : "";
  return [...boxes, svg("text", { x: x + width - 12, y: y + 42, class: "words", "text-anchor": "end" }, `and ${hidden.length} more nodes with ${states.length} pods${counted}`)];
}

function nodeBox([name, said], pods, x, y, width, tell) {
  const perRow = Math.max(Math.floor((width - 8) / POD_STEP), 1);
  const isCrowded = pods.length > Math.min(MAX_PODS, perRow * POD_ROWS);
  // Where not all are drawn, the last row says how many are not, and nobody looks in vain for those that failed.
  const inOrder = isCrowded ? [...pods].sort(([, one], [, other]) => (other === "failed") - (one === "failed")) : pods;
  const drawn = isCrowded ? Math.min(MAX_PODS, perRow * (POD_ROWS - 1)) : pods.length;
  const squares = inOrder.slice(0, drawn).map(([key, state], at) => {
    const place = { x: x + 6 + (at % perRow) * POD_STEP, y: y + PODS_TOP + Math.floor(at / perRow) * POD_STEP, width: 11, height: 11 };
    const open = () => tell("pods", ...key.split("/"));
    const act = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open();
    };
    return svg("rect", { ...place, rx: 2, class: `pod ${state}`, "data-pod": key, tabindex: at ? "-1" : "0", role: "button", "aria-label": `pod ${key}, ${state}`, onclick: open, onkeydown: act }, svg("title", {}, `${key}: ${state}`));
  });
  const more = pods.length - drawn;
  const rest = more ? podsNotDrawn(inOrder.slice(drawn), x + 6, y + PODS_TOP + (POD_ROWS - 1) * POD_STEP, width - 12) : null;
  const title = `${name}: ${pods.length} pod${pods.length === 1 ? "" : "s"}${more ? `, ${more} not drawn` : ""}${said ? `, ${said}` : ""}`;
  return svg("g", { onkeydown: (event) => walk(event, perRow) }, svg("rect", { x, y, width, height: 96, rx: 6, class: said ? "node away" : "node" }), fittedText({ x: x + 6, y: y + 17, class: "queue" }, title, width - 12, NAME_SIZE), squares, rest);
}

/** A mark and a number for each state of the pods that are not drawn: for as many as there is room, and the title has
 * all. */
function podsNotDrawn(pods, x, y, width) {
  const counted = countedByState(pods.map(([, state]) => state));
  const words = `not drawn: ${inWords(counted)}`;
  let at = x;
  const marks = counted.flatMap(([state, count]) => {
    const end = at + MARK + MARK_GAP + `${count}`.length * DIGIT;
    if (end > x + width) return [];
    const mark = svg("circle", { cx: at + MARK / 2, cy: y + MARK / 2 + 1, r: MARK / 2, class: `rest ${state}` });
    const number = svg("text", { x: at + MARK + MARK_GAP, y: y + MARK + 1, class: "words" }, `${count}`);
    at = end + 2 * MARK_GAP;
    return [mark, number];
  });
  return svg("g", { class: "rest", role: "img", "aria-label": words }, svg("title", {}, words), marks);
}

/** A node is one stop of the keyboard, however many pods it has: arrows, Home and End lead from pod to pod. */
function walk(event, perRow) {
  const pods = [...event.currentTarget.querySelectorAll("[data-pod]")];
  const at = pods.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + perRow, ArrowUp: at - perRow, Home: 0, End: pods.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  pods[to]?.focus();
}
