"""A session in a real browser: the page of a cluster is opened, used by mouse and keyboard, and looked at by axe.

Arguments: the link, the origin's own kubectl, a kubeconfig, the folder of axe-core, a folder for the profile.
"""

import json
import os
import signal
import subprocess
import sys
import time

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

LINK, KUBECTL, KUBECONFIG, AXE, FOLDER = sys.argv[1:6]
ORIGIN = LINK.split("/#")[0]
# Bounds against hanging, not promises: for one thing to be seen, and for the whole session, since a page that
# loops answers nobody.
PATIENCE = 60
WHOLE_PATIENCE = 300


def browser():
    options = webdriver.ChromeOptions()
    profile = os.path.join(FOLDER, f"profile-{time.monotonic_ns()}")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1300,1100", "--disable-background-networking", f"--user-data-dir={profile}"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def eventually(what, look):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            found = look()
        except (StaleElementReferenceException, LookupError):
            found = None
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def kubectl(*words, stdin=None):
    done = subprocess.run([KUBECTL, "--kubeconfig", KUBECONFIG, *words], input=stdin, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def count(page, selector):
    return len(page.find_elements(By.CSS_SELECTOR, selector))


def text(page, selector):
    """Of the first one, as it is read at one moment."""
    return page.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)


def button(page, text, within="main section:not([hidden])"):
    for one in page.find_elements(By.CSS_SELECTOR, f"{within} button"):
        if one.text == text:
            return one
    raise LookupError(f"no button {text!r}")


def position(page):
    """The step that is shown, and the newest."""
    words = text(page, "#view-map output").replace(",", "").split()
    return int(words[1]), int(words[3])


def accessible(page, view):
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


def the_way_of_a_deployment(page):
    assert page.find_element(By.ID, "who").text == "kubernetes-admin"
    assert page.current_url == f"{ORIGIN}/", "the invitation stays in no history"
    kubectl("create", "deployment", "web", "--image", "nginx", "--replicas", "3")
    eventually("three running pods on the map", lambda: count(page, ".pod.running") == 3)
    said = text(page, "ol.steps")
    assert "kubelet" in said or "kube-apiserver" in said, said
    accessible(page, "map")


def stand_still_and_go_back(page):
    button(page, "Pause").click()
    eventually("it to stand still", lambda: button(page, "Play"))
    at, _ = position(page)
    kubectl("scale", "deployment", "web", "--replicas", "5")
    eventually("the record to go on", lambda: position(page)[1] > at + 20)
    assert position(page)[0] == at and count(page, ".pod") == 3
    button(page, "Step").click()
    eventually("one step", lambda: position(page)[0] == at + 1)
    button(page, "Stage").click()
    eventually("a stage", lambda: position(page)[0] > at + 1)
    slider = page.find_element(By.CSS_SELECTOR, "#view-map input[type=range]")
    slider.send_keys(Keys.HOME)
    eventually("the beginning", lambda: count(page, ".pod") == 0)
    until = page.find_element(By.CSS_SELECTOR, "#view-map input[type=search]")
    until.send_keys("created deployments.apps default/web")
    button(page, "Play").click()
    eventually("what is waited for", lambda: "created deployments.apps default/web"
               in text(page, "ol.steps li"))
    assert count(page, ".pod") == 0
    until.clear()
    button(page, "Live").click()
    eventually("five pods again", lambda: count(page, ".pod.running") == 5)


def hold_the_cluster(page):
    held = lambda: text(page, "ol.held")
    button(page, "Hold cluster").click()
    eventually("the cluster to stand still", lambda: "stands still" in text(page, "p.held"))
    accessible(page, "map, held")
    asked = subprocess.Popen([KUBECTL, "--kubeconfig", KUBECONFIG, "create", "configmap", "stepped"])
    eventually("the request", lambda: "before the request to create /api/v1/namespaces/default/configmaps" in held())
    button(page, "Let a stage happen").click()
    eventually("admission", lambda: "before the admission plugin NamespaceLifecycle" in held())
    page.find_element(By.CSS_SELECTOR, ".stepping input[placeholder='deploy/web']").send_keys("configmap/stepped")
    page.find_element(By.CSS_SELECTOR, ".stepping input[placeholder='Available']").send_keys("create")
    button(page, "Step until").click()
    # Without waiting for other holders: the write is the last step before it.
    assert asked.wait(PATIENCE) == 0
    button(page, "Let all go on").click()
    eventually("the cluster to go on", lambda: text(page, "p.held") == "")


