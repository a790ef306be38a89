/** Direct inference: one request, a batch of them, and the model catalog. */

import type { World } from "../../base/world.ts";
import type { InferBatchBody, InferBody } from "../../model/api/infer.ts";
import { FieldRules } from "../../model/field_rules.ts";
import type { CatalogEntry } from "../../model/infer/catalog.ts";
import { InferenceFailed } from "../../model/infer/inference.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import type { RunWork } from "../runs/run_work.ts";
import { type BatchAnswer, InferBatch } from "./batch.ts";
import { checkedRequest } from "./checked_request.ts";
import { asRefusal, DirectInference, type InferAnswer } from "./direct_inference.ts";
import type { Inference } from "./inference.ts";

export interface InferOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly work: RunWork;
  readonly inference: Inference;
  readonly streamTtlMs: number;
  /** Calls that one principal may have under way. */
  readonly perPrincipalLimit: number;
}

export class Infer {
  readonly #inference: Inference;
  readonly #direct: DirectInference;
  readonly #batch: InferBatch;

  constructor({ timeline, world, work, inference, streamTtlMs, perPrincipalLimit }: InferOptions) {
    this.#inference = inference;
    this.#direct = new DirectInference({ timeline, world, work, inference, streamTtlMs });
    this.#batch = new InferBatch({ direct: this.#direct, inference, world, perPrincipalLimit });
  }

  /**
   * Errors: 500 without any backend; 422 with the fields, `model` too when no backend serves it, and
   * `request` when it is larger than a whole budget; 404 and 409 for the run; 503 `provider_saturated` and
   * `deadline_missed`; 500 when the provider fails.
   */
  async one(caller: Caller, body: InferBody): Promise<InferAnswer> {
    this.#direct.requireProvider();
    const rules = new FieldRules();
    const identify = await this.#inference.identify([body.model], caller.signal);
    const request = checkedRequest(body, rules, identify);
    rules.check();
    this.#direct.checkRun(caller, request);
    try {
      return await this.#direct.answer(caller, request);
    } catch (error) {
      caller.signal.throwIfAborted();
      throw error instanceof InferenceFailed ? asRefusal(error) : error;
    }
  }

  /**
   * A wrong item refuses the whole batch before any provider is asked; an item that fails later fails alone.
   * Errors: 500 without any backend; 422 on `requests`, `max_parallel` and the fields of an item; 404 and 409
   * for the run of an item.
   */
  batch(caller: Caller, body: InferBatchBody): Promise<BatchAnswer> {
    return this.#batch.run(caller, body);
  }

  /**
   * Every model of the catalog and of the model servers, and whether one of its backends answers right now.
   */
  models(caller: Caller): Promise<CatalogEntry[]> {
    return this.#inference.catalog(caller.signal);
  }
}
