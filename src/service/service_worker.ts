/** The entry of the sandboxed Worker: opens and closes the service on orders, and reports the results. */

import "../base/worker_globals.ts";
import { BackgroundOutput, errorText, openLog, quietLog } from "../base/log.ts";
import { hasEndedWithin } from "../base/wait.ts";
import { realWorld } from "../base/world.ts";
import { BrokerClient } from "../media/broker/broker_client.ts";
import {
  type CageFacts,
  ConnectionQuestions,
  factsOf,
  type ServiceNotice,
  type ServiceOrder,
  type StartOrder,
} from "../process/sandbox.ts";
import { openService, type Service } from "./service.ts";

/** The part of the Worker's global scope that is used here. */
interface ServiceWorkerScope {
  onmessage: ((message: MessageEvent<ServiceOrder>) => void) | null;
  postMessage(notice: ServiceNotice): void;
}

/** How long closing waits for the last log lines to be read. */
const LOG_FLUSH_MS = 1000;

/** The lines of the log, from the start order on. */
const output = Promise.withResolvers<BackgroundOutput>();
const scope = globalThis as typeof globalThis & ServiceWorkerScope;
const cage = Promise.withResolvers<CageFacts>();
const service = Promise.withResolvers<Service>();
service.promise.catch(() => {}); // `start` reports it

scope.onmessage = ({ data: order }) => {
  if (order.type === "start") void start(order);
  else if (order.type === "connections") connections.answer(order);
  else if (order.type === "sources") {
    // A service that cannot be opened has said so.
    service.promise.then((opened) => opened.applySources(order.sources), () => {});
  } else if (order.type === "cage") cage.resolve(order.cage);
  else void close();
};

const connections = new ConnectionQuestions((notice) => scope.postMessage(notice));

async function start({ start, broker: port }: StartOrder): Promise<void> {
  const {
    config,
    tools,
    places,
    labelMaps = null,
    backendFile,
    namedSources = [],
    certificate = null,
    logsOnce = false,
  } = start;
  if (start.cage) cage.resolve(factsOf(start.cage));
  try {
    const lines = new BackgroundOutput({ isOnePlace: logsOnce });
    output.resolve(lines);
    const world = realWorld(openLog(config.logFilter, lines));
    const broker = new BrokerClient({ port, socketDir: places.socketDir, world });
    const opened = await openService({
      config,
      broker,
      cageLevel: cage.promise.then(({ level }) => level),
      streams: cage.promise.then(({ streams }) => streams),
      places,
      devices: tools.devices ?? {},
      labelMaps,
      backends: backendFile?.backends ?? [],
      restrictedZone: backendFile?.restrictedZone ?? null,
      namedSources,
      certificate,
      world,
      droppedLogLines: () => lines.droppedLines,
      lookAtConnections: connections.ask,
    });
    service.resolve(opened);
    scope.postMessage({ type: "listening", hostname: opened.hostname, port: opened.port });
  } catch (error) {
    service.reject(error);
    scope.postMessage({ type: "failed", message: errorText(error) });
  }
}

async function close(): Promise<void> {
  try {
    await (await service.promise)[Symbol.asyncDispose]();
    await hasEndedWithin(realWorld(quietLog()), LOG_FLUSH_MS, (await output.promise).flushed());
    scope.postMessage({ type: "closed" });
  } catch (error) {
    scope.postMessage({ type: "failed", message: errorText(error) });
  }
}
