/** A batch of direct inferences: several requests in one, each with a result or an error of its own. */

import { type FieldFault, Refusal } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { InferBatchBody } from "../../model/api/infer.ts";
import { FieldRules, type IdentifyModel } from "../../model/field_rules.ts";
import { InferenceFailed } from "../../model/infer/inference.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Caller } from "../caller.ts";
import { type CheckedRequest, checkedRequest } from "./checked_request.ts";
import {
  type DirectInference,
  type InferAnswer,
  type ItemErrorCode,
  itemErrorOf,
  type ProviderFault,
} from "./direct_inference.ts";
import type { Inference } from "./inference.ts";

export interface InferBatchOptions {
  readonly direct: DirectInference;
  /** Knows the models that a caller may name. */
  readonly inference: Pick<Inference, "identify">;
  readonly world: World;
  /** Calls that one principal may have under way. */
  readonly perPrincipalLimit: number;
}

/** One of `result` and `error` is null. */
export interface BatchItem {
  readonly index: number;
  readonly ok: boolean;
  readonly result: InferAnswer | null;
  readonly error: { readonly code: ItemErrorCode; readonly message: string } | null;
}

export interface BatchAnswer {
  readonly request_id: string;
  readonly processed: number;
  readonly succeeded: number;
  readonly failed: number;
  /** By index. */
  readonly results: readonly BatchItem[];
}

/** See docs/models.md#batch. */
export class InferBatch {
  readonly #options: InferBatchOptions;

  constructor(options: InferBatchOptions) {
    this.#options = options;
  }

  /** See {@link Infer.batch}. */
  async run(caller: Caller, body: InferBatchBody): Promise<BatchAnswer> {
    const { direct, inference, perPrincipalLimit } = this.#options;
    direct.requireProvider();
    // Items of a list that is too long were not looked at.
    const isRead = body.requests.length <= LIMITS.infer.batchRequests.maximum;
    const models = isRead ? body.requests.map(({ model }) => model) : [];
    const identify = await inference.identify(models, caller.signal);
    const { requests, maxParallel } = checkedBatch(body, identify);
    for (const [index, request] of requests.entries()) {
      withItemIndex(index, () => direct.checkRun(caller, request));
    }

    // At most as many at once as admission lets the principal have: more would only wait there, each against
    // its own timeout, so that a large batch would make its own items fail.
    const workers = Math.min(maxParallel, perPrincipalLimit, requests.length);
    const results: BatchItem[] = new Array(requests.length);
    const remaining = requests.entries();
    const faults: ProviderFault[] = [];
    try {
      await Promise.all(Array.from({ length: workers }, async () => {
        for (const [index, request] of remaining) {
          results[index] = await this.#item(caller, index, request, (fault) => void faults.push(fault));
        }
      }));
    } finally {
      // One line for all, with the fault of the first.
      if (faults.length > 0) direct.logFault(faults[0]!, faults.length);
    }
    const succeeded = results.filter(({ ok }) => ok).length;
    return {
      request_id: caller.requestId,
      processed: results.length,
      succeeded,
      failed: results.length - succeeded,
      results,
    };
  }

  /** Throws only when the client has disconnected, which ends the whole batch. */
  async #item(
    caller: Caller,
    index: number,
    request: CheckedRequest,
    onFault: (fault: ProviderFault) => void,
  ): Promise<BatchItem> {
    try {
      const result = await this.#options.direct.answer(caller, request, onFault);
      return { index, ok: true, result, error: null };
    } catch (error) {
      caller.signal.throwIfAborted();
      return { index, ok: false, result: null, error: this.#itemError(caller, error) };
    }
  }

  #itemError(caller: Caller, error: unknown): NonNullable<BatchItem["error"]> {
    if (error instanceof InferenceFailed) return itemErrorOf(error);
    // The run ended while its item was under way, or the disk refused the event.
    if (error instanceof Refusal) {
      const code = error.status < 500 ? "validation_error" : "internal_error";
      return { code, message: error.message };
    }
    // A bug in one item must not lose the results of the others.
    this.#options.world.log.error("an item of a batch failed", {
      request_id: caller.requestId,
      error: error instanceof Error ? error.stack ?? error.message : String(error),
    });
    return { code: "internal_error", message: "An internal error occurred" };
  }
}

/** Refuses with the faults of the first wrong item; fields are named as in a single request. */
function checkedBatch(
  body: InferBatchBody,
  identify: IdentifyModel,
): { requests: CheckedRequest[]; maxParallel: number } {
  const sizes = LIMITS.infer.batchRequests;
  const { length } = body.requests;
  const maxParallel = body.max_parallel ?? LIMITS.infer.batchParallelDefault;
  const rules = new FieldRules();
  if (length < sizes.minimum || length > sizes.maximum) {
    rules.fault("requests", `must be ${sizes.minimum} to ${sizes.maximum} items: got ${length}`);
  }
  rules.range("max_parallel", maxParallel, LIMITS.infer.batchParallel);
  rules.check();
  const requests = body.requests.map((item, index) => {
    const ofItem = new FieldRules();
    const request = checkedRequest(item, ofItem, identify);
    withItemIndex(index, () => ofItem.check());
    return request;
  });
  return { requests, maxParallel };
}

/** Adds the index of the item to the messages of the refusal that `check` throws. */
function withItemIndex(index: number, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const placed = ({ field, message }: FieldFault) => ({ field, message: `requests[${index}]: ${message}` });
    throw new Refusal(error.kind, `requests[${index}]: ${error.message}`, error.details.map(placed));
  }
}
