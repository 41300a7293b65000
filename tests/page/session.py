"""A session in a real browser: the page of a cluster is opened, used by mouse and keyboard, and looked at by axe.

Arguments: the link, the origin's own kubectl, a kubeconfig, the folder of axe-core, a folder for the profile.
"""

import json
import os
import re
import signal
import subprocess
import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from driven import PATIENCE, browser, button, click, count, eventually, hangs, press, reach, telling, text, type_keys
from structure import settled, well_laid_out

LINK, KUBECTL, KUBECONFIG, AXE, FOLDER = sys.argv[1:6]
ORIGIN = LINK.split("/#")[0]
# A bound against hanging, not a promise: for the whole session, since a page that loops answers nobody.
WHOLE_PATIENCE = 900


def kubectl(*words, stdin=None):
    done = subprocess.run([KUBECTL, "--kubeconfig", KUBECONFIG, *words], input=stdin, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def position(page):
    """The step that is shown, and the newest."""
    words = text(page, "#view-map output").replace(",", "").split()
    return int(words[1]), int(words[3])


def accessible(page, view):
    faultless(page, view)
    well_laid_out(page, view)


def faultless(page, view):
    """No fault that axe knows of, in light and in dark."""
    with open(os.path.join(AXE, "axe.min.js"), encoding="utf-8") as file:
        axe = file.read()
    for scheme in ["light", "dark"]:
        feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
        page.execute_script(axe)
        found = page.execute_async_script("axe.run().then(arguments[arguments.length - 1])")["violations"]
        faults = [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found]
        assert not faults, f"{view} in {scheme}: {faults}"


# Which kinds of dots are drawn from now on, by their colours.
WATCH_DOTS = """
const names = ["request", "store", "watch", "queue", "reconcile", "binding", "status"];
const probe = document.createElement("canvas").getContext("2d");
const colour = (name) => {
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return probe.fillStyle;
};
const kinds = new Map(names.map((name) => [colour(name), name]));
window.drawn = new Set();
const fill = CanvasRenderingContext2D.prototype.fill;
CanvasRenderingContext2D.prototype.fill = function (...shape) {
  if (kinds.has(this.fillStyle)) window.drawn.add(kinds.get(this.fillStyle));
  return fill.apply(this, shape);
};
return kinds.size;
"""

# Of each step whether it moves, and with which colour.
STEPS_THAT_MOVE = """
const done = arguments[arguments.length - 1];
(async () => {
  const { KINDS, STILL, kindOf, movement } = await import("/page/movement.js");
  const all = Object.keys(await (await fetch("/sources.json")).json());
  const asked = { id: 1, step: "RequestReceived", path: "/api/v1/namespaces/n/pods/a/status", user: "system:node:node-1", component: "" };
  const started = { id: 2, step: "ReconcileStarted", controller: "deployment", component: "deployment-controller" };
  const record = { get: (id) => [null, asked, started][id], requestOf: () => asked };
  const one = { cause: 2, path: asked.path, component: "kube-controller-manager", queue: "deployment", controller: "deployment", result: "requeue after 5s", node: "node-1", user: "", resource: "pods" };
  done(all.map((step) => [step, STILL.has(step), movement({ ...one, step }, record), kindOf({ ...one, step }) in KINDS]));
})();
"""


def each_step_moves_or_says_that_it_does_not(page):
    told = page.execute_async_script(STEPS_THAT_MOVE)
    assert len(told) > 30, told
    for step, is_still, between, is_named in told:
        assert is_still == (between is None) and is_named, (step, is_still, between, is_named)
        assert is_still or between[0] != between[1], (step, between)
    way = {step: between for step, _, between, _ in told}
    assert way["Enqueued"] == ["informers", "queue:deployment"], way
    assert way["ReconcileStarted"] == ["queue:deployment", "worker:deployment"], way
    assert way["Bound"] == ["scheduling cycle", "node:node-1"], way
    assert way["RequestReceived"] == ["worker:deployment", "kube-apiserver"], way
    assert way["Responded"] == ["kube-apiserver", "node:node-1"], way


# Of somebody who asks, and of a component that hears of something, whence it comes and whither it goes.
PLACES_OF = """
const done = arguments[arguments.length - 1];
(async () => {
  const { movement, placeOf } = await import("/page/movement.js");
  const record = { get: () => undefined };
  const asks = (user) => movement({ id: 1, step: "RequestReceived", path: "/api", user, component: "kube-apiserver" }, record)?.[0] ?? null;
  const hears = (component) => movement({ id: 1, step: "InformerUpdated", component }, record)?.[1] ?? null;
  done([arguments[0].map(asks), arguments[1].map(hears), arguments[2].map(placeOf)]);
})();
"""


def what_has_no_place_on_the_map_is_not_drawn_as_something_else(page):
    account = "system:serviceaccount:kube-system:"
    users = {f"{account}metrics-server": None, f"{account}coredns": None, "system:kube-proxy": None, "kubarium:volumes": None,
             f"{account}generic-garbage-collector": "kube-controller-manager", "system:kube-scheduler": "kube-scheduler",
             "system:node:node-1": "node:node-1", "kubernetes-admin": "you", "": "you"}
    caches = {"coredns": None, "kindnet": None, "kube-controller-manager": "informers", "kube-scheduler": "pods to schedule",
              "kubelet/node-1": "node:node-1"}
    places = {"metrics-server": None, "controller/mine": None, "horizontal-pod-autoscaler": "kube-controller-manager",
              "job-controller": "kube-controller-manager", "external-resizer d": "kube-controller-manager", "default-scheduler": "kube-scheduler", "": "you"}
    told = page.execute_async_script(PLACES_OF, list(users), list(caches), list(places))
    assert told == [list(users.values()), list(caches.values()), list(places.values())], told


def the_way_of_a_deployment(page):
    assert page.find_element(By.ID, "who").text == "kubernetes-admin"
    assert page.current_url == f"{ORIGIN}/", "the invitation stays in no history"
    each_step_moves_or_says_that_it_does_not(page)
    what_has_no_place_on_the_map_is_not_drawn_as_something_else(page)
    kinds = page.execute_script(WATCH_DOTS)
    assert kinds == 7, "a colour of their own"
    kubectl("create", "deployment", "web", "--image", "nginx", "--replicas", "3")
    eventually("three running pods on the map", lambda: count(page, ".pod.running") == 3)
    eventually("dots of each kind", lambda: page.execute_script("return window.drawn.size") == kinds)
    said = text(page, "ol.steps")
    assert "kubelet" in said or "kube-apiserver" in said, said
    accessible(page, "map")


# Beside the page's map one of its own, which shows these steps; whoever has it drawn takes it away.
OWN_MAP = """
const ownMap = async (steps) => {
  const { Player } = await import("/page/record.js");
  const { mapView } = await import("/page/map.js");
  const record = Object.assign(new EventTarget(), { steps, first: 1, newest: steps.length, missed: 0, behind: 0, get: (id) => steps[id - 1], requestOf: () => undefined });
  const view = document.createElement("section");
  document.querySelector("main").append(view);
  const player = new Player(record);
  mapView(view, record, player, () => {});
  return { view, record, player };
};
"""


# A map of its own, with names as long as they may be, and the right edges of what is written and of where it stands.
LONG_NAMES = OWN_MAP + """
const done = arguments[arguments.length - 1];
(async () => {
  const names = ["root-ca-certificate-publisher", "disruption", "generic-garbage-collector-of-everything"];
  const keys = ["last", "pod:q/web-7957885594-gvkmn-that-is-very-long", "8c48faec-5161-4f48-a74b-75e6b8ab68ab"];
  const started = names.map((controller, at) => ({ step: "ReconcileStarted", controller, key: keys[at], component: `${controller}-controller`, words: "w" }));
  const waiting = Array.from({ length: 40 }, (_, at) => ({ step: "Enqueued", queue: "disruption", key: `${at}`, component: "disruption-controller", words: "w" }));
  const stored = { step: "Stored", resource: "replicasets.apps", namespace: "q", name: "web", uid: keys[2], operation: "create", component: "kube-apiserver", words: "w" };
  const steps = [stored, ...started, ...waiting].map((step, at) => ({ ...step, id: at + 1 }));
  const { view, player } = await ownMap(steps);
  player.goTo(44);
  const texts = () => [...view.querySelectorAll("g > g > text.queue, g > g > text.words")].filter((one) => one.getBBox().x > 700 && one.getBBox().y < 230);
  while (texts().length < 6) await new Promise((resolve) => setTimeout(resolve, 10));
  const box = [...view.querySelectorAll("[aria-label=kube-controller-manager] rect")][0].getBBox();
  const told = texts().map((one) => {
    const { x, width } = one.getBBox();
    return [one.firstChild.data, one.querySelector("title")?.textContent ?? null, x + width <= (one.matches(".queue") ? box.x + 190 : box.x + box.width)];
  });
  view.remove();
  done(told);
})();
"""


def what_is_long_is_cut_on_the_map_and_told_in_a_title(page):
    told = page.execute_async_script(LONG_NAMES)
    assert len(told) == 6 and all(fits for _, _, fits in told), told
    cut = {shown: whole for shown, whole, _ in told if whole}
    assert all(shown.endswith("…") and whole.startswith(shown[:-1]) for shown, whole in cut.items()), told
    whole = list(cut.values())
    assert "root-ca-certificate-publisher" in whole, told
    # Who collects garbage knows objects by their uids, and people by their names.
    assert "0 wait, 1 done, last replicasets.apps q/web" in [shown for shown, _, _ in told], told
    assert "40 wait, 1 done, last pod:q/web-7957885594-gvkmn-that-is-very-long" in whole, told


# A map of its own: of a node with 200 pods, of which 61 have failed, and of more nodes than are drawn.
CROWDED_NODE = OWN_MAP + """
const done = arguments[arguments.length - 1];
(async () => {
  const ran = (pod, node) => ({ step: "ContainerStarted", pod, node });
  const failed = (pod) => ({ step: "ContainerExited", pod, exitCode: 1 });
  const all = Array.from({ length: 200 }, (_, at) => `q/p-${at}`);
  const others = Array.from({ length: 15 }, (_, at) => ran(`q/z-${at}`, `z-${at}`));
  const made = all.slice(0, 2).map((pod) => ({ step: "ContainerCreated", pod, node: "crowded" }));
  const told = [...all.map((pod) => ran(pod, "crowded")), ...all.slice(-61).map(failed), ...made, ...others, failed("q/z-14")];
  const steps = told.map((step, at) => ({ ...step, component: "kubelet", words: "w", id: at + 1 }));
  const { view, player } = await ownMap(steps);
  player.goTo(steps.length);
  while (!view.querySelector("g.rest")) await new Promise((resolve) => setTimeout(resolve, 10));
  const box = view.querySelector("g.rest").parentElement;
  const marks = [...box.querySelectorAll("circle.rest")].map((one) => [one.getAttribute("class"), one.nextElementSibling.textContent]);
  const edge = box.querySelector("rect.node").getBBox();
  const fits = [...box.querySelectorAll(".rest > *")].filter((one) => one.getBBox).every((one) => one.getBBox().x + one.getBBox().width <= edge.x + edge.width);
  const further = [...view.querySelectorAll("text.words")].map((one) => one.textContent).find((words) => words.includes("more nodes"));
  const drawn = [...box.querySelectorAll(".pod")].map((one) => one.getAttribute("class"));
  done([view.querySelector("g.rest").getAttribute("aria-label"), marks, fits, further, drawn]);
  view.remove();
})();
"""


def pods_that_are_not_drawn_are_counted_by_their_state(page):
    said, marks, fits, further, drawn = page.execute_async_script(CROWDED_NODE)
    assert drawn and set(drawn) == {"pod failed"}, ("those that failed come first", drawn)
    left = 61 - len(drawn)
    assert said == f"not drawn: {left} failed, 2 starting, 137 running", said
    assert marks[0] == ["rest failed", f"{left}"] and fits, (marks, fits)
    assert re.fullmatch(r"and \d+ more nodes with \d+ pods \(1 failed, \d+ running\)", further), further


# A map of its own, of somebody who may not read the record, and may later.
UNREAD_RECORD = OWN_MAP + """
const done = arguments[arguments.length - 1];
(async () => {
  const { view, record } = await ownMap([]);
  const said = () => view.querySelector(".map").previousElementSibling.textContent;
  const trouble = (message, code) => record.dispatchEvent(new CustomEvent("trouble", { detail: Object.assign(new Error(message), { code }) }));
  const before = said();
  trouble("too much at once", 429);
  const busy = said();
  trouble('forbidden: User "jane" cannot get path "/kubarium/v1/flow"', 403);
  const refused = said();
  record.dispatchEvent(new Event("heard"));
  done([before, busy, refused, said()]);
  view.remove();
})();
"""


def who_may_not_read_the_record_is_told_so_in_the_place_of_the_map(page):
    before, busy, refused, after = page.execute_async_script(UNREAD_RECORD)
    assert (before, busy, after) == ("", "", ""), (before, busy, after)
    for words in ['which you may not read: forbidden: User "jane" cannot get path "/kubarium/v1/flow". ',
                  "the verb get on the nonResourceURL /kubarium/v1/flow, in a ClusterRole", "every 30 seconds"]:
        assert words in refused, (words, refused)


# A map of its own, whose first questions for the nodes are not answered, nor are those of the page's other map.
UNREAD_NODES = OWN_MAP + """
const done = arguments[arguments.length - 1];
(async () => {
  const real = window.fetch;
  let unanswered = 0;
  window.fetch = (path, ...rest) => {
    if (!path.startsWith("/api/v1/nodes?") || unanswered === 4) return real(path, ...rest);
    unanswered += 1;
    return Promise.reject(new TypeError("away"));
  };
  const { view, record } = await ownMap([]);
  // Something is heard of the cluster: it is there again.
  while (!view.querySelector("svg .node")) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    record.dispatchEvent(new Event("heard"));
  }
  window.fetch = real;
  view.remove();
  done(unanswered);
})();
"""


def nodes_are_read_again_where_there_was_no_answer(page):
    assert page.execute_async_script(UNREAD_NODES) == 4


def stand_still_and_go_back(page):
    click(page, "Pause")
    eventually("it to stand still", lambda: button(page, "Play"))
    at, _ = position(page)
    kubectl("scale", "deployment", "web", "--replicas", "5")
    eventually("the record to go on", lambda: position(page)[1] > at + 20)
    assert position(page)[0] == at and count(page, ".pod") == 3
    click(page, "Step")
    eventually("one step", lambda: position(page)[0] == at + 1)
    click(page, "Stage")
    eventually("a stage", lambda: position(page)[0] > at + 1)
    slider = page.find_element(By.CSS_SELECTOR, "#view-map input[type=range]")
    slider.send_keys(Keys.HOME)
    eventually("the beginning", lambda: count(page, ".pod") == 0)
    until = page.find_element(By.CSS_SELECTOR, "#view-map input[type=search]")
    until.send_keys("created deployments.apps default/web")
    # It plays what was before as fast as it happened, or faster: on a machine that is slow that was long ago.
    Select(page.find_element(By.CSS_SELECTOR, "[aria-label='Playing'] select")).select_by_visible_text("10 times faster")
    eventually("what is waited for", lambda: "created deployments.apps default/web"
               in text(page, "ol.steps li"))
    assert count(page, ".pod") == 0
    # As a person does: what a driver clears tells nobody that it was typed.
    until.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
    assert until.get_attribute("value") == ""
    click(page, "Live")
    eventually("five pods again", lambda: count(page, ".pod.running") == 5)


def a_line_opens_its_step(page):
    """Also of what belongs to no object by itself."""
    page.find_element(By.ID, "tab-map").click()
    click(page, "Pause")
    eventually("it to stand still", lambda: button(page, "Play"))
    line = page.execute_script("return document.querySelector('#view-map ol.steps li').innerText").split()[0]
    page.find_element(By.CSS_SELECTOR, "#view-map ol.steps button").click()
    eventually("the step", lambda: text(page, "#view-story .detail h2").startswith(f"{line} "))
    page.find_element(By.ID, "tab-map").click()
    click(page, "Live")


def hold_the_cluster(page):
    held = lambda: text(page, "ol.held")
    click(page, "Hold cluster")
    eventually("the cluster to stand still", lambda: "stands still" in text(page, "p.held"))
    accessible(page, "map, held")
    asked = subprocess.Popen([KUBECTL, "--kubeconfig", KUBECONFIG, "create", "configmap", "stepped"])
    eventually("the request", lambda: "before the request to create /api/v1/namespaces/default/configmaps" in held())
    click(page, "Let a stage happen")
    eventually("admission", lambda: "before the admission plugin NamespaceLifecycle" in held())
    page.find_element(By.CSS_SELECTOR, ".stepping input[placeholder='deploy/web']").send_keys("configmap/stepped")
    page.find_element(By.CSS_SELECTOR, ".stepping input[placeholder='Available']").send_keys("create")
    click(page, "Step until")
    # Without waiting for other holders: the write is the last step before it.
    assert asked.wait(PATIENCE) == 0
    click(page, "Let all go on")
    eventually("the cluster to go on", lambda: text(page, "p.held") == "")


# The first two pods of a node that has as many; the first has the focus.
BESIDE_EACH_OTHER = """
const pods = [...document.querySelectorAll("svg g")].map((node) => [...node.querySelectorAll(":scope > [data-pod]")]).find((all) => all.length > 1);
pods[0].focus();
return pods.slice(0, 2).map((one) => one.dataset.pod);
"""


def a_map_without_a_mouse(page):
    """Nodes are there without pods, and who has come to a pod stays there though another is drawn."""
    titles = "return [...document.querySelectorAll('svg .node + text')].map((one) => one.textContent)"
    nodes = lambda: page.execute_script(titles)
    eventually("three nodes", lambda: len(nodes()) == 3)
    kubectl("cordon", "node-3")
    eventually("one that takes no pods", lambda: any("SchedulingDisabled" in title for title in nodes()))
    kubectl("uncordon", "node-3")
    # A node is one stop of the keyboard, and arrows lead from pod to pod.
    beside = page.execute_script(BESIDE_EACH_OTHER)
    assert count(page, ".pod[tabindex='0']") <= 3, beside
    type_keys(page, Keys.ARROW_RIGHT)
    focused = lambda: page.execute_script("return document.activeElement.dataset.pod")
    assert focused() == beside[1], (focused(), beside)
    type_keys(page, Keys.HOME, Keys.ARROW_LEFT)
    assert focused() == beside[0], (focused(), beside)
    # At one moment: the map may be drawn anew between two questions.
    key = page.execute_script("const pod = document.querySelector('.pod.running'); pod.focus(); return pod.dataset.pod")
    kubectl("run", "another", "--image", "nginx")
    eventually("another pod", lambda: count(page, ".pod.running") == 6)
    kubectl("delete", "pod", "another", "--wait=true")
    eventually("it to go", lambda: count(page, ".pod") == 5)
    assert focused() == key, focused()


def the_story_of_a_pod(page):
    type_keys(page, " ")
    eventually("its story", lambda: count(page, ".story li button") > 10)
    assert page.find_element(By.ID, "tab-story").get_attribute("aria-selected") == "true"
    words = text(page, "ol.story")
    for part in ["created pods default/web-", "bound default/web-", "started container nginx"]:
        assert part in words, f"no {part!r} in {words}"
    press(page, "the write", ["created pods"], ".story li")
    eventually("the step", lambda: "Stored" in text(page, "#view-story .detail"))
    detail = text(page, "#view-story .detail")
    assert "/registry/pods/default/web-" in detail and "src/etcd/writer.rs:" in detail, detail
    the_code_of_a_step(page)
    assert "patch" in detail.lower() or "create" in detail.lower(), detail
    sent = eventually("what was sent", lambda: "Answer: 201" in text(page, "#view-story .detail") and text(page, "#view-story .detail"))
    assert "Request: POST /api/v1/namespaces/default/pods" in sent and '"containers": [' in sent, sent
    assert "The value in etcd at revision" in sent and "schedulerName: default-scheduler" in text(page, "#view-story pre.value"), sent
    what_was_there(page)
    press(page, "scores", ["is best"], ".story li")
    table = eventually("scores by plugin", lambda: text(page, "#view-story .detail table"))
    assert "node\ttotal" in table and "NodeResourcesFit" in table.split("\n")[0], table
    assert "[object" not in text(page, "#view-story .detail")
    legend = eventually("who wrote which field", lambda: text(page, "#view-story .legend"))
    assert "kubelet (status)" in legend, legend
    # From a field to the request that wrote it, and back to the command.
    click(page, "kubelet (status)")
    wrote = eventually("the kubelet's write", lambda: "Request: PATCH" in text(page, "#view-story .detail") and text(page, "#view-story .detail"))
    assert "/status" in wrote and "updated pods default/web-" in wrote and "create default/deployments" in wrote, wrote
    # The create, and not the binding, which is a write of the same second.
    field = lambda name: page.find_element(By.XPATH, f"//pre[contains(@class,'yaml')]/span[contains(.,'{name}:')]")
    told = lambda request: request in text(page, "#view-story .detail")
    # What is below moves down when what was there has been read.
    there = lambda: eventually("what was there", lambda: count(page, "#view-story pre.value") and count(page, "#view-story .detail pre.sent"))
    there()
    reach("a field", lambda: field("restartPolicy"))
    eventually("the create", lambda: told("Request: POST /api/v1/namespaces/default/pods\n"))
    there()
    # A generation is of the write that made it what it is, and not of the last one.
    reach("the generation", lambda: field("generation"))
    eventually("the create", lambda: told("Request: POST /api/v1/namespaces/default/pods\n"))
    there()
    # Of what has no owner the record knows, too; and without a mouse.
    eventually("another", lambda: page.execute_script("arguments[0].focus(); return true", field("nodeName")))
    type_keys(page, Keys.ENTER)
    eventually("the binding", lambda: told("/binding\n"))
    type_keys(page, Keys.HOME)
    type_keys(page, Keys.ARROW_DOWN)
    focused = page.execute_script("return document.activeElement.innerText")
    assert focused.startswith("apiVersion: v1"), focused
    there()
    accessible(page, "story")


def what_was_there(page):
    """The value in etcd, the entry of a cache, what a controller saw change, and what an admission plugin put in: of a
    pod, which no person has made."""
    choose = lambda *words: press(page, f"a step with {words}", words, ".story li")
    detail = lambda: text(page, "#view-story .detail")
    # An update of the pod is a difference.
    choose("updated pods default/web-")
    eventually("what the write changed", lambda: "What the write changed" in detail())
    assert "(not there)" in text(page, "#view-story .difference"), detail()
    choose("informed of pods default/web-", "OnAdd")
    eventually("the cache's entry", lambda: "The entry in the indexer of" in detail())
    assert "index namespace\ndefault" in text(page, "#view-story .entry"), text(page, "#view-story .entry")
    choose("informed of pods default/web-", "OnUpdate")
    eventually("what a component saw change", lambda: "saw change, from " in detail() and text(page, "#view-story .difference"))
    choose("ServiceAccount changed")
    eventually("the plugin's patch", lambda: "spec.serviceAccountName" in text(page, "#view-story .detail table"))


def ask_for_a_story(page, kind, namespace, name):
    for label, value in [("Kind", kind), ("Namespace", namespace), ("Name", name)]:
        field = page.find_element(By.XPATH, f"//*[@id='view-story']//label[span='{label}']/input")
        field.clear()
        field.send_keys(value)
    click(page, "Tell")


# What the page is told of headers and bodies, in place of what is so.
NONE_KEPT = """
window.realFetch = window.fetch;
const body = JSON.stringify({ exchanges: [], isKept: true, withheld: false, maxExchanges: 7 });
window.askedFor = 0;
window.fetch = (path, options) => {
  if (!String(path).startsWith("/kubarium/v1/exchanges")) return window.realFetch(path, options);
  window.askedFor += 1;
  return Promise.resolve(new Response(body));
};
"""


def only_requests_have_headers_and_bodies(page):
    detail = lambda: text(page, "#view-story .detail")
    page.execute_script(NONE_KEPT)
    press(page, "a step of a request", ["created pods"], ".story li")
    eventually("why there are none", lambda: "No headers and bodies of this request are kept" in detail())
    press(page, "scores", ["is best"], ".story li")
    eventually("the scores", lambda: "Scored" in detail() and page.execute_script("return window.askedFor") == 2)
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert "headers and bodies" not in detail(), detail()
    page.execute_script("window.fetch = window.realFetch")
    # Who is known by being in the process was asked nothing.
    press(page, "who it is", ["authenticated as system:"], ".story li")
    eventually("the step", lambda: "Authenticated" in detail())
    assert "\nsaid" not in detail(), detail()


def a_generation_that_has_grown(page):
    ask_for_a_story(page, "deploy", "default", "web")
    eventually("its story", lambda: "deployments.apps default/web: " in text(page, "#view-story p[role=status]"))
    field = lambda: page.find_element(By.XPATH, "//pre[contains(@class,'yaml')]/span[contains(.,'  generation:')]")
    eventually("the second", lambda: field().text.strip() == "generation: 2")
    reach("the generation", field)
    scaled = lambda: "/apis/apps/v1/namespaces/default/deployments/web/scale" in text(page, "#view-story .detail")
    eventually("what scaled it", scaled)
    # What its manager wrote long before their last write, and what a write of the scale has written, of which no time
    # is noted.
    other = lambda name: page.find_element(By.XPATH, f"//pre[contains(@class,'yaml')]/span[contains(.,' {name}:')]")
    reach("an annotation", lambda: other("deployment.kubernetes.io/revision"))
    eventually("the first status", lambda: "metadata.annotations" in text(page, "#view-story .difference") and not scaled())
    reach("the replicas", lambda: other("replicas"))
    eventually("what scaled it", scaled)


def what_never_was_is_not_gone(page):
    said = lambda: text(page, "#view-story p[role=status]")
    title = lambda: text(page, "#view-story .fields h2")
    ask_for_a_story(page, "pods", "default", "nope")
    eventually("that there is none", lambda: "nothing is recorded" in said() and title().startswith("There is no such object"))
    asked = [KUBECTL, "--kubeconfig", KUBECONFIG, "create", "configmap", "refused", "--as", "joe"]
    assert subprocess.run(asked, capture_output=True).returncode != 0
    ask_for_a_story(page, "configmaps", "default", "refused")
    eventually("the refusal", lambda: "refused with 403" in text(page, "ol.story"))
    eventually("that there is none", lambda: title().startswith("There is no such object"))
    end = "=> a Role with apiGroups [\"\"], resources [\"configmaps\"], verbs [\"create\"], bound to User \"joe\" in namespace default, would allow it"
    assert text(page, "ol.story").rstrip().endswith(end), text(page, "ol.story")
    ask_for_a_story(page, "foos", "default", "a")
    eventually("that there is no such kind", lambda: said().startswith("There is no such kind: "))
    assert count(page, "ol.story li") == 0 and title() == "", title()
    kubectl("run", "gone", "--image", "nginx")
    kubectl("delete", "pod", "gone", "--now", "--wait=true")
    ask_for_a_story(page, "pods", "default", "gone")
    eventually("that it is gone", lambda: title() == "It is not there any more")


HUGE = """
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: "9000"}}}]}
"""


def a_story_ends_with_how_it_stands(page):
    kubectl("apply", "--filename", "-", stdin=HUGE)
    ask_for_a_story(page, "pods", "default", "huge")
    eventually("why it has no node", lambda: "=> pod default/huge has no node: " in text(page, "ol.story li:last-child"))
    kubectl("delete", "pod", "huge", "--wait=true")


LASTED = "const done = arguments[0]; import('/page/story.js').then(({ lasted }) => done([7, 1500000, 151019700].map(lasted)))"


def the_code_of_a_step(page):
    """A link to the line of our code, in a tab of its own, which the same process serves."""
    before = page.current_window_handle
    page.find_element(By.CSS_SELECTOR, "#view-story .detail a").click()
    other = eventually("another tab", lambda: [one for one in page.window_handles if one != before])[0]
    page.switch_to.window(other)
    assert "fn stage_write(" in eventually("the line", lambda: text(page, ".source li:target"))
    assert page.current_url.startswith(f"{ORIGIN}/source/src/etcd/writer.rs#L"), page.current_url
    accessible(page, "source")
    page.close()
    page.switch_to.window(before)


def saved_story():
    """The file that was saved, once all of it is there: a browser takes the name first, with an empty file."""
    made = [one for one in os.listdir(FOLDER) if one.startswith("pods-default-web-") and one.endswith(".html")]
    with open(os.path.join(FOLDER, made[0]), encoding="utf-8") as file:
        whole = file.read()
    return whole if whole.rstrip().endswith("</html>") else None


def a_story_to_take_along(page):
    """One file, in which each step opens, which asks nobody for anything."""
    page.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": FOLDER})
    click(page, "Save as HTML")
    saved = eventually("a whole file", saved_story)
    step = saved.split("created pods default/web-")[1].split("</details>")[0]
    assert "/registry/pods/default/web-" in step and "src/etcd/writer.rs:" in step, step
    assert "schedulerName: default-scheduler" in step, step
    asked = saved.split("create default/pods")[1].split("</details>")[0]
    assert "Request: POST /api/v1/namespaces/default/pods" in asked and "Answer: 201" in asked, asked
    assert "http:" not in saved and "https:" not in saved and "src=" not in saved and "href=" not in saved, saved


def objects_and_a_shell(page):
    page.find_element(By.ID, "tab-story").send_keys(Keys.ARROW_RIGHT)
    eventually("a table", lambda: count(page, "td button.link") == 5)
    assert "Running" in text(page, "#view-objects table")
    # Nothing is chosen, so that nothing is beside it.
    widths = "return ['#view-objects .table', '#view-objects'].map((one) => document.querySelector(one).getBoundingClientRect().width)"
    table, view = page.execute_script(widths)
    assert table > view - 2, (table, view)
    accessible(page, "objects")
    press(page, "the first pod", [], "td")
    eventually("its YAML", lambda: count(page, "#view-objects pre.yaml") == 1)
    table, view = page.execute_script(widths)
    assert table < view / 2, (table, view)
    click(page, "Events")
    eventually("its events, and of what type", lambda: "Normal Scheduled: " in text(page, "#view-objects .pane"))
    click(page, "Owners")
    eventually("its owners", lambda: count(page, ".tree button") >= 3)
    tree = text(page, ".tree").split("\n")
    assert tree[0] == "deployments.apps web" and tree[1].startswith("replicasets.apps web-"), tree
    containers_of_a_pod(page)


TWO_CONTAINERS = """
apiVersion: v1
kind: Pod
metadata: {name: a-pair}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: first, image: busybox, command: [sh, -c, "echo it begins; sleep 1; exit 3"]}
  - {name: second, image: busybox, command: [sleep, infinity]}
"""


def containers_of_a_pod(page):
    """The log of any, also of the one before; a shell in any, with the keys that no line is sent with."""
    kubectl("apply", "--filename", "-", stdin=TWO_CONTAINERS)
    restarts = ["get", "pod", "a-pair", "--output", "jsonpath={.status.containerStatuses[0].restartCount}"]
    eventually("a restart", lambda: kubectl(*restarts) not in ["", "0"])
    click(page, "a-pair")
    eventually("its YAML", lambda: "name: a-pair" in text(page, "#view-objects pre.yaml"))
    click(page, "Logs")
    chosen = lambda: Select(page.find_element(By.CSS_SELECTOR, "#view-objects .pane select"))
    assert [one.text for one in eventually("containers", chosen).options] == ["first", "second"]
    page.find_element(By.CSS_SELECTOR, "#view-objects .pane input[type=checkbox]").click()
    eventually("the log of the one before", lambda: text(page, "#view-objects pre.output").strip() == "it begins")
    chosen().select_by_visible_text("second")
    eventually("that there was none", lambda: "previous terminated container" in text(page, "#view-objects pre.output"))
    click(page, "Shell")
    eventually("a shell", lambda: count(page, ".terminal input"))
    assert page.execute_script("return document.activeElement.matches('.terminal input')"), "whoever wants a shell types into it"
    chosen().select_by_visible_text("second")
    said = lambda: text(page, ".terminal pre")
    eventually("its prompt", lambda: said().endswith("/ # "))
    shell = page.find_element(By.CSS_SELECTOR, ".terminal input")
    shell.send_keys("echo $HOSTNAME says hi" + Keys.ENTER)
    eventually("an answer", lambda: "\na-pair says hi\n" in said())
    shell.send_keys("sleep 1000" + Keys.ENTER)
    eventually("it to sleep", lambda: said().endswith("sleep 1000\n") or said().endswith("sleep 1000"))
    shell.send_keys(Keys.CONTROL, "c")
    eventually("it to be interrupted", lambda: "^C" in said() and said().endswith("/ # "))
    shell.send_keys(Keys.CONTROL + "d")
    eventually("its end", lambda: "the shell has ended" in said() or "the connection has ended" in said())
    kept = "const at = document.activeElement; return at.matches('.terminal input') && at.readOnly"
    eventually("nobody to be sent away", lambda: page.execute_script(kept))


def apply_and_delete(page):
    click(page, "Apply YAML")
    area = page.find_element(By.TAG_NAME, "textarea")
    area.clear()
    area.send_keys("apiVersion: v1\nkind: ConfigMap\nmetadata:\nname: made\n")
    click(page, "Apply")
    status = lambda: page.find_elements(By.CSS_SELECTOR, "#view-objects .detail .outcome")
    eventually("a refusal", lambda: any("metadata.name" in one.text for one in status()))
    page.execute_script("arguments[0].value = arguments[1]", area,
                        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  a: b\n")
    click(page, "Apply")
    eventually("an object", lambda: any("ConfigMap made applied" in one.text for one in status()))
    assert "b" in kubectl("get", "configmap", "made", "-o", "jsonpath={.data.a}")
    # What comes first is there for what comes next, in whatever form it is written.
    texts = ["apiVersion: v1\nkind: Namespace\nmetadata: {name: room}\n",
             '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in-json", "namespace": "room"}}\n',
             "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: any-, namespace: room}\n"]
    page.execute_script("arguments[0].value = arguments[1]", area, "---\n".join(texts))
    click(page, "Apply")
    eventually("three objects", lambda: any("Namespace room applied, ConfigMap in-json applied, ConfigMap any-" in one.text
               for one in status()))
    assert "in-json" in kubectl("get", "configmaps", "--namespace", "room", "-o", "name")
    outcome = lambda: text(page, "#view-objects .outcome")
    for sent, answer in [
            ("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: first}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: second}\n",
             "ConfigMap first applied, ConfigMap second applied"),
            ("apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: third}}]\n", "ConfigMap third applied"),
            ("foo: [", "this is no YAML: "),
            ("foo: 1", "an object has no apiVersion, no kind, no metadata.name"),
            ("  \n# nothing\n", "there is nothing to apply")]:
        page.execute_script("arguments[0].value = arguments[1]", area, sent)
        click(page, "Apply")
        eventually(f"{answer!r}", lambda: answer in outcome())


CAUSED = """apiVersion: apps/v1
kind: Deployment
metadata: {name: caused, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: caused}}
  template:
    metadata: {labels: {app: caused}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: nginx, image: nginx}
"""


def what_a_write_leads_to(page):
    """A dry run says what would be otherwise; what is applied or deleted is followed as it happens."""
    area = page.find_element(By.TAG_NAME, "textarea")
    write = lambda words: page.execute_script("arguments[0].value = arguments[1]", area, words)
    outcome = lambda: text(page, "#view-objects .outcome")
    led_to = lambda: text(page, "#view-objects .caused")
    write(CAUSED)
    click(page, "Dry run")
    eventually("that it is not there yet", lambda: "Deployment caused would be created" in outcome())
    assert count(page, "#view-objects .caused li") == 0
    click(page, "Apply")
    for words in ["deployments.apps default/caused created by you", " created by deployment-controller",
                  "2 pods created by replicaset-controller", "2 pods bound to nodes", "2 containers started"]:
        eventually(words, lambda: words in led_to())
    faultless(page, "objects, what a write leads to")
    write(CAUSED.replace("replicas: 2", "replicas: 3"))
    click(page, "Dry run")
    eventually("what would change", lambda: "spec.replicas\t2\t3" in outcome())
    faultless(page, "objects, what would change")
    click(page, "Apply")
    eventually("one more", lambda: "deployments.apps default/caused updated by you" in led_to())
    press(page, "the write", ["updated by you"], "#view-objects .caused")
    eventually("its step", lambda: "updated deployments.apps default/caused" in text(page, "#view-story .detail"))
    assert "updated deployments.apps default/caused" in eventually("it in the story", lambda: text(page, "#view-story [aria-current]"))
    page.find_element(By.ID, "tab-objects").click()


def what_is_looked_at_is_as_it_is(page):
    """The table and the object change when somebody else changes them."""
    label = lambda words: page.execute_script("return [...document.querySelectorAll('#view-objects label')].find((one) => one.textContent === arguments[0]).lastChild", words)
    Select(page.find_element(By.CSS_SELECTOR, "#view-objects .bar select")).select_by_visible_text("deployments.apps")
    table = lambda: text(page, "#view-objects table")
    eventually("both", lambda: "caused" in table() and "web" in table() and "Images" not in table())
    label("Wide").click()
    eventually("what kubectl prints with -o wide", lambda: "Images" in table())
    label("Wide").click()
    label("Labels").send_keys("app=none" + Keys.TAB)
    eventually("none of them", lambda: "web" not in table())
    label("Labels").clear()
    label("Labels").send_keys(Keys.TAB)
    press(page, "the deployment", ["caused"], "#view-objects td")
    shown = lambda: text(page, "#view-objects pre.yaml")
    eventually("its YAML", lambda: "name: caused" in shown())
    kubectl("label", "deployment", "caused", "some=body")
    eventually("what there is now", lambda: "some: body" in shown())
    page.execute_script("[...document.querySelectorAll('#view-objects td button')].find((one) => one.textContent === 'caused').focus()")
    kubectl("label", "deployment", "caused", "any=thing")
    eventually("what there is now", lambda: "any: thing" in shown())
    assert page.execute_script("return document.activeElement.textContent") == "caused", "who came there by keyboard stays"
    click(page, "Delete")
    click(page, "Delete caused")
    led_to = lambda: text(page, "#view-objects .caused")
    for words in ["deployments.apps default/caused deleted by you", " deleted by garbage-collector-controller"]:
        eventually(words, lambda: words in led_to())
    # By whom depends on how far a pod has come: its kubelet has the last word on one that ran.
    pods = lambda: [int(many or 1) for many in re.findall(r"^(?:(\d+) )?pods .*deleted by ", led_to(), re.MULTILINE)]
    eventually("three pods to go", lambda: sum(pods()) == 3)
    faultless(page, "objects, what a deletion leads to")
    click(page, "Apply YAML")


def fields_that_somebody_else_has(page):
    """An apply that would take them says whose they are, and takes them when that is wanted."""
    theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: default}\ndata: {a: theirs, b: theirs}\n"
    kubectl("apply", "--server-side", "--field-manager", "joe", "--filename", "-", stdin=theirs)
    area = page.find_element(By.TAG_NAME, "textarea")
    page.execute_script("arguments[0].value = arguments[1]", area, theirs.replace("theirs", "ours", 1))
    outcome = lambda: text(page, "#view-objects .outcome")
    click(page, "Apply")
    eventually("a conflict", lambda: "conflict" in outcome())
    assert '.data.a conflict with "joe"' in outcome() and ".data.b" not in outcome(), outcome()
    accessible(page, "objects, conflict")
    assert kubectl("get", "configmap", "shared", "-o", "jsonpath={.data.a}") == "theirs"
    # Who changes the text is offered nothing that they have not sent.
    area.send_keys(Keys.ENTER)
    eventually("no offer", lambda: count(page, "#view-objects .outcome button") == 0)
    click(page, "Apply")
    eventually("the offer", lambda: button(page, "Take these fields"))
    # And what is taken is of what was sent, whatever stands there now.
    page.execute_script("arguments[0].value = arguments[1]", area, theirs.replace("shared", "another"))
    click(page, "Take these fields")
    eventually("what was taken", lambda: "These fields were taken:" in outcome())
    assert "ConfigMap shared applied" in outcome() and '.data.a conflict with "joe"' in outcome(), outcome()
    assert kubectl("get", "configmap", "shared", "-o", "jsonpath={.data.a}{.data.b}") == "ourstheirs"


def a_text_that_is_changed_again(page):
    """What has been replaced is changed in what there is now; whoever was faster is written over only when that is wanted."""
    kubectl("create", "configmap", "edited", "--from-literal", "a=1")
    Select(page.find_element(By.CSS_SELECTOR, "#view-objects .bar select")).select_by_visible_text("configmaps")
    press(page, "the map", ["edited"], "#view-objects td")
    eventually("its YAML", lambda: "name: edited" in text(page, "#view-objects pre.yaml"))
    click(page, "Edit")
    outcome = lambda: text(page, "#view-objects .outcome")
    change = "const area = document.querySelector('#view-objects .pane textarea'); area.value = area.value.replace(...arguments); return area.value"
    for old, new in ["12", "23"]:
        page.execute_script(change, f'a: "{old}"', f'a: "{new}"')
        click(page, "Replace")
        eventually("it to be replaced", lambda: kubectl("get", "configmap", "edited", "-o", "jsonpath={.data.a}") == new and "ConfigMap edited replaced" in outcome())
        newest = kubectl("get", "configmap", "edited", "-o", "jsonpath={.metadata.resourceVersion}")
        eventually("what there is now", lambda: f'resourceVersion: "{newest}"' in page.execute_script(change, "", ""))
    kubectl("label", "configmap", "edited", "some=body")
    page.execute_script(change, 'a: "3"', 'a: "4"')
    click(page, "Replace")
    eventually("that somebody was faster", lambda: "has been modified" in outcome())
    click(page, "Replace all the same")
    eventually("it to be replaced", lambda: "ConfigMap edited replaced" in outcome())
    assert kubectl("get", "configmap", "edited", "-o", "jsonpath={.data.a}{.metadata.labels}") == "4"


# Lists in lists, and a word that YAML takes for a number.
WRITTEN = """
const done = arguments[arguments.length - 1];
import("/page/yaml.js").then(({ yamlText }) => done(yamlText({ a: [[1, [2, 3]], [{ b: 4, c: [] }]], d: ".inf" })));
"""


def lists_in_lists_are_written_as_such(page):
    assert page.execute_async_script(WRITTEN) == 'a:\n- - 1\n  - - 2\n    - 3\n- - b: 4\n    c: []\nd: ".inf"\nmetadata: {}\n'


def a_lesson(page):
    """Beside the map; tests/page/lessons.py takes all of them."""
    page.find_element(By.ID, "tab-lessons").click()
    eventually("a lesson", lambda: count(page, "pre.command") == 1)
    assert page.find_element(By.CSS_SELECTOR, "#view-map svg").is_displayed()
    # As wide as there is room, whatever the lines of its source are.
    words = page.execute_script("return [...document.querySelectorAll('#view-lessons section > p')].map((one) => [one.textContent, getComputedStyle(one).whiteSpace])")
    assert words and all("\n" not in text and space == "normal" for text, space in words), words
    accessible(page, "lessons")
    # Whoever goes on by keyboard is where it goes on.
    page.execute_script("arguments[0].focus()", eventually("the next", lambda: button(page, "Go on", "#view-lessons")))
    type_keys(page, Keys.ENTER)
    focused = "const at = document.activeElement; return at === document.querySelector('#view-lessons article section:last-of-type') && at.innerText"
    assert page.execute_script(focused), page.execute_script("return document.activeElement.outerHTML.slice(0, 200)")


# A page whose cluster can be made to end: what is under way breaks off, and nobody answers what is asked then.
CAN_BE_CUT_OFF = """
const real = window.fetch;
let isCut = false;
window.fetch = async (path, options) => {
  if (isCut) throw new TypeError("Failed to fetch");
  const answer = await real(path, options);
  if (!String(path).startsWith("/kubarium/v1/flow")) return answer;
  const breaking = new TransformStream({ start: (all) => { window.cutOff = () => { isCut = true; all.error(new TypeError("network error")); }; } });
  return new Response(answer.body.pipeThrough(breaking));
};
window.answerAgain = () => { isCut = false; };
"""


def who_does_not_answer_is_not_shown_as_alive(page):
    page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CAN_BE_CUT_OFF})
    page.refresh()
    eventually("the record", lambda: page.execute_script("return Boolean(window.cutOff)") and count(page, "ol.steps li"))
    page.execute_script("window.cutOff()")
    banner = lambda: text(page, "header [role=alert]")
    eventually("what is wrong", lambda: "The cluster has ended or does not answer." in banner())
    assert "not live" in page.title and count(page, "main.past") == 1, page.title
    assert text(page, "#who") == "kubernetes-admin", text(page, "#who")
    faultless(page, "a page whose cluster is away")
    page.execute_script("window.answerAgain()")
    eventually("it to be alive", lambda: count(page, "header [role=alert]") == 0)
    assert "not live" not in page.title and count(page, "main.past") == 0, page.title


