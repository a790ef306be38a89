/** What every kind of model backend can do, whichever protocol it speaks. */

import type { World } from "../../base/world.ts";
import type { InferenceAnswer, InferenceRequest, ProviderKind } from "../../model/infer/inference.ts";
import type { Resolve } from "../guard/address_guard.ts";
import type { PinnedAgent } from "../guard/pinned_agent.ts";

export interface Backend {
  /** As the operator has named it. */
  readonly name: string;
  readonly kind: ProviderKind;
  /** Whether it takes a clip as a file of its own; the others get it inside the request. */
  readonly hasBinaryMedia: boolean;
  /** Output tokens that `request` may take here. */
  reservedTokens(request: InferenceRequest): number;
  /** One question, never asked twice on account of a failure. Errors: `InferenceFailed`, or the reason of the signal. */
  ask(request: InferenceRequest, options: AskOptions): Promise<BackendAnswer>;
  /** Whether it answers at the moment, asked live and within the time that contract 1.4 gives it. */
  isReachable(signal: AbortSignal): Promise<boolean>;
  /** Waits for what it does after its answers. */
  close(): Promise<void>;
}

export interface AskOptions {
  /** For everything that the question takes. */
  readonly timeoutMs: number;
  /** Aborting it cuts the connection, so that the backend stops working on the question. */
  readonly signal: AbortSignal;
}

export type BackendAnswer = Pick<InferenceAnswer, "outputText" | "finishReason" | "tokens">;

/** What the backends of one service share. */
export interface BackendContext {
  readonly world: World;
  /** Holds the connections. */
  readonly agent: PinnedAgent;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
}
