"""How much longer a Deployment of 1,000 replicas takes while its cluster's page is open in Chromium on the same
machine: from the request to all Ready, by a watch. For people (`make burst`); the budget is 1.3 times as long, of a
program that is built for release.

Arguments: the program, kubectl; how many times each is done (5), and with how many replicas (1,000).
"""

import base64
import http.client
import json
import os
import ssl
import statistics
import sys
import time
import urllib.parse

from cluster import PATIENCE, Spent, eventually, opened

KUBARIUM, KUBECTL = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
REPLICAS = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"


class Api:
    """The API as an administrator asks it, without a program between that costs something itself."""

    def __init__(self, config, folder):
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urllib.parse.urlparse(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        files = []
        for part in ["client-certificate-data", "client-key-data"]:
            files.append(os.path.join(folder, part))
            with open(files[-1], "wb") as out:
                out.write(base64.b64decode(user[part]))
        self.tls.load_cert_chain(*files)

    def ask(self, method, path, body=None):
        to = http.client.HTTPSConnection(self.address.hostname, self.address.port, timeout=PATIENCE, context=self.tls)
        to.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"})
        answer = to.getresponse()
        assert answer.status < 300, answer.read()
        return answer

    def seconds_to_ready(self, name):
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
        watch = self.ask("GET", f"{DEPLOYMENTS}?watch=true&fieldSelector=metadata.name%3D{name}")
        began = time.monotonic()
        self.ask("POST", DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec}).read()
        while json.loads(watch.readline())["object"].get("status", {}).get("readyReplicas", 0) < REPLICAS:
            pass
        return time.monotonic() - began

    def one(self, name):
        """Made, and gone again with all its pods."""
        seconds = self.seconds_to_ready(name)
        self.remove(name)
        return seconds

    def remove(self, name):
        self.ask("DELETE", f"{DEPLOYMENTS}/{name}").read()
        eventually("the pods to go", lambda: not json.loads(self.ask("GET", f"{PODS}?limit=1").read())["items"])
        time.sleep(1)


def main():
    alone, beside, chromium = [], [], []
    with opened(KUBARIUM, "1300,1100", "--nodes", "10", "--ui") as (run, open_page):
        eventually("the cluster", lambda: run(KUBECTL, "get", "nodes", check=False))
        config = json.loads(run(KUBECTL, "config", "view", "--raw", "--output", "json"))
        api = Api(config, os.path.dirname(run("sh", "-c", "echo $KUBECONFIG").strip()))
        api.one("warm-0")
        page = open_page()
        eventually("the page", lambda: page.execute_script("return document.querySelector('.map svg') !== null"))
        api.one("warm-1")
        link = page.current_url
        for number in range(ROUNDS):
            page.get("about:blank")
            alone.append(api.one(f"alone-{number}"))
            page.get(link)
            eventually("the page", lambda: page.execute_script("return document.querySelector('.map svg') !== null"))
            time.sleep(2)
            with Spent(page) as spent:
                beside.append(api.seconds_to_ready(f"beside-{number}"))
            chromium.append(spent.by_kind)
            api.remove(f"beside-{number}")
    without, seen = statistics.median(alone), statistics.median(beside)
    print(f"nobody looks         {without:.3f} s to {REPLICAS} Ready (from {min(alone):.3f} to {max(alone):.3f})")
    print(f"in an open page      {seen:.3f} s (from {min(beside):.3f} to {max(beside):.3f})")
    print(f"times as long        {seen / without:.2f}")
    for one in chromium[0]:
        print(f"  {one:<18} {statistics.median(each.get(one, 0) for each in chromium):.3f} s of processor time")


main()
