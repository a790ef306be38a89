/** The main thread's side of the schema Workers: a schema takes up to half a second to compile, and an answer
 * a tenth to be checked.
 */

import { entryOf } from "../../base/program_paths.ts";
import { PermitQueue } from "../../sharing/permit_queue.ts";
import { type Sleeper, timer } from "../../base/wait.ts";
import {
  type CheckedSchema,
  type OutputSchema,
  plainSchema,
  SchemaFault,
} from "../../model/reason/caller_schema.ts";
import type { Caller } from "../caller.ts";
import type { SchemaOrder, SchemaReport } from "./schema_worker.ts";

const WORKERS_MAX = 2;
const WAITERS_MAX = 1_000;
/** A Worker without an order ends after this time: each takes the memory of a runtime. */
const IDLE_MS = 60_000;

export interface OutputSchemasOptions {
  readonly world: Sleeper;
  /** Whether the service has several principals: then none has all Workers. */
  readonly isShared: boolean;
}

/** The schemas of callers. */
export class OutputSchemas implements Disposable {
  readonly #world: Sleeper;
  readonly #places: PermitQueue;
  readonly #idle: { readonly worker: SchemaWorker; readonly ending: Disposable }[] = [];

  constructor({ world, isShared }: OutputSchemasOptions) {
    this.#world = world;
    this.#places = new PermitQueue({
      limit: WORKERS_MAX,
      waiterLimit: WAITERS_MAX,
      what: "checks of an output_schema",
      refusal: "provider_saturated",
      isShared,
    });
  }

  /**
   * Refuses with 503 where too many wait, and rejects with the reason of the caller's signal; so does `read`
   * of the schema.
   */
  async check({ principalKey, signal }: Turn, given: unknown): Promise<CheckedSchema> {
    let schema: Record<string, unknown>;
    try {
      schema = plainSchema(given);
    } catch (error) {
      if (error instanceof SchemaFault) return { ok: false, fault: error.message };
      throw error;
    }
    const text = JSON.stringify(schema);
    const { fault } = await this.#ordered({ schema: text, answer: null }, { principalKey, signal });
    if (fault !== null) return { ok: false, fault };
    const read: OutputSchema["read"] = async (answer, signal) => {
      const { answered } = await this.#ordered({ schema: text, answer }, { principalKey, signal });
      return answered!;
    };
    return { ok: true, outputSchema: { schema, read } };
  }

  /** Ends the Workers; nothing may be under way. */
  [Symbol.dispose](): void {
    this.#places.close();
    for (const { worker, ending } of this.#idle.splice(0)) {
      ending[Symbol.dispose]();
      worker[Symbol.dispose]();
    }
  }

  async #ordered(order: SchemaOrder, turn: Turn): Promise<SchemaReport> {
    using _place = await this.#places.acquire(turn);
    const idle = this.#idle.pop();
    idle?.ending[Symbol.dispose]();
    const worker = idle?.worker ?? new SchemaWorker();
    try {
      const report = await worker.do(order);
      this.#keep(worker);
      return report;
    } catch (error) {
      worker[Symbol.dispose]();
      throw error;
    }
  }

  #keep(worker: SchemaWorker): void {
    const ending = timer(this.#world, IDLE_MS, () => {
      this.#idle.splice(this.#idle.findIndex((idle) => idle.worker === worker), 1);
      worker[Symbol.dispose]();
    });
    this.#idle.push({ worker, ending });
  }
}

/** Whose turn it is. */
type Turn = Pick<Caller, "principalKey" | "signal">;

/** One Worker, which does one order at a time. */
class SchemaWorker implements Disposable {
  readonly #worker: Worker;
  #done = Promise.withResolvers<SchemaReport>();

  constructor() {
    const none = { read: false, write: false, net: false, env: false, run: false, ffi: false, sys: false };
    this.#worker = new Worker(entryOf("schema"), {
      type: "module",
      name: "schema",
      deno: { permissions: { ...none, import: false } },
    });
    this.#worker.onmessage = ({ data }: MessageEvent<SchemaReport>) => this.#done.resolve(data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#done.reject(new Error(`The schema Worker failed: ${event.message}`));
    };
  }

  do(order: SchemaOrder): Promise<SchemaReport> {
    this.#done = Promise.withResolvers();
    this.#worker.postMessage(order);
    return this.#done.promise;
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }
}