# A record of its own: of a cluster that says something from time to time, and then nothing any more, though its
# connection stays. Time is a beat of the page's.
SILENT = """
const done = arguments[arguments.length - 1];
(async () => {
  const { CausalRecord } = await import("/page/record.js");
  const [real, interval] = [window.fetch, window.setInterval];
  let [beat, tell, heard] = [null, null, 0];
  const troubles = [];
  window.setInterval = (act) => { beat = act; };
  window.fetch = async (path, { signal }) => new Response(new ReadableStream({ start: (all) => {
    signal.addEventListener("abort", () => all.error(signal.reason));
    tell = () => all.enqueue(new TextEncoder().encode('{"steps":[],"missed":0,"next":1}\\n'));
  } }));
  const record = new CausalRecord();
  record.addEventListener("heard", () => (heard += 1));
  record.addEventListener("trouble", ({ detail }) => troubles.push(detail.message));
  record.follow();
  [window.fetch, window.setInterval] = [real, interval];
  const until = async (isSo) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  await until(() => heard === 1);
  beat();
  beat();
  tell();
  await until(() => heard === 2);
  beat();
  beat();
  const before = troubles.length;
  beat();
  await until(() => troubles.length);
  done([before, troubles]);
})();
"""


def who_says_nothing_any_more_is_not_shown_as_alive(page):
    """A process that is stopped keeps its connections."""
    assert page.execute_async_script(SILENT) == [0, ["the cluster has ended or does not answer"]]


