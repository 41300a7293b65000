/** A session of @kubernetes/client-node with the package: what a test in JavaScript does. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";

import { CoreV1Api, KubeConfig, KubernetesObjectApi, Watch } from "@kubernetes/client-node";
import { KubariumError, patience, startCluster } from "kubarium";

test("an answer is waited for as long as it may take", () => {
  assert.equal(patience("/kubarium/v1/time/pass", { duration: "1h30m500ms" }), 60_000 + 5_400_500);
  assert.equal(patience("/kubarium/v1/time/until", { object: "pod/p" }), 60_000 + 3_600_000);
  assert.equal(patience("/kubarium/v1/settle", { within: "30d" }), 24 * 3_600_000);
  assert.equal(patience("/api/v1/pods"), 60_000);
});

test("the stock client", async () => {
  const cluster = await startCluster("--nodes", "2");
  try {
    const config = new KubeConfig();
    config.loadFromString(await cluster.kubeconfigText());
    const core = config.makeApiClient(CoreV1Api);
    assert.deepEqual((await core.listNode()).items.map((node) => node.metadata.name), ["node-1", "node-2"]);

    const metadata = { name: "web" };
    const spec = { containers: [{ name: "c", image: "nginx" }] };
    await core.createNamespacedPod({ namespace: "default", body: { metadata, spec } });
    await running(config);

    const objects = KubernetesObjectApi.makeApiClient(config);
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "map", namespace: "default" } };
    assert.ok((await objects.create(map)).metadata.uid);
    await assert.rejects(objects.create(map), (error) => error.code === 409);
  } finally {
    await cluster.stop();
  }
});

function running(config) {
  return new Promise((resolve, reject) => {
    const told = (type, pod) => pod.status?.phase === "Running" && resolve();
    new Watch(config).watch("/api/v1/namespaces/default/pods", {}, told, reject).catch(reject);
  });
}

test("requests, and files that go", async () => {
  const cluster = await startCluster("--apiserver-only");
  const folder = dirname(cluster.kubeconfig);
  assert.equal((await cluster.request("GET", "/version")).major, "1");
  const namespaces = "/api/v1/namespaces";
  await cluster.request("POST", namespaces, { metadata: { name: "mine" } });
  const again = cluster.request("POST", namespaces, { metadata: { name: "mine" } });
  await assert.rejects(again, { name: "KubariumError", code: 409, message: 'namespaces "mine" already exists' });
  assert.equal(cluster.environment().KUBECONFIG, cluster.kubeconfig);
  await cluster.stop();
  assert.ok(!existsSync(folder), "a file is left");
});

test("a process that ends before it stops its cluster leaves no file", () => {
  for (const signal of [null, "SIGINT", "SIGTERM"]) {
    const end = signal ? `process.kill(process.pid, "${signal}"); setInterval(() => {}, 1000);` : 'throw new Error("ends");';
    const start = 'import { startCluster } from "kubarium"; const cluster = await startCluster("--apiserver-only");';
    const lines = `${start} console.log(cluster.kubeconfig); ${end}`;
    const ended = spawnSync(process.execPath, ["--input-type=module", "--eval", lines], { encoding: "utf8" });
    assert.equal(ended.signal, signal, ended.stderr);
    const folder = dirname(ended.stdout.trim());
    assert.match(folder, /kubarium-/);
    assert.ok(!existsSync(folder), `a file is left by ${signal ?? "a throw"}`);
  }
});

test("a flag that is wrong is told", async () => {
  await assert.rejects(startCluster("--seed=many"), (error) => {
    assert.ok(error instanceof KubariumError);
    return error.message.includes("--seed many: must be a whole number");
  });
});
