/** All webhooks of the caller with their state, a new one, and how a receiver checks signatures. */

import type { WebhookOfRun } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { useKeys } from "../../shell/keys.tsx";
import { go, hrefOf, type Place } from "../../shell/place.ts";
import { counted, countText } from "../../text/numbers.ts";
import { useNow } from "../../ui/now.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Id } from "../../ui/value.tsx";
import { HookMark } from "./hook_mark.tsx";
import { failingSentence, hookState, isBehind, shortUrl } from "./hook_state.ts";
import { NewHook } from "./new_hook.tsx";
import { SignatureHelp } from "./signature/signature_help.tsx";
import "./webhooks.css";

const RELOAD_MS = 3_000;

const COLUMNS: readonly Column<WebhookOfRun>[] = [
  {
    title: "Receiver",
    cell: (hook) => (
      <a href={hrefOf(["webhooks", hook.webhook_id])} title={hook.url}>
        {shortUrl(hook.url)}
      </a>
    ),
    sortBy: (hook) => shortUrl(hook.url),
  },
  {
    title: "State",
    cell: (hook) => <HookMark of={hook} />,
    sortBy: (hook) => hookState(hook).word,
  },
  {
    title: "Delivered",
    cell: (hook) => countText(hook.delivered),
    sortBy: (hook) => hook.delivered,
    isNumber: true,
    isExtra: true,
  },
  {
    title: "Given up",
    cell: (hook) => countText(hook.dead_letters),
    sortBy: (hook) => hook.dead_letters,
    isNumber: true,
    isExtra: true,
  },
  {
    title: "Behind",
    cell: (hook) => isBehind(hook) ? `at event ${hook.last_terminal_seq} of ${hook.run_last_seq}` : "no",
    sortBy: (hook) => hook.run_last_seq - hook.last_terminal_seq,
    isExtra: true,
  },
  {
    title: "Last error",
    cell: (hook) => <span title={hook.last_error ?? ""}>{hook.last_error ?? ""}</span>,
    sortBy: (hook) => hook.last_error ?? "",
    isExtra: true,
  },
  {
    title: "Run",
    cell: (hook) => <Id value={hook.run_id} />,
    isExtra: true,
  },
];

export function Webhooks({ query }: Place) {
  const hooks = useLoaded(
    (signal) => client.value.listAllWebhooks({ signal }),
    [client.value],
    RELOAD_MS,
  );
  const isMaking = query.has("new");
  const make = () => go(["webhooks"], { new: "" });
  useKeys("Webhooks", [{ keys: ["n"], does: "new webhook", run: make }]);
  return (
    <section class="page">
      <header class="page-head">
        <h1>Webhooks</h1>
        {hooks.value && hooks.value.length > 0 &&
          <span class="dim">{counted(hooks.value.length, "webhook")}</span>}
        <div class="actions">
          <button type="button" class="primary" onClick={make}>
            New webhook
          </button>
        </div>
      </header>
      <Shown of={hooks}>
        {(list) => list.length === 0 ? <NoHooks /> : <HookTable hooks={list} />}
      </Shown>
      <SignatureHelp query={query} />
      <NewHook
        isOpen={isMaking}
        onClose={() => go(["webhooks"])}
        onMade={hooks.reload}
      />
    </section>
  );
}

function HookTable({ hooks }: { hooks: readonly WebhookOfRun[] }) {
  const failing = failingSentence(hooks, useNow());
  return (
    <>
      {failing !== null && <p class="fault-line" role="status">{failing}</p>}
      <Table
        name="webhooks"
        rows={hooks}
        columns={COLUMNS}
        keyOf={(hook) => hook.webhook_id}
        textOf={(hook) =>
          `${hook.url} ${hook.webhook_id} ${hook.run_id} ${hookState(hook).word} ${hook.last_error ?? ""}`}
        onOpen={(hook) => go(["webhooks", hook.webhook_id])}
      />
    </>
  );
}

/** Says why there is none: nobody made one, or the operator has not switched them on. */
function NoHooks() {
  const system = useLoaded((signal) => client.value.getSystem({ signal }), [
    client.value,
  ]);
  const secret = system.value?.settings.find(({ name }) => name === "SERVICE_WEBHOOK_SECRET");
  if (secret?.is_set === false) {
    return (
      <EmptyNote title="Webhooks are off">
        <p>
          The operator switches them on with a secret of 32 bytes or more in the service's environment, from
          which the signing keys of all webhooks follow:
        </p>
        <pre class="code">SERVICE_WEBHOOK_SECRET=$(openssl rand -hex 32)</pre>
        <p>
          Keep it: with another secret every receiver needs a new signing secret.
        </p>
      </EmptyNote>
    );
  }
  return (
    <EmptyNote title="No webhooks yet">
      <p>
        A webhook sends the events of one run, one POST an event, to an address of yours, as they happen.
        Failed attempts are repeated, and what is given up can be sent again from here.
      </p>
      <p>
        <a href={hrefOf(["webhooks"], { new: "" })}>Make a webhook</a> for a run, or{" "}
        <a href={hrefOf(["new"])}>analyze a film</a> first.
      </p>
    </EmptyNote>
  );
}
