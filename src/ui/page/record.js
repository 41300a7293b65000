// The causal record as it is written, and what of it is shown: a player that follows, slows down, stands still,
// goes on by one and goes back.

import { FORBIDDEN, Unanswered, lines } from "./api.js";
import { isBeat } from "./movement.js";

/** As many steps as the cluster remembers; older ones are forgotten here, too. */
const CAPACITY = 65536;
export const RECORD = "/kubarium/v1/flow";
const FOLLOWED = `${RECORD}?follow=true&beats=true&bodies=true&rounds=seldom`;
/** Between two attempts to read on, and where the first was refused: who may not read it now may be allowed later. */
const PATIENCE = 1000;
export const REFUSED = 30_000;
/** So often the cluster says at least that it is there, in milliseconds; where nothing is heard of it for so many times
 * that, it is not, though its connection may be. A page that slept has not listened: time alone says nothing. */
const BEAT = 5000;
const MISSED_BEATS = 3;
/** So long a frame may be busy with steps that have come all at once, in milliseconds; the others wait for the next. */
const BUDGET = 6;
/** As long at least, however much else the frame has done: it must get on. */
const LEAST = 1;
/** A page that is behind by so many steps takes more time at once, in milliseconds, and leaves the machine to the
 * cluster between. */
const BEHIND = 1000;
const CATCHING_UP = 12;
const SELDOM = 100;
/** A pause between two steps is shown as no shorter and no longer than this, in milliseconds at the cluster's speed. */
const SHORTEST_PAUSE = 4;
const LONGEST_PAUSE = 400;

/** What a step wrote, as the record calls it. */
export function subjectOf({ resource, namespace, name }) {
  return `${resource} ${namespace ? `${namespace}/` : ""}${name}`;
}

/** The steps, oldest first. Step `n` stands at `n - first`. */
export class CausalRecord extends EventTarget {
  steps = [];
  first = 1;
  missed = 0;
  /** How many steps have happened that are not told yet. */
  behind = 0;
  /** How often something has changed of who is held between two steps. */
  #stepping = -1;

  /** Reads for as long as the page is open. */
  async follow() {
    let since = "";
    for (;;) {
      const silence = new AbortController();
      let missed = 0;
      let pause = PATIENCE;
      const beats = setInterval(() => {
        missed += 1;
        if (missed === MISSED_BEATS) silence.abort();
      }, BEAT);
      const heard = () => {
        missed = 0;
        this.dispatchEvent(new Event("heard"));
      };
      try {
        for await (const line of lines(`${FOLLOWED}&since=${since}`, heard, silence.signal)) {
          missed = 0;
          since = line.next;
          this.#add(line);
        }
      } catch (error) {
        const why = silence.signal.aborted ? new Unanswered() : error;
        if (why.code === FORBIDDEN) pause = REFUSED;
        this.dispatchEvent(new CustomEvent("trouble", { detail: why }));
      } finally {
        clearInterval(beats);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  get(id) {
    return this.steps[id - this.first];
  }

  get newest() {
    return this.first + this.steps.length - 1;
  }

  /** What a step led to at once. Looked for when somebody asks, which is seldom: steps come by thousands. */
  effects(id) {
    return this.steps.slice(Math.max(id - this.first, 0)).filter((step) => step.cause === id);
  }

  /** What led to a step, the nearest first. */
  causes(id) {
    const found = [];
    for (let step = this.get(this.get(id)?.cause); step; step = this.get(step.cause)) found.push(step);
    return found;
  }

  /** The step that began the request of which one is part, or from which it comes. */
  requestOf(id) {
    let step = this.get(id);
    while (step && step.step !== "RequestReceived") step = this.get(step.cause);
    return step;
  }

  #add({ steps, missed, next, behind = 0, stepping = 0 }) {
    this.missed += missed;
    this.behind = behind;
    this.dispatchEvent(new Event("heard"));
    if (stepping !== this.#stepping) {
      this.#stepping = stepping;
      this.dispatchEvent(new Event("stepping"));
    }
    if (!steps.length && !missed) return;
    const isNew = missed > 0 || !this.steps.length;
    if (isNew) {
      this.steps = [];
      this.first = steps[0]?.id ?? next;
    }
    for (const step of steps) {
      // Where it happened is said by the cause of what has no place of its own.
      const cause = this.get(step.cause);
      step.component ??= cause?.component ?? "";
      step.isBeat = isBeat(step, cause);
      this.steps.push(step);
    }
    while (this.steps.length > CAPACITY) this.#forget(this.steps.length - CAPACITY);
    if (missed) this.dispatchEvent(new Event("missed"));
    this.dispatchEvent(new CustomEvent("steps", { detail: steps }));
  }

  #forget(count) {
    this.steps.splice(0, count);
    this.first += count;
  }
}

/** How a record is shown: each step once and in order to `onMove`; `jump` says that the picture is to be made anew. */
export class Player extends EventTarget {
  /** The last step that was shown. */
  at = 0;
  live = true;
  running = true;
  /** 1 is the cluster's own time; 0.1 ten times slower. */
  speed = 1;
  /** Stands still where a step's words have this in them. */
  until = "";
  /** Not an event, since there are thousands at once. */
  onMove = () => {};
  #record;
  #timer = null;
  /** When the last step was to be shown, by the page's clock: the next one comes a pause after it. */
  #shown = Infinity;
  #isCatchingUp = false;

