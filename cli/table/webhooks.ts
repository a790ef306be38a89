/** Commands about webhooks. */

import { ARMED } from "./choices.ts";
import { type CommandRow, list, number, type OptionRow, RUN, whole } from "./row.ts";

const webhooks = () => import("../commands/webhooks/webhooks.ts");
const WEBHOOK = { name: "<webhook>", summary: "id of a webhook" };
const EVENTS = { flags: "--events <kinds>", summary: "only these kinds, with commas between", read: list };

const CONDITIONS: readonly OptionRow[] = [
  {
    flags: "--labels <labels>",
    summary: "only events that are so labelled, with commas between",
    read: list,
  },
  { flags: "--zones <ids>", summary: "only events of these zones, by policy id", read: list },
  { flags: "--sources <names>", summary: "only events of these named sources", read: list },
  { flags: "--min-confidence <n>", summary: "only events with so much confidence", read: number(0, 1) },
  {
    flags: "--armed <which>",
    summary:
      "of cameras' events that say whether they were armed: those that were, that were not, or any (armed)",
    choices: ARMED,
  },
  {
    flags: "--cooldown <seconds>",
    summary: "after a delivery, withhold and count more of the same kind and source for so long",
    read: whole(1, 86_400),
  },
];

export const WEBHOOK_COMMANDS: readonly CommandRow[] = [
  {
    path: "webhooks list",
    summary: "List the webhooks of a run with the state of their deliveries",
    args: [RUN],
    examples: ["webhooks list $RUN"],
    load: async () => (await webhooks()).listWebhooks,
  },
  {
    path: "webhooks add",
    summary:
      "Have the events of a run delivered to a URL; prints the signing secret, which is shown only now",
    args: [RUN, { name: "<url>", summary: "an https address that the server can reach" }],
    options: [EVENTS, ...CONDITIONS],
    examples: [
      "webhooks add $RUN https://example.org/hook --events marker_emitted,run_completed",
      "webhooks add $RUN https://example.org/hook --zones dock --min-confidence 0.6 --cooldown 60",
    ],
    load: async () => (await webhooks()).addWebhook,
  },
  {
    path: "webhooks rm",
    summary: "Remove a webhook",
    args: [RUN, WEBHOOK],
    examples: ["webhooks rm $RUN wh_d4a6c89bbff432740bd623fb"],
    load: async () => (await webhooks()).removeWebhook,
  },
  {
    path: "webhooks redeliver",
    summary: "Have events sent again that the webhook is past",
    args: [RUN, WEBHOOK],
    options: [
      { flags: "--from-seq <n>", summary: "first event", read: whole(0) },
      { flags: "--to-seq <n>", summary: "last event", read: whole(0) },
    ],
    examples: ["webhooks redeliver $RUN wh_d4a6c89bbff432740bd623fb --from-seq 76"],
    load: async () => (await webhooks()).redeliverWebhook,
  },
  {
    path: "webhooks listen",
    summary: "Receive deliveries on this machine, check their signatures and print them, until Ctrl-C",
    options: [
      { flags: "--run <run>", summary: "register with this run, and remove the webhook at the end" },
      { flags: "--secret <hex>", summary: "signing secret of a webhook that is registered already" },
      { flags: "--port <n>", summary: "port to listen on; a free one unless given", read: whole(0, 65_535) },
      { flags: "--host <address>", summary: "address to listen on", standard: "127.0.0.1" },
      { flags: "--public-url <url>", summary: "the address under which the server reaches this machine" },
      EVENTS,
    ],
    examples: [
      "webhooks listen --run $RUN",
      "webhooks listen --run $RUN --port 9000 --public-url https://tunnel.example.org/hook",
    ],
    load: async () => (await import("../commands/webhooks/listen.ts")).listen,
  },
];