# A map of its own, to which rounds of a controller come when everything is drawn that was there.
AT_REST = """
const done = arguments[arguments.length - 1];
(async () => {
  const { CausalRecord, Player } = await import("/page/record.js");
  const { mapView } = await import("/page/map.js");
  const [real, frames] = [window.fetch, window.requestAnimationFrame];
  let [asked, drawn] = [0, 0];
  const view = document.createElement("section");
  document.querySelector("main").append(view);
  let tell;
  const body = new ReadableStream({ start: (all) => (tell = (steps) => all.enqueue(new TextEncoder().encode(`${JSON.stringify({ steps, missed: 0, next: steps.at(-1).id + 1, stepping: 0 })}\\n`))) });
  let [hasReadNodes, pending] = [false, 0];
  window.fetch = async (path, options) => {
    if (String(path).startsWith("/kubarium/v1/flow")) return new Response(body);
    pending += 1;
    const answer = await real(path, options);
    answer.clone().text().then(() => {
      hasReadNodes ||= String(path).startsWith("/api/v1/nodes");
      pending -= 1;
    });
    return answer;
  };
  const record = new CausalRecord();
  mapView(view, record, new Player(record), () => {});
  record.follow();
  const settled = async (wanted) => {
    while (record.newest < wanted || !hasReadNodes || pending) await new Promise((resolve) => setTimeout(resolve, 10));
    for (let at = 0; at < 40; at += 1) await new Promise((resolve) => frames.call(window, resolve));
  };
  tell([{ id: 1, atMicroseconds: 1, step: "Started", component: "kube-apiserver", words: "w", what: "w" }]);
  await settled(1);
  const round = (id) => [
    { id, atMicroseconds: id, step: "Enqueued", queue: "node-lifecycle", key: "node-1", component: "node-lifecycle-controller", words: "w" },
    { id: id + 1, cause: id, atMicroseconds: id, step: "ReconcileStarted", controller: "node-lifecycle", key: "node-1", component: "node-lifecycle-controller", words: "w" },
    { id: id + 2, cause: id + 1, atMicroseconds: id, step: "ReconcileEnded", result: "requeue after 5s", component: "node-lifecycle-controller", words: "w" },
  ];
  const changes = new MutationObserver(() => {});
  changes.observe(view, { subtree: true, childList: true, characterData: true, attributes: true });
  window.requestAnimationFrame = (act) => { drawn += 1; return frames.call(window, act); };
  const before = window.fetch;
  window.fetch = (...of) => { asked += 1; return before(...of); };
  for (let id = 2; id < 32; id += 3) tell(round(id));
  await settled(31);
  const mutations = changes.takeRecords().length;
  [window.fetch, window.requestAnimationFrame] = [real, frames];
  view.remove();
  done([record.newest, mutations, drawn, asked]);
})();
"""


