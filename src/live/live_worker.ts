/** Entry of a live Worker, which runs several sessions; a failure in one does not end the others. */

import "../base/worker_globals.ts";
import process from "node:process";
import type { LiveOrder, LiveReport } from "./messages/messages.ts";

// A package that the sessions need reads the environment while it loads, and this Worker has no permission
// for that.
Object.defineProperty(process, "env", { value: {}, configurable: true });
const { WorkerSessionTable } = await import("./worker_session_table.ts");

/** The part of the Worker's global scope that is used here. */
interface LiveWorkerScope {
  onmessage: ((message: MessageEvent<LiveOrder>) => void) | null;
  postMessage(report: LiveReport, moved: Transferable[]): void;
  addEventListener(type: "unhandledrejection", listener: (event: PromiseRejectionEvent) => void): void;
  addEventListener(type: "error", listener: (event: ErrorEvent) => void): void;
}

const scope = globalThis as typeof globalThis & LiveWorkerScope;
const sessions = new WorkerSessionTable((report, moved) => scope.postMessage(report, [...moved]));

// An error that nobody caught must not end the Worker, because it runs the sessions of other publishers as
// well.
scope.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  sessions.onUncaught(event.reason);
});
scope.addEventListener("error", (event) => {
  event.preventDefault();
  sessions.onUncaught(event.error);
});

scope.onmessage = ({ data: order }) => sessions.take(order);
scope.postMessage({ kind: "ready" }, []);
