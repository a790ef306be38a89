/** The entry of the sandboxed Worker: opens and closes the service on orders, and reports the results. */

import "./base/worker_globals.ts";
import { openLog } from "./base/log.ts";
import { realWorld } from "./base/world.ts";
import { BrokerClient } from "./media/tools/broker_client.ts";
import { streamsOf } from "./media/tools/cage.ts";
import { ConnectionQuestions, type ServiceNotice, type ServiceOrder, type StartOrder } from "./sandbox.ts";
import { openService, type Service } from "./service/service.ts";

/** The part of the Worker's global scope that is used here. */
interface ServiceWorkerScope {
  onmessage: ((message: MessageEvent<ServiceOrder>) => void) | null;
  postMessage(notice: ServiceNotice): void;
}

const scope = globalThis as typeof globalThis & ServiceWorkerScope;
const service = Promise.withResolvers<Service>();
service.promise.catch(() => {}); // `start` reports it

scope.onmessage = ({ data: order }) => {
  if (order.type === "start") void start(order);
  else if (order.type === "connections") connections.answer(order);
  else void close();
};

const connections = new ConnectionQuestions((notice) => scope.postMessage(notice));

async function start({ start, broker: port }: StartOrder): Promise<void> {
  const { config, places, labelMaps = null, backendFile } = start;
  try {
    const world = realWorld(openLog(config.logFilter));
    const broker = new BrokerClient({ port, socketDir: places.socketDir, world });
    const opened = await openService({
      config,
      broker,
      cageLevel: start.cage.level,
      streams: streamsOf(start.cage).by,
      places,
      labelMaps,
      backends: backendFile?.backends ?? [],
      restrictedZone: backendFile?.restrictedZone ?? null,
      world,
      lookAtConnections: connections.ask,
    });
    service.resolve(opened);
    scope.postMessage({ type: "listening", hostname: opened.hostname, port: opened.port });
  } catch (error) {
    service.reject(error);
    scope.postMessage({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}

async function close(): Promise<void> {
  try {
    await (await service.promise)[Symbol.asyncDispose]();
    scope.postMessage({ type: "closed" });
  } catch (error) {
    scope.postMessage({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}