def a_page_at_rest_draws_nothing_and_asks_for_nothing(page):
    """What controllers look at from time to time changes nothing that anybody sees at once."""
    looks = []

    def is_at_rest():
        looks.append(page.execute_async_script(AT_REST))
        return looks[-1] == [31, 0, 0, 0]
    # The page around it draws and asks, too, until its own cluster rests.
    try:
        eventually("rest", is_at_rest)
    except AssertionError as error:
        raise AssertionError(f"{error}: steps, changes, frames, requests {looks}") from None


OPENED_LATE = """
const done = arguments[arguments.length - 1];
(async () => {
  const { CausalRecord, Player } = await import("/page/record.js");
  const steps = [100, 101].map((id) => ({ id, cause: 0, atMicroseconds: id, component: "", words: "w" }));
  const line = JSON.stringify({ steps, missed: 99, next: 102 }) + "\\n";
  const body = new ReadableStream({ start: (all) => all.enqueue(new TextEncoder().encode(line)) });
  const real = window.fetch;
  window.fetch = () => Promise.resolve(new Response(body));
  const record = new CausalRecord();
  const player = new Player(record);
  record.addEventListener("steps", () => done([player.at, player.live]));
  record.follow();
  window.fetch = real;
})();
"""


# A bar of its own, whose first question comes back without an answer.
HELD_UNKNOWN = """
const done = arguments[arguments.length - 1];
(async () => {
  const { steppingBar } = await import("/page/stepping.js");
  const real = window.fetch;
  let [asked, answer] = [0, () => Promise.reject(new TypeError("away"))];
  window.fetch = (path, options) => {
    if (path !== "/kubarium/v1/step") return real(path, options);
    asked += 1;
    return answer(path, options);
  };
  const record = new EventTarget();
  const view = document.createElement("section");
  const bar = steppingBar(view, record);
  // Lines come, which say that the cluster is there.
  const hearing = setInterval(() => record.dispatchEvent(new Event("heard")), 10);
  const until = async (isSo) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  record.dispatchEvent(new Event("stepping"));
  await until(() => asked > 0);
  const hidden = bar.hidden;
  answer = real;
  await until(() => !bar.hidden);
  clearInterval(hearing);
  window.fetch = real;
  done(hidden);
})();
"""


