/** Entry of a relay Worker, which reads the servers of several sources; a failure of one does not end the
 * others.
 */

import "../../base/worker_globals.ts";
import process from "node:process";
import type { RelayOrder, RelayReport } from "./relay_messages.ts";

// The libraries of TLS and zlib read the environment, and this Worker has no permission for that.
Object.defineProperty(process, "env", { value: {}, configurable: true });
const { RelayTable } = await import("./relay_table.ts");

/** The part of the Worker's global scope that is used here. */
interface RelayWorkerScope {
  onmessage: ((message: MessageEvent<RelayOrder>) => void) | null;
  postMessage(report: RelayReport, moved: Transferable[]): void;
  addEventListener(type: "unhandledrejection", listener: (event: PromiseRejectionEvent) => void): void;
  addEventListener(type: "error", listener: (event: ErrorEvent) => void): void;
}

const scope = globalThis as typeof globalThis & RelayWorkerScope;
const relays = new RelayTable((report, moved) => scope.postMessage(report, [...moved]));

// An error that nobody caught must not end the Worker, because it has other sources as well.
scope.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  relays.onUncaught(event.reason);
});
scope.addEventListener("error", (event) => {
  event.preventDefault();
  relays.onUncaught(event.error);
});

scope.onmessage = ({ data: order }) => relays.take(order);
scope.postMessage({ kind: "ready" }, []);
