// The cluster itself, held between two steps: who waits, and the buttons that let them go on.

import { FORBIDDEN, json } from "./api.js";
import { calmly, el, labelled, show, showChanged } from "./dom.js";

const ROOT = "/kubarium/v1/step";
/** It is asked so seldom at most who is held, in milliseconds, and only when the record says that it has changed. */
const ASKED = 100;
/** What could not be answered is asked so seldom again, in milliseconds, and only while something is heard of the cluster. */
const RETRIED = 1000;
/** Of so many who are held it is told. */
const MAX_SHOWN = 8;
const STAGES = ["write", "reconcile", "admission", "scheduling", "sync", "watch", "request"];

/** The bar, which asks only while `view` is seen; nothing of it is shown to who may not step. */
export function steppingBar(view, record) {
  const said = el("p", { role: "status", class: "held" });
  const held = el("ol", { class: "held", "aria-label": "Who is held" });
  const places = el("ul", { class: "legend", "aria-label": "Breakpoints" });
  let isAsking = false;

  const ask = async (method, path, body) => {
    isAsking = true;
    root.setAttribute("aria-busy", "true");
    try {
      const state = await json(`${ROOT}${path}`, { method, body: body && JSON.stringify(body) });
      paint(state);
      return state;
    } catch (error) {
      painted = "";
      show(said, error.message);
      return {};
    } finally {
      isAsking = false;
      root.removeAttribute("aria-busy");
      again();
    }
  };
  const button = (text, title, act) => el("button", { type: "button", title, onclick: act }, text);
  const hold = button("Hold cluster", "Stop the cluster and its clock between two steps", () => ask("POST", isHeld() ? "/continue" : "/pause"));
  const isHeld = () => hold.textContent === "Let all go on";
  const next = button("Let one happen", "The one that is held longest", () => ask("POST", "/next"));
  const stage = button("Let a stage happen", "Until the next step is of another stage", () => ask("POST", "/stage"));
  const object = el("input", { size: "14", placeholder: "deploy/web", title: "As deploy/web; in another namespace than default as shop/deploy/web" });
  const wanted = el("input", { size: "12", placeholder: "Available" });
  const until = button("Step until", "Let steps happen until the object is as it should be", async () => {
    const asked = [object.value.trim(), wanted.value.trim()];
    const [name, kind = "", ...namespace] = asked[0].split("/").reverse();
    const { reached, instead } = await ask("POST", "/until", { object: kind ? `${kind}/${name}` : name, namespace: namespace.join("/"), for: asked[1] });
    if (reached === false) show(said, `${said.textContent} ${asked.join(" is not ")} yet${instead ? `: ${instead}` : ""}.`);
  });
  const where = el("select", {}, STAGES.map((name) => el("option", { value: name }, name)));
  const what = el("input", { size: "14", placeholder: "pods default/web" });
  const stop = button("Stop there", "Stand still before this", () => {
    const [of = "", about = ""] = what.value.trim().split(/\s+/);
    ask("POST", "/breakpoints", { stage: where.value, of, object: about });
  });
  const bar = el("div", { class: "bar", role: "toolbar", "aria-label": "Stepping the cluster" }, hold, next, stage, labelled("Object", object), labelled("is", wanted), until, labelled("Before a", where), labelled("of", what), stop);
  const root = el("div", { class: "stepping", hidden: true }, bar, said, places, held);

  let painted = "";
  const paint = (state) => {
    // What rests is not drawn anew at each look.
    const shown = JSON.stringify([state.paused, state.heldCount, state.held, state.gone, state.breakpoints]);
    if (shown === painted) return;
    painted = shown;
    root.hidden = false;
    hold.textContent = state.paused ? "Let all go on" : "Hold cluster";
    const more = state.heldCount - Math.min(state.held.length, MAX_SHOWN);
    const gone = state.gone.length ? ` ${state.gone.length} gave up waiting.` : "";
    const waiting = state.heldCount ? `The cluster stands still: ${state.heldCount} held.` : "The cluster stands still, and nobody wants to take a step: the next lets time pass.";
    show(said, state.paused ? waiting + gone : "");
    showChanged(held, [state.held, more], () => [
      ...state.held.slice(0, MAX_SHOWN).map(line),
      more > 0 ? el("li", {}, `and ${more} more`) : null,
    ].filter(Boolean));
    showChanged(places, state.breakpoints, () => state.breakpoints.map(({ name }) => {
      const remove = () => ask("DELETE", `/breakpoints?name=${encodeURIComponent(name)}`);
      return el("li", {}, `stops before ${name} `, button("Remove", `Remove the breakpoint ${name}`, remove));
    }));
  };
  const line = (step) => {
    const pass = button("Let go", "Let this one happen", () => ask("POST", "/next", { number: step.number }));
    const at = step.breakpoint ? el("strong", {}, " (breakpoint)") : null;
    return el("li", {}, el("span", { class: "id" }, `${step.number} `), step.words, at, " ", pass);
  };
  let isStale = true;
  const look = async () => {
    if (isAsking || view.hidden || document.hidden || !isStale) return;
    isStale = false;
    const state = await json(ROOT).catch(({ code }) => {
      // Who may not step asks no more; who was not answered does not know how it is.
      if (code !== FORBIDDEN) isStale = true;
    });
    if (state && !isAsking) paint(state);
  };
  const again = calmly(ASKED, look);
  const retry = calmly(RETRIED, look);
  record.addEventListener("heard", () => isStale && retry());
  record.addEventListener("stepping", () => {
    isStale = true;
    again();
  });
  view.addEventListener("chosen", look);
  document.addEventListener("visibilitychange", look);
  return root;
}