def a_map_without_a_mouse(page):
    """Nodes are there without pods, and who has come to a pod stays there though another is drawn."""
    nodes = lambda: [one.text for one in page.find_elements(By.CSS_SELECTOR, "svg .node + text")]
    eventually("three nodes", lambda: len(nodes()) == 3)
    kubectl("cordon", "node-3")
    eventually("one that takes no pods", lambda: any("SchedulingDisabled" in title for title in nodes()))
    kubectl("uncordon", "node-3")
    pod = page.find_element(By.CSS_SELECTOR, ".pod.running")
    key = pod.get_attribute("data-pod")
    page.execute_script("arguments[0].focus()", pod)
    kubectl("run", "another", "--image", "nginx")
    eventually("another pod", lambda: count(page, ".pod.running") == 6)
    kubectl("delete", "pod", "another", "--wait=true")
    eventually("it to go", lambda: count(page, ".pod") == 5)
    focused = page.switch_to.active_element
    assert focused.get_attribute("data-pod") == key, focused.get_attribute("outerHTML")


def the_story_of_a_pod(page):
    page.switch_to.active_element.send_keys(" ")
    eventually("its story", lambda: count(page, ".story li button") > 10)
    assert page.find_element(By.ID, "tab-story").get_attribute("aria-selected") == "true"
    words = text(page, "ol.story")
    for part in ["created pods default/web-", "bound default/web-", "started container nginx"]:
        assert part in words, f"no {part!r} in {words}"
    stored = [one for one in page.find_elements(By.CSS_SELECTOR, ".story li button") if "created pods" in one.text]
    stored[0].click()
    eventually("the step", lambda: "Stored" in text(page, "#view-story .detail"))
    detail = text(page, "#view-story .detail")
    assert "/registry/pods/default/web-" in detail and "src/etcd/writer.rs:" in detail, detail
    the_code_of_a_step(page)
    assert "patch" in detail.lower() or "create" in detail.lower(), detail
    sent = eventually("what was sent", lambda: "Answer: 201" in text(page, "#view-story .detail") and text(page, "#view-story .detail"))
    assert "Request: POST /api/v1/namespaces/default/pods" in sent and '"containers": [' in sent, sent
    scored = [one for one in page.find_elements(By.CSS_SELECTOR, ".story li button") if "is best" in one.text]
    scored[0].click()
    table = eventually("scores by plugin", lambda: text(page, "#view-story .detail table"))
    assert "node\ttotal" in table and "NodeResourcesFit" in table.split("\n")[0], table
    assert "[object" not in text(page, "#view-story .detail")
    legend = eventually("who wrote which field", lambda: text(page, "#view-story .legend"))
    assert "kubelet (status)" in legend, legend
    # From a field to the request that wrote it, and back to the command.
    button(page, "kubelet (status)").click()
    wrote = eventually("the kubelet's write", lambda: "Request: PATCH" in text(page, "#view-story .detail") and text(page, "#view-story .detail"))
    assert "/status" in wrote and "updated pods default/web-" in wrote and "create default/deployments" in wrote, wrote
    # The create, and not the binding, which is a write of the same second.
    field = lambda name: page.find_element(By.XPATH, f"//pre[contains(@class,'yaml')]/span[contains(.,'{name}:')]")
    told = lambda request: request in text(page, "#view-story .detail")
    field("restartPolicy").click()
    eventually("the create", lambda: told("Request: POST /api/v1/namespaces/default/pods\n"))
    # Of what has no owner the record knows, too; and without a mouse.
    page.execute_script("arguments[0].focus()", field("nodeName"))
    page.switch_to.active_element.send_keys(Keys.ENTER)
    eventually("the binding", lambda: told("/binding\n"))
    page.switch_to.active_element.send_keys(Keys.HOME)
    page.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert page.switch_to.active_element.text.startswith("apiVersion: v1"), page.switch_to.active_element.text
    accessible(page, "story")


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
    button(page, "Save as HTML").click()
    saved = eventually("a whole file", saved_story)
    step = saved.split("created pods default/web-")[1].split("</details>")[0]
    assert "/registry/pods/default/web-" in step and "src/etcd/writer.rs:" in step, step
    assert "http:" not in saved and "https:" not in saved and "src=" not in saved and "href=" not in saved, saved


