// Dots on their way, over the drawing.

/** Dots of one kind that move at once, so that none is crowded out by others; of what comes beyond, that the
 * components are busy is seen. */
const MAX_DOTS = 40;
/** A dot is on its way for so long, in milliseconds. */
const FLIGHT = 650;
/** Two frames that come so late, in milliseconds, say that the machine has other work: the cluster's. One may be the
 * page's own fault, and is forgiven by ten in time. */
const LATE = 25;
const TOO_LATE = 2;
const FORGIVEN = 0.1;
/** Then dots are drawn so seldom, until frames have come in time for a while; and while none is on its way but those
 * that are in no hurry. */
const UNHURRIED = 100;
const HURRY_AGAIN = 1000;

/** It draws only while something moves. */
export class Dots {
  #canvas;
  #flying = [];
  /** Of each kind. */
  #many = new Map();
  #drawing = false;
  #drawn = 0;
  #late = 0;
  #busyUntil = 0;
  #isHeld = false;
  #still = matchMedia("(prefers-reduced-motion: reduce)");
  #wide;
  #high;

  /** `wide` and `high` are the drawing's own measures. */
  constructor(canvas, wide, high) {
    this.#canvas = canvas;
    [this.#wide, this.#high] = [wide, high];
  }

  /** From one point of the drawing to another. Those that do not hurry are drawn in each frame only if others are. */
  send(from, to, kind, hurries) {
    if (document.hidden || this.#still.matches) return;
    const many = this.#many.get(kind) ?? 0;
    if (many >= MAX_DOTS) return;
    this.#many.set(kind, many + 1);
    this.#flying.push({ from, to, kind, began: performance.now(), lane: Math.random() * 16 - 8, hurries });
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

  /** At each frame, but for a machine that is busy, and for dots that do not hurry. */
  #next() {
    if (this.#isHeld) return;
    const draw = () => requestAnimationFrame((now) => this.#draw(now));
    const isLeisurely = !this.#flying.some((dot) => dot.hurries);
    // Nobody waits for the frame after a pause: it is not late.
    if (isLeisurely) this.#drawn = 0;
    if (isLeisurely || performance.now() < this.#busyUntil) setTimeout(draw, UNHURRIED);
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
    this.#many.clear();
  }

  #draw(now) {
    if (this.#isHeld) this.#drawn = 0;
    else this.#note(now);
    const canvas = this.#canvas;
    const scale = canvas.clientWidth / this.#wide;
    const dense = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(canvas.clientWidth * dense), Math.round(this.#high * scale * dense)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.scale(scale * dense, scale * dense);
    const style = getComputedStyle(canvas);
    // Those of one colour are one shape.
    const shapes = new Map();
    this.#flying = this.#flying.filter((dot) => {
      // However late the frame is, each is seen once.
      const flies = now - dot.began < FLIGHT || !dot.isSeen;
      if (!flies) this.#many.set(dot.kind, this.#many.get(dot.kind) - 1);
      return flies;
    });
    for (const dot of this.#flying) {
      const { from, to, kind, began, lane } = dot;
      dot.isSeen = true;
      const way = Math.min((now - began) / FLIGHT, 1);
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
