/** The entry of a sandboxed Worker that opens and closes one service after another, for tests. */

import "../../src/base/worker_globals.ts";
import {
  ConnectionQuestions,
  type ServiceNotice,
  type ServiceOrder,
  type StartOrder,
} from "../../src/process/sandbox.ts";
import { NO_CAGE, streamsOf } from "../../src/media/broker/cage.ts";
import type { Service } from "../../src/service/service.ts";

interface WorkerScope {
  onmessage: ((message: MessageEvent<ServiceOrder>) => void) | null;
  postMessage(notice: ServiceNotice): void;
}

const scope = globalThis as unknown as WorkerScope;
const open: Service[] = [];
const connections = new ConnectionQuestions((notice) => scope.postMessage(notice));

scope.onmessage = async ({ data: order }) => {
  if (order.type === "connections") return connections.answer(order);
  try {
    if (order.type === "start") {
      const service = await start(order);
      open.push(service);
      scope.postMessage({ type: "listening", hostname: service.hostname, port: service.port });
    } else {
      await open.pop()![Symbol.asyncDispose]();
      scope.postMessage({ type: "closed" });
    }
  } catch (error) {
    scope.postMessage({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }
};

/**
 * What `src/service/service_worker.ts` does, with a log that writes nothing. The modules are loaded by the
 * first start, so that the Worker costs little in a test file that needs none.
 */
async function start(
  { start, broker: port, knownTools }: StartOrder & { readonly knownTools?: boolean },
): Promise<Service> {
  const { config, places, labelMaps = null, backendFile, namedSources = [], certificate = null } = start;
  const [{ quietLog }, { realWorld }, { openService }, { BrokerClient }] = await Promise.all([
    import("../../src/base/log.ts"),
    import("../../src/base/world.ts"),
    import("../../src/service/service.ts"),
    import("../../src/media/broker/broker_client.ts"),
  ]);
  const world = realWorld(quietLog());
  return await openService({
    ...{ config, places, labelMaps, certificate, world, streams: streamsOf(start.cage ?? NO_CAGE).by },
    broker: new BrokerClient({ port, socketDir: places.socketDir, world }),
    backends: backendFile?.backends ?? [],
    restrictedZone: backendFile?.restrictedZone ?? null,
    namedSources,
    knownTools: knownTools ?? false,
    lookAtConnections: connections.ask,
  });
}
