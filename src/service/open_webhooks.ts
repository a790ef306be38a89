/** Opens the webhooks: the connections of their deliveries, the registered hooks and a worker for each. */

import type { Config } from "../contract/config.ts";
import type { Metrics } from "../contract/metrics.ts";
import type { World } from "../base/world.ts";
import type { NamedSources } from "../flow/sources/named_sources.ts";
import { HookRegistry, type WebhookSending } from "../flow/webhooks/hook_registry.ts";
import { Webhooks } from "../flow/webhooks/webhooks.ts";
import type { TrustedOutbound } from "../remote/guard/outbound.ts";
import { PinnedAgent } from "../remote/guard/pinned_agent.ts";
import type { Timeline } from "../store/timeline/timeline.ts";

export interface OpenWebhooksOptions {
  readonly config: Pick<
    Config,
    "webhookSecret" | "webhookRetryDelaysMs" | "webhookTimeoutMs" | "allowPrivateWebhooks"
  >;
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly named: NamedSources;
  readonly outbound: TrustedOutbound;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
  readonly world: World;
  readonly metrics: Metrics;
}

export function openWebhooks(
  opening: AsyncDisposableStack,
  { config, timeline, dataDir, named, outbound, isShared, world, metrics }: OpenWebhooksOptions,
): Webhooks {
  const allowPrivate = config.allowPrivateWebhooks;
  const sending = openSending(opening, config, outbound);
  const retryDelaysMs = config.webhookRetryDelaysMs;
  const hooks = opening.use(
    HookRegistry.open({
      ...{ timeline, dataDir, named, world, metrics, sending, retryDelaysMs, allowPrivate, isShared },
    }),
  );
  return new Webhooks({ timeline, world, hooks, allowPrivate });
}

/** Without a root secret webhooks are off. */
function openSending(
  opening: AsyncDisposableStack,
  { webhookSecret: secret, webhookTimeoutMs: timeoutMs }: OpenWebhooksOptions["config"],
  { resolve, roots, reroute }: TrustedOutbound,
): WebhookSending | undefined {
  if (secret === undefined) return undefined;
  const agent = opening.use(new PinnedAgent({ roots, ...(reroute && { reroute }) }));
  return { secret, agent, timeoutMs, ...(resolve && { resolve }) };
}
