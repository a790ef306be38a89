/** Which models live sessions ask now. See docs/live/events.md#descriptions. */

import type { LiveModels } from "../../../model/live/live_models.ts";
import { unknownModelText } from "../../../model/infer/model_list.ts";
import { noProviderDescription } from "../../../model/live/prompt.ts";
import type { Inference } from "../../infer/inference.ts";

export interface ChosenModels {
  readonly first: string;
  /** Null for no second pass; never the first model. */
  readonly second: string | null;
  /** Why no backend answers for the first model; null where one does. */
  readonly notServed: string | null;
}

export class LiveModelChoice {
  readonly #models: LiveModels;
  readonly #inference: Inference;

  constructor(models: LiveModels, inference: Inference) {
    this.#models = models;
    this.#inference = inference;
  }

  /** What is chosen, as far as the models of the servers are known. */
  get now(): ChosenModels {
    const { firstPassModel, secondPassModel, isNamed } = this.#models;
    const first = isNamed ? firstPassModel : this.#inference.choose(firstPassModel);
    const isServed = (model: string) => this.#inference.serves(model);
    return {
      first,
      second: secondPassModel !== null && isServed(secondPassModel) ? secondPassModel : null,
      notServed: isServed(first) ? null : this.#notServed(first),
    };
  }

  /**
   * Like `now`, after the servers were asked for their models, where that decides. Errors: the reason of the
   * signal.
   */
  async settled(signal: AbortSignal): Promise<ChosenModels> {
    const { notServed } = this.now;
    if (!this.#models.isNamed || notServed !== null) await this.#inference.renewModels(signal);
    return this.now;
  }

  #notServed(model: string): string {
    const { isConfigured: hasBackends } = this.#inference;
    const unknown = this.#inference.unknown(model);
    return unknown === null
      ? noProviderDescription(model, { hasBackends })
      : unknownModelText(unknown.model, unknown.has);
  }
}