def objects_and_a_shell(page):
    page.find_element(By.ID, "tab-story").send_keys(Keys.ARROW_RIGHT)
    eventually("a table", lambda: count(page, "td button.link") == 5)
    assert "Running" in text(page, "#view-objects table")
    accessible(page, "objects")
    page.find_elements(By.CSS_SELECTOR, "td button.link")[0].click()
    eventually("its YAML", lambda: count(page, "#view-objects pre.yaml") == 1)
    button(page, "Owners").click()
    eventually("its owners", lambda: count(page, ".tree button") >= 3)
    tree = text(page, ".tree").split("\n")
    assert tree[0] == "deployments.apps web" and tree[1].startswith("replicasets.apps web-"), tree
    button(page, "Shell").click()
    shell = eventually("a shell", lambda: page.find_elements(By.CSS_SELECTOR, ".terminal input"))[0]
    shell.send_keys("echo $HOSTNAME says hi" + Keys.ENTER)
    eventually("an answer", lambda: " says hi\n" in text(page, ".terminal pre") + "\n"
               and "web-" in text(page, ".terminal pre"))


def apply_and_delete(page):
    button(page, "Apply YAML").click()
    area = page.find_element(By.TAG_NAME, "textarea")
    area.clear()
    area.send_keys("apiVersion: v1\nkind: ConfigMap\nmetadata:\nname: made\n")
    button(page, "Apply").click()
    status = lambda: page.find_elements(By.CSS_SELECTOR, "#view-objects .detail p[role=status]")
    eventually("a refusal", lambda: any("metadata.name" in one.text for one in status()))
    page.execute_script("arguments[0].value = arguments[1]", area,
                        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  a: b\n")
    button(page, "Apply").click()
    eventually("an object", lambda: any("ConfigMap made applied" in one.text for one in status()))
    assert "b" in kubectl("get", "configmap", "made", "-o", "jsonpath={.data.a}")
    # What comes first is there for what comes next, in whatever form it is written.
    texts = ["apiVersion: v1\nkind: Namespace\nmetadata: {name: room}\n",
             '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in-json", "namespace": "room"}}\n',
             "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: any-, namespace: room}\n"]
    page.execute_script("arguments[0].value = arguments[1]", area, "---\n".join(texts))
    button(page, "Apply").click()
    eventually("three objects", lambda: any("Namespace room applied, ConfigMap in-json applied, ConfigMap any-" in one.text
               for one in status()))
    assert "in-json" in kubectl("get", "configmaps", "--namespace", "room", "-o", "name")


def a_lesson(page):
    page.find_element(By.ID, "tab-lessons").click()
    eventually("a lesson", lambda: count(page, "pre.command") == 1)
    accessible(page, "lessons")
    command = text(page, "pre.command").split()
    assert command[:3] == ["kubectl", "create", "deployment"], command
    kubectl(*command[1:])
    eventually("what is to be seen", lambda: count(page, ".see .seen") >= 9)
    eventually("a question", lambda: count(page, "#view-lessons [role=group] button") == 3)
    button(page, "nobody; the kubelet saw in its watch that a Pod was bound to its node").click()
    eventually("the next command", lambda: count(page, "pre.command") == 2)


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


def a_page_that_is_opened_late_shows_what_happens_now(page):
    """Not the oldest that is remembered, which would be played for as long as it took."""
    assert page.execute_async_script(OPENED_LATE) == [101, True]


def who_else_comes_is_not_let_in():
    other = browser()
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
    assert not severe, severe


def hangs(*_):
    raise TimeoutError(f"the session is not over after {WHOLE_PATIENCE} s")


def main():
    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(WHOLE_PATIENCE)
    page = browser()
    try:
        page.get(LINK)
        eventually("somebody to be let in", lambda: page.find_element(By.ID, "who").text)
        the_way_of_a_deployment(page)
        stand_still_and_go_back(page)
        hold_the_cluster(page)
        a_map_without_a_mouse(page)
        the_story_of_a_pod(page)
        a_story_to_take_along(page)
        objects_and_a_shell(page)
        apply_and_delete(page)
        a_lesson(page)
        a_page_that_is_opened_late_shows_what_happens_now(page)
        who_else_comes_is_not_let_in()
        nothing_leaves_the_origin(page)
    finally:
        # A driver whose page loops does not end either.
        signal.alarm(PATIENCE)
        page.quit()
        signal.alarm(0)
    print("done")


main()
