/** `webhooks list`, `add`, `rm` and `redeliver`. */

import { CliError, failureOf } from "../../failure.ts";
import type { ARMED } from "../../table/choices.ts";
import type { Handler, Session } from "../../session.ts";

export const listWebhooks: Handler = async ({ client, out, signal }, [id]) => {
  const all = await (await client()).listWebhooks(id!, { signal });
  await out.list(
    all,
    [
      { title: "WEBHOOK" },
      { title: "STATE" },
      { title: "DELIVERED", isRight: true },
      { title: "GIVEN UP", isRight: true },
      { title: "WITHHELD", isRight: true },
      { title: "UP TO", isRight: true },
      { title: "URL" },
      { title: "LAST ERROR" },
    ],
    all.map((hook) => [
      ...[
        hook.webhook_id,
        hook.state === "gone" ? "receiver gone" : hook.state,
        hook.delivered,
        hook.dead_letters,
        hook.withheld,
      ],
      ...[hook.last_terminal_seq, hook.url, hook.last_error],
    ]),
    "no webhooks",
  );
};

export const addWebhook: Handler = async (session, [id, url], options) => {
  const hook = await register(session, id!, url!, options);
  session.out.record(hook, [
    ["webhook_id", hook.webhook_id],
    ["url", hook.url],
    ["event_kinds", hook.event_kinds.join(", ") || "all"],
    ["filter", hook.filter && JSON.stringify(hook.filter)],
    ["cooldown", hook.cooldown && `${hook.cooldown.interval_ms / 1000} s`],
    ["signing_secret", hook.signing_secret],
  ], hook.webhook_id);
  if (!session.out.isJson) session.out.note("keep the signing secret: it is not shown again");
};

/** Registers a webhook; a refused address is told with what the operator can do. */
export async function register(
  { client, settings, signal }: Session,
  runId: string,
  url: string,
  { events, labels, zones, sources, minConfidence, armed, cooldown }: {
    readonly events?: readonly string[];
    readonly labels?: readonly string[];
    readonly zones?: readonly string[];
    readonly sources?: readonly string[];
    readonly minConfidence?: number;
    readonly armed?: typeof ARMED[number];
    readonly cooldown?: number;
  },
) {
  try {
    const lists = { labels, zones, sources };
    const filter = {
      ...Object.fromEntries(
        Object.entries(lists).flatMap(([name, list]) => list ? [[name, [...list]] as const] : []),
      ),
      ...(minConfidence !== undefined && { min_confidence: minConfidence }),
      ...(armed && { armed }),
    };
    const request = {
      url,
      ...(events && { event_kinds: [...events] }),
      ...(Object.keys(filter).length > 0 && { filter }),
      ...(cooldown !== undefined && { cooldown: { interval_ms: cooldown * 1000 } }),
    };
    return await (await client()).createWebhook(runId, request, { signal });
  } catch (error) {
    const failure = failureOf(error, settings.url);
    if (signal.aborted || failure.exit !== "invalid" || !failure.message.startsWith("url")) throw error;
    throw new CliError(
      "invalid",
      failure.message,
      "the server calls public https addresses only, unless its operator sets SERVICE_ALLOW_PRIVATE_WEBHOOKS=true; " +
        "`webhooks listen --public-url` takes the address of a tunnel",
    );
  }
}

export const removeWebhook: Handler = async ({ client, out, signal }, [id, webhookId]) => {
  await (await client()).deleteWebhook(id!, webhookId!, { signal });
  out.record({ run_id: id, webhook_id: webhookId, deleted: true }, [["webhook_id", webhookId], [
    "deleted",
    "yes",
  ]], webhookId!);
};

export const redeliverWebhook: Handler = async (session, [id, webhookId], { fromSeq, toSeq }) => {
  const { client, out, signal } = session;
  const answer = await (await client()).redeliverWebhook(id!, webhookId!, {
    ...(fromSeq !== undefined && { from_seq: fromSeq }),
    ...(toSeq !== undefined && { to_seq: toSeq }),
  }, { signal });
  out.record(answer, [
    ["webhook_id", answer.webhook_id],
    ["from_seq", answer.from_seq],
    ["to_seq", answer.to_seq],
    ["scheduled", answer.scheduled],
  ], String(answer.scheduled));
};
