"""Makes the picture of README: the page of a cluster at work, in a real browser.

Arguments: the kubarium program, a kubectl, the file to write.
"""

import os
import sys
import time

from selenium.webdriver.common.by import By

from cluster import eventually, opened

KUBARIUM, KUBECTL, FILE = sys.argv[1:4]
PODS = 18


def main():
    with opened(KUBARIUM, "1240,1010", "--nodes", "3", "--seed", "7") as (run, open_page):
        page = open_page()
        eventually("somebody to be let in", lambda: page.find_element(By.ID, "who").text)
        for name, image, count in [("web", "nginx", 9), ("api", "httpd", 6), ("cache", "redis", 3)]:
            run(KUBECTL, "create", "deployment", name, "--image", image, "--replicas", str(count))
        running = lambda: len(page.find_elements(By.CSS_SELECTOR, ".pod.running"))
        eventually("running pods", lambda: running() == PODS)
        # While it is drawn something is to be on its way.
        run(KUBECTL, "rollout", "restart", "deployment/web")
        time.sleep(0.3)
        page.save_screenshot(FILE)
    print(f"{FILE}: {os.path.getsize(FILE)} bytes")


main()
