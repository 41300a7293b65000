"""Makes the picture of README: the page of a cluster at work, in a real browser.

Arguments: the kubarium program, a kubectl, the file to write.
"""

import os
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

KUBARIUM, KUBECTL, FILE = sys.argv[1:4]
NAME = "picture"
PODS = 18
# A bound against hanging, not a promise.
PATIENCE = 60


def browser(folder):
    options = webdriver.ChromeOptions()
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--window-size=1240,1010", f"--user-data-dir={folder}/profile"]:
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def eventually(what, look):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, HOME=folder, KUBARIUM_STATE_DIR=f"{folder}/state",
                           KUBECONFIG=f"{folder}/kubeconfig")
        run = lambda *words: subprocess.run(words, env=environment, check=True, text=True, capture_output=True).stdout
        run(KUBARIUM, "up", "--name", NAME, "--nodes", "3", "--seed", "7", "--detach",
            "--kubeconfig", environment["KUBECONFIG"])
        page = browser(folder)
        try:
            page.get(run(KUBARIUM, "ui", "--name", NAME).strip())
            eventually("somebody to be let in", lambda: page.find_element(By.ID, "who").text)
            for name, image, count in [("web", "nginx", 9), ("api", "httpd", 6), ("cache", "redis", 3)]:
                run(KUBECTL, "create", "deployment", name, "--image", image, "--replicas", str(count))
            running = lambda: len(page.find_elements(By.CSS_SELECTOR, ".pod.running"))
            eventually("running pods", lambda: running() == PODS)
            # While it is drawn something is to be on its way.
            run(KUBECTL, "rollout", "restart", "deployment/web")
            time.sleep(0.3)
            page.save_screenshot(FILE)
        finally:
            page.quit()
            run(KUBARIUM, "down", NAME)
    print(f"{FILE}: {os.path.getsize(FILE)} bytes")


main()