def who_is_held_is_asked_again_where_there_was_no_answer(page):
    """Though nothing has changed meanwhile of who is held."""
    assert page.execute_async_script(HELD_UNKNOWN)


# A shell that says very much at once; what it says is drawn once a frame.
MUCH_AT_ONCE = """
const done = arguments[arguments.length - 1];
(async () => {
  const { terminal } = await import("/page/terminal.js");
  const real = window.WebSocket;
  let opened;
  window.WebSocket = class {
    static OPEN = 1;
    constructor() { opened = this; }
    close() {}
  };
  const { root } = terminal("/api/v1/namespaces/n/pods/p", "c");
  window.WebSocket = real;
  const output = root.querySelector("pre");
  let drawn = 0;
  const changes = new MutationObserver((records) => (drawn += records.length));
  changes.observe(output, { childList: true, characterData: true });
  const say = (text) => opened.onmessage({ data: new Uint8Array([1, ...new TextEncoder().encode(text)]).buffer });
  say("begun\\b\\b and\\rnever\\r");
  for (let at = 0; at < 30000; at += 1) say(`line ${at}\\r\\n`);
  say("50%\\r100%\\r\\ngone\\rlasx\\bt");
  const before = changes.takeRecords().length;
  await new Promise((resolve) => requestAnimationFrame(resolve));
  const text = output.textContent;
  done([before, drawn, text.length <= 200000, text.slice(-21)]);
})();
"""


