// The course, beside the map: what is told, what to run, what is to be seen of it in the record, and questions.

import { json } from "./api.js";
import { apply } from "./applying.js";
import { el, labelled, show } from "./dom.js";

/** What a lesson is shown on, beside an object that is there already. */
const OWN = "own";
const PASTED = "pasted";
/** Objects to choose from; further ones can be pasted. */
const MAX_OBJECTS = 100;

/** The view. */
export function lessonsView(view, record) {
  const list = el("select", { onchange: () => open(all[Number(list.value)]) });
  const lesson = el("article", { "aria-label": "The lesson" });
  show(view, el("nav", { class: "bar", "aria-label": "Lessons" }, labelled("Lesson", list)), lesson);
  let all = [];
  let waits = null;

  async function begin() {
    if (all.length) return;
    all = await (await fetch("/lessons.json")).json();
    show(list, all.map((one, at) => el("option", { value: at }, one.title)));
    open(all[0]);
  }

  function open(one) {
    waits = null;
    const steps = el("div", {});
    show(lesson, el("h2", {}, one.title), el("p", {}, one.about), one.own ? choosing(one, steps) : null, steps);
    take({ steps: one.own ? shownOn(one.steps, one.own) : one.steps, place: steps }, 0);
  }

  /** On which object it is shown: the lesson's own, one that is there, or one that is pasted. */
  function choosing(one, place) {
    const options = el("select", { onchange: () => choose() }, el("option", { value: OWN }, `the lesson's own ${one.own.kind}`), el("option", { value: PASTED }, "a manifest of mine"));
    const said = el("p", { role: "status" });
    const pasting = el("div", {});
    const choose = () => {
      show(said);
      show(pasting);
      waits = null;
      show(place);
      if (options.value === OWN) return take({ steps: shownOn(one.steps, one.own), place }, 0);
      if (options.value === PASTED) return paste();
      const object = there[Number(options.value)];
      take({ steps: shownOn(one.steps, object), place, applied: () => {}, isThere: true }, 0);
    };
    const paste = () => {
      // What was read is what is applied; of what has been changed since nobody knows whether it fits.
      let isOffered = false;
      const changed = () => {
        if (!isOffered) return;
        isOffered = false;
        waits = null;
        show(place);
      };
      const area = el("textarea", { rows: "12", spellcheck: "false", "aria-label": "Your manifest", oninput: changed });
      const go = async () => {
        const text = area.value;
        const applied = async () => {
          const done = await apply(text);
          isOffered = false;
          return done;
        };
        try {
          const dry = await apply(text, { dryRun: true });
          const object = dry.map((done) => objectOf(done, one.own.kind)).find(Boolean);
          if (!object) throw new Error(`there is no ${one.own.kind} in it`);
          if (area.value !== text) throw new Error("it was changed meanwhile");
          show(said);
          show(place);
          isOffered = true;
          take({ steps: shownOn(one.steps, object), place, applied }, 0);
        } catch (error) {
          show(said, error.message);
        }
      };
      show(pasting, area, el("button", { type: "button", onclick: go }, "Take this one"));
    };
    let there = [];
    objectsOf(one.own.kind).then((found) => {
      there = found;
      options.append(...found.map((object, at) => el("option", { value: at }, `${object.namespace}/${object.name}`)));
    });
    return el("div", { class: "own" }, labelled("Shown on", options), pasting, said);
  }

  /** One step after the other: the next is shown when this one is done. Who goes on by a button, which is gone then, goes
   * on there; who types somewhere else, when what was waited for has been seen, stays. */
  function take(taken, at, isAskedFor = false) {
    waits = null;
    const step = taken.steps[at];
    const next = (isAskedFor) => take(taken, at + 1, isAskedFor);
    const part = !step ? el("p", { role: "status" }, "That was the lesson.") : step.question ? question(step, next) : telling(step, taken, next);
    taken.place.append(part);
    if (isAskedFor) {
      part.tabIndex = -1;
      part.focus({ preventScroll: true });
    }
    if (at && step) part.scrollIntoView({ block: "nearest" });
  }

  function telling(step, taken, next) {
    const marks = step.see.map((wanted) => el("li", { class: "unseen" }, wanted));
    const skip = el("button", { type: "button", onclick: () => { skip.remove(); next(true); } }, "Go on");
    const part = el("section", {}, paragraphs(step.text), step.applies && taken.applied ? applying(taken) : running(step), marks.length ? el("ul", { class: "see", "aria-label": "What is to be seen" }, marks) : null, skip);
    let seen = 0;
    const look = (steps) => {
      for (const one of steps) {
        if (seen < step.see.length && `${one.component}: ${one.words}`.includes(step.see[seen])) {
          marks[seen].className = "seen";
          marks[seen].textContent = `✓ ${one.component}: ${one.words}`;
          seen += 1;
        }
      }
      if (step.see.length && seen === step.see.length && waits === look) {
        skip.remove();
        next(false);
      }
    };
    waits = look;
    // What needs no command may have been seen before it is read of, and so may what is there already; but the story of
    // who took the lesson before is not this one.
    if (!step.run || (step.applies && taken.isThere)) queueMicrotask(() => look(record.steps.slice(Math.max((taken.from ?? 0) - record.first, 0))));
    else taken.from = record.newest + 1;
    return part;
  }

  record.addEventListener("steps", ({ detail: steps }) => waits?.(steps));
  view.addEventListener("chosen", begin);
}

