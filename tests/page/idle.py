"""What a page costs while nothing happens: the processor time of all processes of its Chromium, in percent of one
core, on a cluster that rests. For people (`make burst`); the budget is 1 %.

Arguments: the program, kubectl.
"""

import sys
import time

from cluster import PATIENCE, Spent, eventually, opened

KUBARIUM, KUBECTL = sys.argv[1:3]
SECONDS = 60
REPLICAS = 20
# What the start has left to be done is not what rest costs: a kubelet tells of the images that its node has now.
LEFT = 30


def at_rest(page):
    """Seconds by kind of process, in so many seconds."""
    time.sleep(LEFT)
    with Spent(page) as spent:
        time.sleep(SECONDS)
    return spent.by_kind


def main():
    with opened(KUBARIUM, "1300,1100", "--nodes", "3", "--ui") as (run, open_page):
        page = open_page()
        run(KUBECTL, "create", "deployment", "web", "--image", "nginx", "--replicas", str(REPLICAS))
        run(KUBECTL, "rollout", "status", "deployment/web", f"--timeout={PATIENCE}s")
        drawn = "return document.querySelectorAll('.pod.running').length"
        eventually("the pods to be drawn", lambda: page.execute_script(drawn) == REPLICAS)
        idle = at_rest(page)
        page.get("about:blank")
        empty = at_rest(page)
    for one, seconds in idle.items():
        print(f"  {one:<18} {100 * seconds / SECONDS:.2f} %")
    print(f"idle page            {100 * sum(idle.values()) / SECONDS:.2f} % of a core")
    print(f"an empty page        {100 * sum(empty.values()) / SECONDS:.2f} %")


main()