def a_shell_that_says_much_is_drawn_once_a_frame(page):
    assert page.execute_async_script(MUCH_AT_ONCE) == [0, 1, True, "\nline 29999\n100%\nlast"]


ENTRIES = """
const done = arguments[arguments.length - 1];
import("/page/happened.js").then(({ entry }) => {
  const words = (seen) => entry(seen).map((one) => one.textContent);
  done([words({ key: "n/a", entry: { indices: [["namespace", "n"]] } }), words({ key: "n/a", entry: {} }), words({ key: "n/a" })]);
});
"""


def an_entry_that_was_not_noted_says_so(page):
    noted, gone, unnoted = page.execute_async_script(ENTRIES)
    assert noted == ["keyn/aindex namespacen"] and gone == ["keyn/a"], (noted, gone)
    assert unnoted[0] == "keyn/a" and "too much happened at once" in unnoted[1], unnoted


def a_page_that_changes_between_two_looks_is_looked_at_again():
    looks = iter([{"light": "a", "dark": "b"}, {"light": "b", "dark": "b"}])
    assert settled(lambda: next(looks), "a page") == "b"
    try:
        settled(lambda: {"light": "a", "dark": "b"}, "a page")
    except AssertionError as error:
        assert "a page" in str(error)
    else:
        raise AssertionError("colours that differ for good are none of its changes")


