/** Entry of a live Worker: several sessions, each of which may fail without the others. */

import process from "node:process";
import type { LiveOrder, LiveReport } from "./messages.ts";

// A package that the sessions need looks at the environment while it loads, and this Worker may not see it.
Object.defineProperty(process, "env", { value: {}, configurable: true });
const { WorkerSessionTable } = await import("./worker_session_table.ts");

/** The little of a Worker's global scope that is used here. */
interface WorkerScope {
  onmessage: ((message: MessageEvent<LiveOrder>) => void) | null;
  postMessage(report: LiveReport, moved: Transferable[]): void;
  addEventListener(type: "unhandledrejection", listener: (event: PromiseRejectionEvent) => void): void;
  addEventListener(type: "error", listener: (event: ErrorEvent) => void): void;
}

const scope = globalThis as unknown as WorkerScope;
const sessions = new WorkerSessionTable((report, moved) => scope.postMessage(report, [...moved]));

// What nobody caught ends no Worker: other publishers' sessions are in it.
scope.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  sessions.onStray(event.reason);
});
scope.addEventListener("error", (event) => {
  event.preventDefault();
  sessions.onStray(event.error);
});

scope.onmessage = ({ data: order }) => sessions.take(order);
scope.postMessage({ kind: "ready" }, []);
