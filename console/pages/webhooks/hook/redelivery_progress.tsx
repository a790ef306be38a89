/** How far events have come that are sent again, and what became of them. */

import type { Delivery, WebhookOfRun } from "../../../../client/mod.ts";
import { counted, countText } from "../../../text/numbers.ts";

/** What the service has scheduled. */
export interface Scheduled {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** How many events of the range match the webhook. */
  readonly count: number;
  /** The deliveries that were known before. */
  readonly before: ReadonlySet<string>;
}

/** The same event has a delivery for each time that it was sent. */
export function deliveryKey({ seq, attempts }: Delivery): string {
  return `${seq} ${attempts.at(-1) ?? 0}`;
}

export interface RedeliveryProgressProps {
  readonly of: Scheduled;
  readonly hook: WebhookOfRun;
  readonly deliveries: readonly Delivery[];
}

export function RedeliveryProgress(
  { of, hook, deliveries }: RedeliveryProgressProps,
) {
  const { fromSeq, toSeq, count, before } = of;
  if (count === 0) {
    return (
      <p class="note" role="status">
        No event from {fromSeq} to {toSeq} matches the webhook.
      </p>
    );
  }
  const ended = deliveries.filter((delivery) =>
    delivery.seq >= fromSeq && delivery.seq <= toSeq &&
    !before.has(deliveryKey(delivery))
  );
  const delivered = ended.filter(({ outcome }) => outcome === "delivered").length;
  const dead = ended.length - delivered;
  if (hook.redelivery !== null || ended.length === 0) {
    return (
      <p class="note" role="status">
        <span>
          {counted(count, "event")} {count === 1 ? "is" : "are"} being sent again
          {hook.redelivery !== null &&
            `; it has come to event ${hook.redelivery.from_seq} of ${fromSeq} to ${toSeq}`}.
        </span>
        <progress
          max={count}
          value={Math.min(count, ended.length)}
          aria-label="Sent again"
        />
      </p>
    );
  }
  return (
    <p class={dead > 0 ? "note fault" : "note"} role="status">
      {ended.length < count
        ? `${counted(count, "event")} were sent again; of the last ${ended.length}, `
        : `${counted(count, "event")} sent again: `}
      {countText(delivered)} delivered{dead > 0 && `, ${countText(dead)} given up`}.
    </p>
  );
}