def a_page_that_is_opened_late_shows_what_happens_now(page):
    """Not the oldest that is remembered, which would be played for as long as it took."""
    assert page.execute_async_script(OPENED_LATE) == [101, True]


def who_else_comes_is_not_let_in():
    other = browser(FOLDER)
    try:
        other.get(LINK)
        said = eventually("a refusal", lambda: other.find_elements(By.CSS_SELECTOR, "[role=alert]"))[0].text
        assert "used before" in said, said
        other.get(ORIGIN)
        said = eventually("a refusal", lambda: other.find_elements(By.CSS_SELECTOR, "[role=alert]"))[0].text
        assert "kubarium ui" in said, said
    finally:
        other.quit()


def nothing_leaves_the_origin(page):
    asked = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert len(urls) > 10, urls
    foreign = [url for url in urls if not url.startswith((f"{ORIGIN}/", "data:", "blob:", "chrome"))]
    assert not foreign, foreign
    severe = [entry["message"] for entry in page.get_log("browser") if entry["level"] == "SEVERE"]
    # What is refused on purpose a browser logs, too.
    asked_for = ["pods/a-pair/log?container=second", "configmaps/shared?", "pods/nope", "pods/gone", "pods/huge", "configmaps/refused", "configmaps/edited?", "resource=foos", "/manifests", "deployments/caused"]
    unexpected = [one for one in severe if not any(part in one for part in asked_for)]
    assert not unexpected, unexpected


