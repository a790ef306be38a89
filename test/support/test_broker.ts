/** A broker and its client in one isolate, for tests that open a service or live Workers without a sandbox.
 */

import { quietLog } from "../../src/base/log.ts";
import type { Tools } from "../../src/base/program_paths.ts";
import { realWorld } from "../../src/base/world.ts";
import { Broker } from "../../src/media/broker/broker.ts";
import { BrokerClient, type BrokerConnection } from "../../src/media/broker/broker_client.ts";
import { type Cage, NO_CAGE } from "../../src/media/broker/cage.ts";
import { openNativePipes } from "../../src/media/broker/native_pipes.ts";
import type { JobPlaces } from "../../src/media/broker/job_paths.ts";

export class TestBroker implements AsyncDisposable {
  readonly client: BrokerClient;
  readonly #broker: Broker;

  constructor(tools: Tools, folders: Omit<JobPlaces, "socketDir">, cage: Cage = NO_CAGE) {
    const places = { ...folders, socketDir: folders.tempDir };
    const world = realWorld(quietLog());
    const { port1, port2 } = new MessageChannel();
    this.#broker = new Broker({ tools, places, cage, world, pipes: openNativePipes() });
    this.#broker.serve(port1);
    this.client = new BrokerClient({ port: port2, socketDir: places.socketDir, world });
  }

  /** A connection that may have all jobs run, for live Workers that pull files instead of cameras. */
  connect(): BrokerConnection {
    const { port1, port2 } = new MessageChannel();
    const served = this.#broker.serve(port1);
    return { port: port2, close: () => void served.close() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#broker[Symbol.asyncDispose]();
    this.client[Symbol.dispose]();
  }
}
