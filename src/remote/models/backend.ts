/** The interface of all model backends, whatever protocol they use. */

import type { World } from "../../base/world.ts";
import type { InferenceAnswer, InferenceRequest, ProviderKind } from "../../model/infer/inference.ts";
import type { Resolve } from "../guard/address_guard.ts";
import type { PinnedAgent } from "../guard/pinned_agent.ts";
import type { ServedModels } from "./served_models.ts";

export interface Backend {
  /** The name in the operator's configuration. */
  readonly name: string;
  readonly kind: ProviderKind;
  /** Whether the backend takes a clip as a separate file; others get it inside the request. */
  readonly hasBinaryMedia: boolean;
  /** How many output tokens `request` may use here. */
  reservedTokens(request: InferenceRequest): number;
  /** One inference, not repeated after a failure. Errors: `InferenceFailed`, or the reason of the signal. */
  ask(request: InferenceRequest, options: BackendCallOptions): Promise<BackendAnswer>;
  /** The models that the backend has, as it said last. */
  readonly models: ServedModels;
  /** Waits for requests that follow its answers, such as the deletion of a clip. */
  close(): Promise<void>;
}

export interface BackendCallOptions {
  /** Time for the whole call, with all its requests. */
  readonly timeoutMs: number;
  /** Ends the call: aborting it closes the connection, so that the backend stops working on the call. */
  readonly signal: AbortSignal;
}

export type BackendAnswer = Pick<InferenceAnswer, "outputText" | "finishReason" | "tokens">;

/** What all backends of a service share. */
export interface BackendContext {
  readonly world: World;
  /** The agent that has the connections. */
  readonly agent: PinnedAgent;
  /** Looks up host names; the system's resolver unless given. */
  readonly resolve?: Resolve;
}
