/** The program could not be found, did not start, or was refused by the server; its words say why. */
export class KubariumError extends Error {
  /** The HTTP status of an answer. */
  code?: number;
  /** The answer's `Status`. */
  status?: unknown;
}

/** A cluster as a process that belongs to this one. */
export interface Cluster extends AsyncDisposable {
  /** The path of its kubeconfig. */
  readonly kubeconfig: string;
  /** As `https://127.0.0.1:40123`. */
  readonly server: string;
  /** The text of its kubeconfig. */
  kubeconfigText(): Promise<string>;
  /** The variables with which `kubarium` and `kubectl` mean this cluster and no other. */
  environment(): Record<string, string>;
  /**
   * Sends a request as the administrator; rejects with a `KubariumError` unless it succeeds. Waits as long as the
   * body of `settle`, `time/pass` or `time/until` lets it take, and a minute.
   */
  request(method: string, path: string, body?: unknown): Promise<any>;
  /** What it has printed. */
  log(): string;
  /** Ends it, and removes every file of it. */
  stop(): Promise<void>;
}

/** The `kubarium` that is run. */
export function program(): string;

/** For how many milliseconds the answer to such a request is waited for. */
export function patience(path: string, body?: unknown): number;

/** Starts a cluster; the words are flags of `kubarium up`. */
export function startCluster(...flags: string[]): Promise<Cluster>;
