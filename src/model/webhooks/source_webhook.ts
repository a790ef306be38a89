/** The webhooks that the file of sources gives to each run of an always-on camera. See
 * docs/cameras.md#webhooks-of-a-source.
 */

import { Refusal } from "../../contract/refusal.ts";
import { shapeMessage } from "../shape_message.ts";
import { event } from "../events/event_table.ts";
import { FieldRules } from "../field_rules.ts";
import type { NewEvent } from "../runs/run.ts";
import { isSourceName } from "../source_name.ts";
import type { TomlTable } from "../toml_table.ts";
import { WEBHOOK_CONDITIONS } from "./conditions.ts";
import { checkedCooldown, type Cooldown } from "./cooldown.ts";
import { checkedFilter, type WebhookFilter } from "./filter.ts";
import { newWebhookId, targetFault, webhookKinds } from "./webhook.ts";

export interface SourceWebhook {
  readonly name: string;
  /** The URL, which is told to nobody, as it may have a secret in its path. */
  readonly url: string;
  /** What is told of the URL: the host as it stands in the file. */
  readonly shownUrl: string;
  /** The key of the signatures: 64 hex digits, as the `signing_secret` of other webhooks. */
  readonly secret: string;
  readonly eventKinds: readonly string[];
  readonly filter: WebhookFilter | null;
  readonly cooldown: Cooldown | null;
}

export interface SourceWebhookContext {
  /** SERVICE_ALLOW_PRIVATE_WEBHOOKS */
  readonly allowPrivate: boolean;
  /** Whether SERVICE_WEBHOOK_SECRET is set. */
  readonly areOn: boolean;
}

/** The field `webhooks` of a source. Its faults show no address and no secret. */
export function readWebhooks(table: TomlTable, context: SourceWebhookContext): readonly SourceWebhook[] {
  const tables = table.tables("webhooks", ({ name }) => isSourceName(name) ? name : null);
  if (tables.length > 0 && !context.areOn) {
    table.say("webhooks", "needs SERVICE_WEBHOOK_SECRET, without which no webhook is sent");
  }
  const webhooks = tables.map((each) => readWebhook(each, context));
  webhooks.forEach(({ name }, index) => {
    const isTaken = webhooks.findIndex((other) => other.name === name) < index;
    if (name !== "" && isTaken) tables[index]!.fault("name", "must differ from those of the source's others");
  });
  return webhooks;
}

function readWebhook(table: TomlTable, { allowPrivate }: SourceWebhookContext): SourceWebhook {
  const name = table.text("name") ?? "";
  if (name !== "" && !isSourceName(name)) {
    table.fault("name", "must be 1 to 64 of the characters a-z, 0-9 and -");
  }
  const url = table.location("url", "must be a URL");
  const fault = url === undefined ? null : targetFault(url, allowPrivate);
  if (fault !== null) table.say("url", fault);
  const secret = table.secret("secret");
  if (secret !== undefined && !/^[0-9a-f]{64}$/.test(secret)) {
    table.say("secret", "must be 64 of the characters 0-9 and a-f, as `openssl rand -hex 32` makes them");
  }
  const conditions = readConditions(table);
  table.close();
  return {
    name,
    url: url ?? "",
    shownUrl: shown(table.written("url")),
    secret: secret ?? "",
    ...conditions,
  };
}

function readConditions(table: TomlTable): Pick<SourceWebhook, "eventKinds" | "filter" | "cooldown"> {
  const none = { eventKinds: [], filter: null, cooldown: null };
  const parsed = WEBHOOK_CONDITIONS.safeParse(table.given(Object.keys(WEBHOOK_CONDITIONS.shape)), {
    error: shapeMessage,
  });
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) table.say(path.map(String).join("."), message);
    return none;
  }
  const { event_kinds, filter, cooldown } = parsed.data;
  const rules = new FieldRules();
  try {
    const read = {
      eventKinds: webhookKinds(event_kinds ?? []),
      filter: checkedFilter(filter, rules),
      cooldown: checkedCooldown(cooldown, rules),
    };
    rules.check();
    return read;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    for (const { field, message } of error.details) table.say(field, message);
    return none;
  }
}

/**
 * A URL as it is told: `https://hooks.example.org/...` of what stands in the file, with its variables by
 * their names.
 */
function shown(written: string): string {
  const [host = ""] = /^(?:https?:\/\/)?[^/?#]*/i.exec(written) ?? [];
  return host.length < written.length ? `${host}/...` : host;
}

/** The events that register the webhooks of a source on a new run. */
export function registrations(
  { runId, sourceName, webhooks, randomBytes }: {
    readonly runId: string;
    readonly sourceName: string;
    readonly webhooks: readonly SourceWebhook[];
    readonly randomBytes: (length: number) => Uint8Array<ArrayBuffer>;
  },
): NewEvent[] {
  return webhooks.map(({ name, shownUrl, eventKinds, filter, cooldown }) =>
    event("webhook_registered", runId, {
      webhook_id: newWebhookId(randomBytes),
      url: shownUrl,
      event_kinds: [...eventKinds],
      ...(filter && { filter }),
      ...(cooldown && { cooldown }),
      source: { name: sourceName, webhook: name },
    })
  );
}
