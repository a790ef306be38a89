/** The kinds of events in the API description: what a receiver of a webhook gets. */

import { EVENTS, eventTypeOf } from "../../model/events/event_table.ts";
import { refTo } from "./components.ts";

const DELIVERY_HEADERS: Readonly<Record<string, string>> = {
  "x-service-event-id": "`<run_id>:<seq>`, the same for each attempt and redelivery: deduplicate by it",
  "x-service-signature": "`v1=` and the hex HMAC-SHA256 of the body under the webhook's secret",
  "webhook-id": "As `x-service-event-id`, for a receiver of Standard Webhooks",
  "webhook-timestamp": "Seconds since 1970 at the start of the attempt",
  "webhook-signature":
    "`v1,` and the base64 HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` under the webhook's secret",
};

/** What a webhook's receiver gets for each kind of event; an event stream sends the same bodies as `data`. */
export function eventWebhooks(): Record<string, object> {
  const kinds = Object.entries(EVENTS).filter(([, { bookkeeping }]) => !bookkeeping);
  return Object.fromEntries(kinds.map(([kind, { summary }]) => {
    const isFamily = kind.endsWith(".*");
    const type = eventTypeOf(kind);
    const data = { $ref: `${refTo("EventPayloads")}/properties/${kind}` };
    const form = isFamily
      ? { type: "string", pattern: `^${type.slice(0, -1).replaceAll(".", "\\.")}` }
      : { const: type };
    return [kind, {
      post: {
        operationId: `on_${isFamily ? kind.slice(0, -2) : kind}`,
        tags: ["webhooks"],
        summary,
        security: [],
        parameters: Object.entries(DELIVERY_HEADERS).map(([name, description]) => ({
          ...{ name, in: "header", required: true, description },
          schema: { type: "string" },
        })),
        requestBody: {
          required: true,
          content: {
            "application/cloudevents+json": {
              schema: { allOf: [{ $ref: refTo("CloudEvent") }, { properties: { type: form, data } }] },
            },
          },
        },
        responses: { "2XX": { description: "Delivered; any other answer is tried again" } },
      },
    }];
  }));
}