/** As wide as there is room, wherever the lines of the source end. */
function paragraphs(text) {
  return text.trim().split(/\n\s*\n/).map((one) => el("p", {}, one.replace(/\s+/g, " ")));
}

function running({ run }) {
  if (!run) return null;
  const copy = el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(run) }, "Copy");
  return [el("pre", { class: "command", tabindex: "0" }, run), copy];
}

/** In place of the command: the learner's own manifest. */
function applying({ applied, isThere }) {
  if (isThere) return el("p", {}, "It is there already: this is what came of it.");
  const said = el("p", { role: "status" });
  const go = () => applied().then((done) => show(said, done.map((one) => one.words).join(", ")), (error) => show(said, error.message));
  return [el("button", { type: "button", onclick: go }, "Apply it"), said];
}

function question(step, next) {
  const said = el("p", { role: "status" });
  const choose = (answer) => {
    const isRight = answer === step.right;
    show(said, isRight ? `Yes. ${step.because}` : `No. ${step.wrong?.[answer] ?? ""} Once more?`);
    if (isRight) {
      for (const button of buttons) button.disabled = true;
      next(true);
    }
  };
  const buttons = step.answers.map((answer) => el("button", { type: "button", onclick: () => choose(answer) }, answer));
  return el("section", { role: "group", "aria-label": step.question }, el("h3", {}, step.question), el("div", { class: "bar" }, buttons), said);
}

/** The steps with an object's names in them. */
function shownOn(steps, { name, namespace, container }) {
  const named = (text) => text.replaceAll("{namespace}", namespace).replaceAll("{name}", name).replaceAll("{container}", container);
  return steps.map((step) => ({ ...step, run: named(step.run), see: step.see.map(named) }));
}

/** What a lesson can be shown on, of an object that the server has read. */
function objectOf({ object, of }, kind) {
  const container = object.spec?.template?.spec?.containers?.[0]?.name;
  return of.kind === kind && container ? { name: object.metadata.name, namespace: object.metadata.namespace, container } : null;
}

/** Those that are there; none for who may not list them. */
async function objectsOf(kind) {
  const of = { kind };
  const { items = [] } = await json(`/apis/apps/v1/deployments?limit=${MAX_OBJECTS}`).catch(() => ({}));
  return items.map((object) => objectOf({ object, of }, kind)).filter(Boolean);
}
