/** A cluster as a process that belongs to this one. */

import { spawn } from "node:child_process";
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, rmSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** How long a start or an end may take, in milliseconds: a bound against hanging. */
const PATIENCE = 60_000;
/** The longest that is waited for an answer: more does not fit into a timer. */
const LONGEST = 24 * 60 * 60_000;
/** The longest that `time/until` takes if its body does not say `within`: that of a stepped clock. */
const UNTIL_WITHIN = "1h";
/** What ends a process that does not listen. */
const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/** The clusters of this process that nobody has stopped yet. */
const running = new Set();

/** The program could not be found, did not start, or was refused by the server; its words say why. */
export class KubariumError extends Error {
  name = "KubariumError";

  constructor(message, { code, status } = {}) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The `kubarium` that is run: `$KUBARIUM`, the one of this package, or the one on PATH. */
export function program() {
  if (process.env.KUBARIUM) return process.env.KUBARIUM;
  const own = fileURLToPath(new URL("bin/kubarium", import.meta.url));
  const onPath = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "kubarium"));
  const found = [own, ...onPath].find(isProgram);
  if (!found) throw new KubariumError("no program kubarium in the package nor on PATH; set KUBARIUM");
  return found;
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Starts a cluster; the words are flags of `kubarium up`. */
export async function startCluster(...flags) {
  const path = program();
  const folder = await mkdtemp(join(tmpdir(), "kubarium-"));
  const cluster = new Cluster(path, folder, flags);
  try {
    await cluster.ready();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** Whoever forgets to stop clusters does not keep them, nor the keys in their files: they end with this process. */
function endAll() {
  for (const cluster of running) cluster.endNow();
}

function onSignal(signal) {
  // Who listens besides decides whether the process ends.
  if (process.listenerCount(signal) > 1) return;
  endAll();
  process.removeListener(signal, onSignal);
  process.kill(process.pid, signal);
}

function watchOver(cluster) {
  if (running.size === 0) {
    process.on("exit", endAll);
    for (const signal of ENDING_SIGNALS) process.on(signal, onSignal);
  }
  running.add(cluster);
}

function forget(cluster) {
  running.delete(cluster);
  if (running.size > 0) return;
  process.removeListener("exit", endAll);
  for (const signal of ENDING_SIGNALS) process.removeListener(signal, onSignal);
}

class Cluster {
  #folder;
  #child;
  #ended;
  #access;

  constructor(path, folder, flags) {
    this.#folder = folder;
    this.kubeconfig = join(folder, "kubeconfig");
    const log = openSync(join(folder, "log"), "w");
    const words = ["up", "--name", "test", "--kubeconfig", this.kubeconfig, "--ready-file", join(folder, "ready"), ...flags];
    // Should this process be killed, the cluster does not stay.
    const env = { ...this.environment(), KUBARIUM_END_WITH_PARENT: "1" };
    this.#child = spawn(path, words, { env, stdio: ["ignore", log, log] });
    closeSync(log);
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => resolve(`ended with ${code ?? signal}`));
      this.#child.once("error", (error) => resolve(`could not be started: ${error.message}`));
    });
    watchOver(this);
  }

  /** Resolves when everything answers. */
  async ready() {
    const deadline = Date.now() + PATIENCE;
    let ended;
    this.#ended.then((how) => (ended = how));
    while (!existsSync(join(this.#folder, "ready"))) {
      if (ended) throw new KubariumError(`kubarium up ${ended}:\n${this.log()}`);
      if (Date.now() > deadline) throw new KubariumError(`kubarium up is not ready:\n${this.log()}`);
      await pause(2);
    }
    this.#access = accessOf(await this.kubeconfigText());
    this.server = this.#access.server;
  }

  /** What it has printed. */
  log() {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  /** The text of its kubeconfig. */
  kubeconfigText() {
    return readFile(this.kubeconfig, "utf8");
  }

  /** The variables with which `kubarium` and `kubectl` mean this cluster and no other. */
  environment() {
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("KUBARIUM_"));
    const own = { KUBARIUM_STATE_DIR: join(this.#folder, "state"), KUBECONFIG: this.kubeconfig };
    return { ...Object.fromEntries(inherited), ...own };
  }

  /**
   * Sends a request as the administrator; resolves to what the answer holds, JSON decoded. Waits as long as the
   * body of `settle`, `time/pass` or `time/until` lets it take, and a minute.
   */
  request(method, path, body) {
    const { server, ...tls } = this.#access;
    const data = body === undefined ? undefined : JSON.stringify(body);
    const headers = { accept: "application/json", ...(data && { "content-type": "application/json" }) };
    const send = server.startsWith("https:") ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const asked = send(server + path, { method, headers, agent: false, timeout: patience(path, body), ...tls }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () => settle(answer, Buffer.concat(parts).toString(), resolve, reject));
      });
      asked.on("timeout", () => asked.destroy(new KubariumError(`${method} ${path}: no answer`)));
      asked.on("error", reject);
      asked.end(data);
    });
  }

  /** Ends it while its process ends, which waits for nothing any more. */
  endNow() {
    this.#child.kill();
    try {
      rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // It is written to until the cluster has ended; there is no other time to try again.
    }
  }

  /** Ends it, and removes every file of it. */
  async stop() {
    forget(this);
    this.#child.kill();
    const killed = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE);
    await this.#ended;
    clearTimeout(killed);
    await rm(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.stop();
  }
}

/** In milliseconds. */
export function patience(path, body) {
  const handle = path.match(/^\/kubarium\/v1\/(settle|time\/pass|time\/until)$/)?.[1];
  if (!handle) return PATIENCE;
  const allowed = body?.within ?? body?.duration ?? (handle === "time/until" ? UNTIL_WITHIN : "");
  const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  const parts = [...String(allowed).matchAll(/(\d+(?:\.\d+)?|\.\d+)(ms|[dhms])/g)];
  const asked = parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit], 0);
  return Math.min(PATIENCE + asked, LONGEST);
}

function settle(answer, text, resolve, reject) {
  const isJson = (answer.headers["content-type"] ?? "").includes("json");
  const content = isJson ? JSON.parse(text) : text;
  if (answer.statusCode < 300) return resolve(content);
  const message = content.message ?? `the server answered ${answer.statusCode}: ${text}`;
  reject(new KubariumError(message, { code: answer.statusCode, status: content }));
}

/** Of a kubeconfig as kubarium writes it: one entry of each, on a line of its own. */
function accessOf(text) {
  const entry = (name) => text.match(new RegExp(`^\\s*(?:- )?${name}: *(\\S+)\\s*$`, "m"))?.[1];
  const pem = (name) => {
    const data = entry(name);
    return data && Buffer.from(data, "base64");
  };
  return {
    server: entry("server"),
    ca: pem("certificate-authority-data"),
    cert: pem("client-certificate-data"),
    key: pem("client-key-data"),
  };
}
