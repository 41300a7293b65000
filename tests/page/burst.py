"""How fluently the page draws a burst of 10,000 steps: frames a second by requestAnimationFrame, and where the time
goes. For people (`make burst`): numbers of a busy machine are no promise, so nothing is asserted.

Arguments: the program, kubectl.
"""

import json
import sys
import time

from cluster import PATIENCE, opened

KUBARIUM, KUBECTL = sys.argv[1:3]
STEPS = 10_000
# Pods whose story is repeated until there are so many steps.
REPLICAS = 20

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
    with opened(KUBARIUM, "1300,1100", "--nodes", "10", "--ui") as (run, open_page):
        page = open_page()
        run(KUBECTL, "create", "deployment", "web", "--image", "nginx", "--replicas", str(REPLICAS))
        run(KUBECTL, "rollout", "status", "deployment/web", f"--timeout={PATIENCE}s")
        page.set_script_timeout(PATIENCE)
        time.sleep(1)
        page.execute_cdp_cmd("Performance.enable", {})
        before = metrics(page)
        measured = page.execute_async_script(BURST, STEPS)
        tell(measured, before, metrics(page))
        if len(sys.argv) > 3:
            with open(sys.argv[3], "w", encoding="utf-8") as out:
                json.dump(measured, out)


main()
