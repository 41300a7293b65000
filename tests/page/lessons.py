"""Every lesson is taken in the page, beside the map, one after the other in one browser; some of them once more on a
manifest of the learner's own.

Arguments: the link, a kubeconfig, a folder for the profile, a PATH with kubarium and kubectl.
"""

import os
import re
import signal
import subprocess
import sys
import time

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from driven import PATIENCE, browser, click, count, eventually, hangs, text

LINK, KUBECONFIG, FOLDER, PATH = sys.argv[1:5]
# A bound against hanging, not a promise.
WHOLE_PATIENCE = 600
ENVIRONMENT = dict(os.environ, KUBECONFIG=KUBECONFIG, PATH=PATH, TMPDIR=FOLDER, HOME=FOLDER)
SECTION = "#view-lessons article section"
LESSONS = "const done = arguments[0]; fetch('/lessons.json').then((all) => all.json()).then(done)"
MINE = """apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: till, image: busybox, command: [sleep, infinity]}]
"""


def run(command):
    done = subprocess.run(["sh", "-c", command], env=ENVIRONMENT, text=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def press(section, words):
    next(one for one in section.find_elements(By.TAG_NAME, "button") if one.text == words).click()


def take(page, lesson, first="run"):
    """From its first step to its last; `first` says how the object is made that it is shown on."""
    for at, step in enumerate(lesson["steps"]):
        sections = lambda: page.find_elements(By.CSS_SELECTOR, SECTION)
        section = eventually(f"step {at} of {lesson['name']}", lambda: len(sections()) > at and sections()[at])
        if step["question"]:
            wrong, why = next(iter(step["wrong"].items()))
            press(section, " ".join(wrong.split()))
            eventually("why it is wrong", lambda: f"No. {why} Once more?" in section.text)
            press(section, " ".join(step["right"].split()))
            continue
        if step.get("applies") and first != "run":
            if first == "applied":
                press(section, "Apply it")
        elif step["run"]:
            run(section.find_element(By.CSS_SELECTOR, "pre.command").get_attribute("textContent"))
        if step["see"]:
            unseen = lambda: [one.text for one in section.find_elements(By.CSS_SELECTOR, ".unseen")]
            try:
                eventually(f"{lesson['name']}: what is to be seen", lambda: not unseen())
            except AssertionError as error:
                raise AssertionError(f"{error}: {unseen()}") from None
            if any(wanted.endswith(" at ") for wanted in step["see"]):
                assert re.search(r" at \d+", section.text), f"a revision is told of: {section.text}"
        else:
            press(section, "Go on")
    eventually("the end", lambda: "That was the lesson." in text(page, "#view-lessons article"))


def choose(page, title):
    Select(page.find_element(By.CSS_SELECTOR, "#view-lessons nav select")).select_by_visible_text(title)
    eventually("the lesson", lambda: text(page, "#view-lessons h2") == title)


def shown_on(page, words):
    of = lambda: Select(page.find_element(By.CSS_SELECTOR, "#view-lessons .own select"))
    eventually(words, lambda: any(one.text == words for one in of().options))
    of().select_by_visible_text(words)


def on_my_manifest(page, lesson):
    """One that is pasted, and then one that is there."""
    choose(page, lesson["title"])
    shown_on(page, "a manifest of mine")
    area = page.find_element(By.CSS_SELECTOR, "#view-lessons textarea")
    press = lambda: click(page, "Take this one")
    page.execute_script("arguments[0].value = arguments[1]", area, MINE.split("---")[0])
    press()
    eventually("a refusal", lambda: "there is no Deployment" in text(page, "#view-lessons .own p"))
    page.execute_script("arguments[0].value = arguments[1]", area, MINE)
    press()
    eventually("an offer", lambda: count(page, SECTION))
    # What is changed is not offered any more, until it is taken once more.
    area.send_keys(Keys.ENTER)
    eventually("no offer", lambda: not count(page, SECTION))
    press()
    eventually("an offer again", lambda: count(page, SECTION))
    # And it is applied as it was taken, whatever stands there now.
    page.execute_script("arguments[0].value = ''", area)
    take(page, lesson, "applied")
    seen = text(page, "#view-lessons article")
    assert "deployments.apps default/shop" in seen and "default/lesson" not in seen, seen
    manifest = os.path.join(FOLDER, "mine.yaml")
    with open(manifest, "w", encoding="utf-8") as out:
        out.write(MINE)
    run(f"kubectl apply -f {manifest} && kubectl rollout status deployment/shop --timeout={PATIENCE}s")
    choose(page, lesson["title"])
    page.find_element(By.ID, "tab-map").click()
    page.find_element(By.ID, "tab-lessons").click()
    page.execute_script("document.querySelector('#view-lessons nav select').dispatchEvent(new Event('change'))")
    shown_on(page, "default/shop")
    take(page, lesson, "there")


def main():
    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(WHOLE_PATIENCE)
    page = browser(FOLDER)
    try:
        page.get(LINK)
        eventually("somebody to be let in", lambda: page.find_element(By.ID, "who").text)
        page.find_element(By.ID, "tab-lessons").click()
        eventually("the map beside the lesson", lambda: count(page, "#view-map:not([hidden]) svg .node") == 3)
        lessons = page.execute_async_script(LESSONS)
        assert len(lessons) >= 25, [one["name"] for one in lessons]
        for lesson in lessons:
            began = time.monotonic()
            choose(page, lesson["title"])
            take(page, lesson)
            print(f"{lesson['name']}: {time.monotonic() - began:.1f} s")
        on_my_manifest(page, next(one for one in lessons if one["name"] == "deployment"))
    finally:
        # A driver whose page loops does not end either.
        signal.alarm(PATIENCE)
        page.quit()
        signal.alarm(0)
    print("done")


main()
