// The page: who looks, what they look at.

import { Unanswered, enter } from "./api.js";
import { el, show, showChanged } from "./dom.js";
import { CausalRecord, Player } from "./record.js";
import { mapView, storyOf } from "./map.js";
import { storyView } from "./story.js";
import { objectsView } from "./objects.js";
import { lessonsView } from "./lessons.js";

const TABS = ["map", "story", "objects", "lessons"];
/** What is seen beside a view: of what a lesson tells, how it moves. */
const BESIDE = { lessons: "map" };
const element = (id) => document.getElementById(id);

function choose(name, focus = false) {
  for (const tab of TABS) {
    const button = element(`tab-${tab}`);
    button.setAttribute("aria-selected", String(tab === name));
    button.tabIndex = tab === name ? 0 : -1;
    element(`view-${tab}`).hidden = tab !== name && tab !== BESIDE[name];
  }
  document.querySelector("main").classList.toggle("beside", name in BESIDE);
  if (focus) element(`tab-${name}`).focus();
  for (const seen of [BESIDE[name], name].filter(Boolean)) element(`view-${seen}`).dispatchEvent(new Event("chosen"));
}

/** As lists of tabs are used by keyboard: arrows, Home and End. */
function walk(event) {
  const at = TABS.findIndex((tab) => event.target.id === `tab-${tab}`);
  const to = {
    ArrowRight: (at + 1) % TABS.length,
    ArrowLeft: (at + TABS.length - 1) % TABS.length,
    Home: 0,
    End: TABS.length - 1,
  }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  choose(TABS[to], true);
}

const TITLE = document.title;
const SESSION_IS_OVER = 401;

/** What nobody can overlook: that the page shows how it was when something was heard last. None: it is alive. */
function markAway(why, heard) {
  const before = document.querySelector(".away");
  if (!before && !why) return;
  if (!why) {
    before.remove();
  } else if (before) {
    before.firstChild.data = why;
  } else {
    const since = heard.toLocaleTimeString([], { hour12: false });
    document.querySelector("header").append(el("p", { class: "away", role: "alert" }, why, ` What is shown is how it was at ${since}.`));
  }
  document.querySelector("main").classList.toggle("past", Boolean(why));
  document.title = why ? `${TITLE} (not live)` : TITLE;
}

/** None of what leaves the rest of the page as it is. */
function whyAway(error) {
  if (error instanceof Unanswered) return "The cluster has ended or does not answer.";
  return error.code === SESSION_IS_OVER ? "This session is over: `kubarium ui` prints another link." : "";
}

async function start() {
  const user = await enter();
  const record = new CausalRecord();
  const player = new Player(record);
  const who = (trouble) => showChanged(element("who"), trouble, () => (trouble ? `${user} (${trouble})` : user));
  who("");
  let heard = new Date();
  record.addEventListener("trouble", ({ detail: error }) => {
    const away = whyAway(error);
    markAway(away, heard);
    who(away ? "" : error.message);
  });
  record.addEventListener("heard", () => {
    heard = new Date();
    markAway("");
    who("");
  });
  const story = storyView(element("view-story"), record);
  const tell = (resource, namespace, name, id) => {
    choose("story");
    story.tell(resource, namespace, name, id);
  };
  const open = (step) => {
    const subject = storyOf(step, record);
    if (subject) return tell(...subject, step.id);
    choose("story");
    story.open(step);
  };
  mapView(element("view-map"), record, player, { tell, open });
  objectsView(element("view-objects"), record, { tell, open });
  lessonsView(element("view-lessons"), record);
  for (const tab of TABS) element(`tab-${tab}`).addEventListener("click", () => choose(tab));
  element("tabs").addEventListener("keydown", walk);
  record.follow();
}

start().catch((error) => {
  show(document.querySelector("main"), el("p", { class: "refused", role: "alert" }, error.message));
});
