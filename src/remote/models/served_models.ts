/** The models that one backend has, as its server said last. See docs/models.md#list. */

import { unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { hasModel, type ModelList, spellingIn } from "../../model/infer/model_list.ts";
import { LIMITS } from "../../contract/limits.ts";

/** What a server answered when it was asked for its models. */
export interface ModelsAnswer {
  /** Why the backend cannot be used, a clause that names it; null where it answers. */
  readonly fault: string | null;
  /** The models of the list; null where the server does not say what it has. */
  readonly list: ModelList | null;
}

export class ServedModels {
  readonly #ask: (signal: AbortSignal) => Promise<ModelsAnswer>;
  readonly #world: Pick<World, "monotonicMs">;
  /** Aborts what is under way when the service closes. */
  readonly #closing = new AbortController();
  #underWay: Promise<void> | null = null;
  #last: ModelsAnswer | null = null;
  /** When the last answer came. */
  #atMs = 0;
  #list: ModelList | null = null;
  /** Models for which the server has answered, whatever its list says: some servers take any name. */
  readonly #answered = new Set<string>();

  /** `ask`: one request with a time limit of its own; it throws only where it was aborted. */
  constructor(ask: (signal: AbortSignal) => Promise<ModelsAnswer>, world: Pick<World, "monotonicMs">) {
    this.#ask = ask;
    this.#world = world;
  }

  /** What the server answered last; null where it has not been asked. */
  get last(): ModelsAnswer | null {
    return this.#last;
  }

  /** The last list that the server gave: one that is away for a moment has not lost its models. */
  get list(): ModelList | null {
    return this.#list;
  }

  /** Whether the server has the model; null where it does not say. */
  has(model: string): boolean | null {
    return this.#answered.has(model) ? true : hasModel(this.#list, model);
  }

  /** What the server calls the model. */
  spelling(model: string): string {
    return this.#list === null ? model : spellingIn(this.#list, model) ?? model;
  }

  /** Notes that the server answered a question to this model. */
  answered(model: string): void {
    if (this.#answered.size >= LIMITS.backend.modelsMax) this.#answered.clear();
    this.#answered.add(model);
  }

  /** Notes that the server refused a question to this model. */
  refused(model: string): void {
    this.#answered.delete(model);
  }

  /** Asks now; those who ask at the same time share the request. Errors: the reason of the signal. */
  async refresh(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#underWay ??= this.#renew().finally(() => void (this.#underWay = null));
    await unlessAborted(this.#underWay, signal);
  }

  /**
   * Asks where the last answer is older than a minute, or than five seconds after a failure. Errors: as for
   * `refresh`.
   */
  async renew(signal: AbortSignal): Promise<void> {
    const validMs = this.#last?.fault === null ? LIMITS.backend.modelsValidMs : LIMITS.backend.modelsRetryMs;
    const isFresh = this.#last !== null && this.#world.monotonicMs() - this.#atMs < validMs;
    if (!isFresh) await this.refresh(signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#underWay;
  }

  async #renew(): Promise<void> {
    try {
      const answer = await this.#ask(this.#closing.signal);
      this.#last = answer;
      // A server that answers without a list has none any more; one that does not answer may have what it
      // had.
      if (answer.fault === null) this.#list = answer.list;
    } catch (error) {
      if (!this.#closing.signal.aborted) throw error;
    } finally {
      this.#atMs = this.#world.monotonicMs();
    }
  }
}
