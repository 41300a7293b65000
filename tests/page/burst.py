"""How fluently the page draws a burst of 10,000 steps: frames a second by requestAnimationFrame, and where the time
goes. For people (`make burst`): numbers of a busy machine are no promise, so nothing is asserted.

Arguments: the program, kubectl.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

KUBARIUM, KUBECTL = sys.argv[1:3]
STEPS = 10_000
# Pods whose story is repeated until there are so many steps.
REPLICAS = 20
PATIENCE = 120

# Sends a burst to a map of its own as the cluster would: lines of at most 2,000 steps, 25 ms apart.
BURST = """
const [wanted, done] = arguments;
(async () => {
  const session = JSON.parse(sessionStorage.getItem("kubarium-session")).session;
  const real = window.fetch;
  const told = await (await real("/kubarium/v1/flow", { headers: { authorization: `Bearer ${session}` } })).text();
  const seen = told.split("\\n").filter(Boolean).flatMap((line) => JSON.parse(line).steps);
  const steps = [];
  for (let round = 0; steps.length < wanted; round += 1) {
    const first = steps.length + 1 - seen[0].id;
    const renamed = (text) => (round && text ? `${text}-${round}` : text);
    for (const one of seen.slice(0, wanted - steps.length)) {
      steps.push({ ...one, id: one.id + first, cause: one.cause ? one.cause + first : undefined, pod: renamed(one.pod), name: one.resource === "pods" ? renamed(one.name) : one.name });
    }
  }
  const lines = [];
  for (let at = 0; at < steps.length; at += 2000) {
    const part = steps.slice(at, at + 2000);
    lines.push(`${JSON.stringify({ steps: part, next: part.at(-1).id + 1, missed: 0 })}\\n`);
  }
  const { CausalRecord, Player } = await import("/page/record.js");
  const { mapView } = await import("/page/map.js");
  const view = document.createElement("section");
  document.querySelector("main").replaceChildren(view);
  const record = new CausalRecord();
  mapView(view, record, new Player(record), () => {});
  await new Promise((resolve) => setTimeout(resolve, 500));
  const body = new ReadableStream({
    async start(controller) {
      for (const line of lines) {
        controller.enqueue(new TextEncoder().encode(line));
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    },
  });
  window.fetch = (path, options) => (String(path).startsWith("/kubarium/v1/flow") ? Promise.resolve(new Response(body)) : real(path, options));
  const frames = [];
  const began = performance.now();
  const frame = (now) => {
    frames.push(now);
    if (now - began < 3000) requestAnimationFrame(frame);
    else done({ frames, began, drawn: record.steps.length });
  };
  requestAnimationFrame(frame);
  record.follow();
})();
"""


def browser(folder):
    options = webdriver.ChromeOptions()
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1300,1100", f"--user-data-dir={folder}/profile"]:
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def metrics(page):
    told = page.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {one["name"]: one["value"] for one in told}


def tell(measured, before, after):
    frames = measured["frames"]
    gaps = [later - earlier for earlier, later in zip(frames, frames[1:])]
    print(f"steps drawn          {measured['drawn']}")
    print(f"frames a second      {1000 * len(gaps) / (frames[-1] - frames[0]):.1f}")
    print(f"longest frame        {max(gaps):.0f} ms")
    print(f"frames over 17 ms    {sum(gap > 17.5 for gap in gaps)} of {len(gaps)}")
    for name in ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration"]:
        print(f"{name:<20} {1000 * (after[name] - before[name]):.0f} ms")


def main():
    folder = tempfile.mkdtemp(prefix="kubarium-burst-")
    env = {**os.environ, "HOME": folder, "KUBARIUM_STATE_DIR": f"{folder}/state", "KUBECONFIG": f"{folder}/config"}
    run = lambda *words: subprocess.run([KUBARIUM, *words], env=env, check=True, text=True, capture_output=True).stdout
    run("up", "--detach", "--name", "burst", "--nodes", "10", "--ui")
    page = browser(folder)
    try:
        kubectl = [KUBECTL, "--kubeconfig", f"{folder}/config"]
        subprocess.run([*kubectl, "create", "deployment", "web", "--image", "nginx", "--replicas", str(REPLICAS)], check=True, capture_output=True)
        subprocess.run([*kubectl, "rollout", "status", "deployment/web", f"--timeout={PATIENCE}s"], check=True, capture_output=True)
        page.get(run("ui", "--name", "burst").strip())
        page.set_script_timeout(PATIENCE)
        time.sleep(1)
        page.execute_cdp_cmd("Performance.enable", {})
        before = metrics(page)
        measured = page.execute_async_script(BURST, STEPS)
        tell(measured, before, metrics(page))
        if len(sys.argv) > 3:
            with open(sys.argv[3], "w", encoding="utf-8") as out:
                json.dump(measured, out)
    finally:
        page.quit()
        run("down", "burst")


main()