def the_session(page):
    page.get(LINK)
    eventually("somebody to be let in", lambda: page.find_element(By.ID, "who").text)
    the_way_of_a_deployment(page)
    what_is_long_is_cut_on_the_map_and_told_in_a_title(page)
    pods_that_are_not_drawn_are_counted_by_their_state(page)
    who_may_not_read_the_record_is_told_so_in_the_place_of_the_map(page)
    nodes_are_read_again_where_there_was_no_answer(page)
    stand_still_and_go_back(page)
    hold_the_cluster(page)
    a_map_without_a_mouse(page)
    the_story_of_a_pod(page)
    a_story_to_take_along(page)
    only_requests_have_headers_and_bodies(page)
    a_generation_that_has_grown(page)
    what_never_was_is_not_gone(page)
    a_story_ends_with_how_it_stands(page)
    assert page.execute_async_script(LASTED) == ["0.0 ms", "1.50 s", "2m31s"]
    a_line_opens_its_step(page)
    objects_and_a_shell(page)
    apply_and_delete(page)
    what_a_write_leads_to(page)
    what_is_looked_at_is_as_it_is(page)
    fields_that_somebody_else_has(page)
    a_text_that_is_changed_again(page)
    lists_in_lists_are_written_as_such(page)
    a_lesson(page)
    a_page_at_rest_draws_nothing_and_asks_for_nothing(page)
    a_page_that_is_opened_late_shows_what_happens_now(page)
    who_is_held_is_asked_again_where_there_was_no_answer(page)
    who_says_nothing_any_more_is_not_shown_as_alive(page)
    a_shell_that_says_much_is_drawn_once_a_frame(page)
    an_entry_that_was_not_noted_says_so(page)
    a_page_that_changes_between_two_looks_is_looked_at_again()
    who_else_comes_is_not_let_in()
    nothing_leaves_the_origin(page)
    who_does_not_answer_is_not_shown_as_alive(page)


def main():
    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(WHOLE_PATIENCE)
    page = browser(FOLDER)
    try:
        with telling(page):
            the_session(page)
    finally:
        # A driver whose page loops does not end either.
        signal.alarm(PATIENCE)
        page.quit()
        signal.alarm(0)
    print("done")


main()