  constructor(record) {
    super();
    this.#record = record;
    record.addEventListener("steps", () => this.#news());
    // Who follows what happens has missed it; who looks at what was before looks at the oldest that there is.
    record.addEventListener("missed", () => this.goTo(this.live ? record.newest : Math.max(this.at, record.first - 1)));
  }

  #news(began) {
    if (!this.running) {
      this.#tell("moved");
    } else if (this.live && this.speed >= 1) {
      this.#catchUp(began);
    } else {
      this.#goOn();
    }
  }

  /** As many at once as a frame has time for, but not past what is waited for. */
  #catchUp(began = performance.now()) {
    if (this.#isCatchingUp) return;
    // Where a frame has drawn already, less is left of it.
    const isBehind = () => this.#record.newest - this.at > BEHIND;
    const end = Math.max(began + (isBehind() ? CATCHING_UP : BUDGET), performance.now() + LEAST);
    while (this.running && this.at < this.#record.newest && performance.now() < end) {
      for (let many = 0; many < 50 && this.running && this.at < this.#record.newest; many += 1) this.#show(this.at + 1);
    }
    if (this.running && this.at < this.#record.newest) {
      this.#isCatchingUp = true;
      const goOn = (began) => {
        this.#isCatchingUp = false;
        this.#news(began);
      };
      const later = (milliseconds) => setTimeout(() => goOn(performance.now()), milliseconds);
      // A page that nobody sees has no frames.
      if (document.hidden) later(BUDGET);
      else if (isBehind()) later(SELDOM);
      else requestAnimationFrame(goOn);
    }
    this.#tell("moved");
  }

  /** Each step at its time. Where a timer is late, or a frame long, what has become due meanwhile is shown at once:
   * else playing took as many delays as there are steps. */
  #goOn() {
    if (this.#timer !== null || !this.running) return;
    const pause = this.#pauseBeforeNext();
    const now = performance.now();
    if (pause === null) {
      this.#shown = Infinity;
      return;
    }
    // Whoever waited for news, or stood still, is not behind; and nobody by more than the longest pause.
    this.#shown = this.#shown === Infinity ? now : Math.max(this.#shown, now - LONGEST_PAUSE);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#showDue();
      this.#tell("moved");
      this.#goOn();
    }, Math.max(this.#shown + pause - now, 0));
  }

  #showDue() {
    const now = performance.now();
    const end = now + BUDGET;
    for (;;) {
      const pause = this.#pauseBeforeNext();
      // A timer may come a little before its time.
      if (pause === null || this.#shown + pause > now + 1 || !this.running || performance.now() > end) return;
      this.#shown += pause;
      this.#show(this.#next());
    }
  }

  #next() {
    return Math.max(this.at + 1, this.#record.first);
  }

  /** In milliseconds of whoever looks; null after the newest step. */
  #pauseBeforeNext() {
    const next = this.#record.get(this.#next());
    if (!next) return null;
    const current = this.#record.get(this.at);
    const apart = current ? (next.atMicroseconds - current.atMicroseconds) / 1000 : 0;
    return Math.min(Math.max(apart, SHORTEST_PAUSE), LONGEST_PAUSE) / this.speed;
  }

  #show(id) {
    const step = this.#record.get(id);
    this.at = id;
    if (!step) return;
    this.onMove(step);
    if (this.until && step.words.includes(this.until)) this.pause();
  }

  pause() {
    this.running = false;
    this.#stopTimer();
    this.#tell("moved");
  }

  play(speed = this.speed) {
    this.speed = speed;
    this.running = true;
    this.#stopTimer();
    this.#news();
    this.#tell("moved");
  }

  /** Shows what happens when it happens. */
  follow() {
    this.#stopTimer();
    this.live = true;
    this.speed = 1;
    this.running = true;
    this.goTo(this.#record.newest);
  }

  /** One step on. */
  step() {
    this.pause();
    if (this.at < this.#record.newest) this.#show(this.#next());
    this.#tell("moved");
  }

  /** On to the first step of another component. */
  stage() {
    this.pause();
    const from = this.#record.get(this.at)?.component;
    do {
      if (this.at >= this.#record.newest) break;
      this.#show(this.#next());
    } while (this.#record.get(this.at)?.component === from);
    this.#tell("moved");
  }

  /** To any step: the picture is that after it. */
  goTo(id) {
    this.at = Math.min(Math.max(id, this.#record.first - 1), this.#record.newest);
    this.live = this.at === this.#record.newest;
    this.#tell("jump");
    this.#tell("moved");
  }

  #stopTimer() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#shown = Infinity;
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}
