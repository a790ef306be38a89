/** Which events a webhook wants, as a request or the file of sources says it: the shape; the rules are
 * checked behind it.
 */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { COOLDOWN_KEYS } from "../events/run_payloads.ts";
import { boundedList } from "../schemas/bounded_list.ts";
import { namedEnum } from "../schemas/named_shapes.ts";
import { ARMED_CHOICES } from "./filter.ts";

const FILTER_ENTRIES = boundedList(z.string(), LIMITS.webhook.filterEntriesMax).nullish();

/** What a registered webhook says of the events that it wants. */
export const WEBHOOK_CONDITIONS = z.strictObject({
  event_kinds: boundedList(z.string(), LIMITS.webhook.eventKindsMax).nullish().describe(
    "Every kind that is not bookkeeping unless given",
  ),
  filter: z.strictObject({
    labels: FILTER_ENTRIES.describe("What the event calls what it saw or heard; one of them"),
    zones: FILTER_ENTRIES.describe("Policy ids of zones; one of them"),
    sources: FILTER_ENTRIES.describe("Names of named sources; one of them"),
    min_confidence: z.number().nullish(),
    armed: z.enum(ARMED_CHOICES).nullish().describe(
      "Which of the events that say whether their camera was armed; `armed` unless given",
    ),
  }).nullish().describe("What holds for a delivered event besides its kind"),
  cooldown: z.strictObject({
    interval_ms: z.int().describe("After a delivery, events with the same key are withheld for so long"),
    per: boundedList(namedEnum("CooldownKey", COOLDOWN_KEYS), COOLDOWN_KEYS.length).nullish().describe(
      "What makes the key; kind and source unless given",
    ),
  }).nullish(),
});
