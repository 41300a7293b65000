// The course: what is told, what to run, what is to be seen of it in the record, and questions.

import { el, show } from "./dom.js";

/** The view. */
export function lessonsView(view, record) {
  const list = el("ol", { class: "lessons" });
  const lesson = el("article", {});
  show(view, el("div", { class: "course" }, el("nav", { "aria-label": "Lessons" }, list), lesson));
  let all = [];
  let waits = null;

  async function begin() {
    if (all.length) return;
    all = await (await fetch("/lessons.json")).json();
    show(list, all.map((one) => el("li", {}, el("button", { class: "link", onclick: () => open(one), title: one.about }, one.title))));
    open(all[0]);
  }

  function open(one) {
    show(lesson, el("h2", {}, one.title), el("p", {}, one.about));
    take(one, 0);
  }

  /** One step after the other: the next is shown when this one is done. */
  function take(one, at) {
    waits = null;
    const step = one.steps[at];
    if (!step) {
      lesson.append(el("p", { role: "status" }, "That was the lesson."));
      return;
    }
    const next = () => take(one, at + 1);
    lesson.append(step.question ? question(step, next) : telling(step, next));
  }

  function telling(step, next) {
    const marks = step.see.map((wanted) => el("li", { class: "unseen" }, wanted));
    const skip = el("button", { type: "button", onclick: () => { skip.remove(); next(); } }, "Go on");
    const copy = el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(step.run) }, "Copy");
    const part = el("section", {}, el("p", {}, step.text), step.run ? [el("pre", { class: "command", tabindex: "0" }, step.run), copy] : null, marks.length ? el("ul", { class: "see", "aria-label": "What is to be seen" }, marks) : null, skip);
    let seen = 0;
    const look = (steps) => {
      for (const one of steps) {
        if (seen < step.see.length && `${one.component}: ${one.words}`.includes(step.see[seen])) {
          marks[seen].className = "seen";
          marks[seen].textContent = `✓ ${step.see[seen]}`;
          seen += 1;
        }
      }
      if (step.see.length && seen === step.see.length && waits === look) {
        skip.remove();
        next();
      }
    };
    waits = look;
    // What needs no command may have been seen before it is read of.
    if (!step.run) queueMicrotask(() => look(record.steps));
    return part;
  }

  function question(step, next) {
    const said = el("p", { role: "status" });
    const choose = (answer) => {
      const isRight = answer === step.right;
      show(said, isRight ? `Yes. ${step.because}` : "No. Once more?");
      if (isRight) {
        for (const button of buttons) button.disabled = true;
        next();
      }
    };
    const buttons = step.answers.map((answer) => el("button", { type: "button", onclick: () => choose(answer) }, answer));
    return el("section", { role: "group", "aria-label": step.question }, el("h3", {}, step.question), el("div", { class: "bar" }, buttons), said);
  }

  record.addEventListener("steps", ({ detail: steps }) => waits?.(steps));
  view.addEventListener("chosen", begin);
}
