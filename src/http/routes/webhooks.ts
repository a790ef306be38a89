/** Routes of a run's webhooks. */

import { REDELIVER_BODY, REGISTER_WEBHOOK_BODY } from "../../model/api/webhooks.ts";
import { readJson } from "../body.ts";
import { parameter, type Route, type RouteCall } from "../call.ts";
import { pageQuery } from "../formats/list_text.ts";
import { json, Rejection } from "../reply.ts";

export const WEBHOOK_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/webhooks",
    summary: "Registers a webhook for a run.",
    once: {
      kinds: ["webhook_registered"],
      secret: {
        field: "signing_secret",
        derive: (call, answer) =>
          call.webhooks.signingSecret(parameter(call, "id"), String(answer.webhook_id)),
      },
    },
    handle: async (call) => {
      const body = await readJson(call, REGISTER_WEBHOOK_BODY);
      const registered = await call.webhooks.register(call.caller, parameter(call, "id"), body);
      return json({ request_id: call.caller.requestId, ...registered }, 201);
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/webhooks",
    summary: "Lists the webhooks of a run with their delivery state.",
    handle: (call) => {
      const runId = parameter(call, "id");
      const listed = call.webhooks.list(call.caller, runId, pageQuery(call));
      return json({ request_id: call.caller.requestId, run_id: runId, ...listed });
    },
  },
  {
    method: "GET",
    path: "/v1/webhooks",
    summary: "Lists the webhooks of all runs of the caller with their delivery state.",
    handle: (call) => {
      const listed = call.webhooks.listAll(call.caller, pageQuery(call));
      return json({ request_id: call.caller.requestId, ...listed });
    },
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id/webhooks/:webhook_id",
    summary: "Removes a webhook.",
    handle: (call) => {
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      call.webhooks.delete(call.caller, runId, webhookId);
      return json({ request_id: call.caller.requestId, run_id: runId, webhook_id: webhookId, deleted: true });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/webhooks/:webhook_id/redeliver",
    summary: "Sends a range of events to a webhook again.",
    once: { kinds: [] },
    handle: async (call) => {
      const body = await readJson(call, REDELIVER_BODY);
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      const scheduled = await call.webhooks.redeliver(call.caller, runId, webhookId, body);
      return json({ request_id: call.caller.requestId, ...scheduled }, 202);
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/webhooks/:webhook_id/deliveries",
    summary: "Lists the last deliveries of a webhook.",
    handle: (call) => {
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      const deliveries = call.webhooks.deliveries(call.caller, runId, webhookId);
      return json({ request_id: call.caller.requestId, run_id: runId, webhook_id: webhookId, deliveries });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/webhooks/:webhook_id/deliveries/:seq",
    summary: "Reads what was sent to a webhook for an event.",
    handle: async (call) => {
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      const sent = await call.webhooks.delivery(call.caller, runId, webhookId, sequence(call));
      return json({ request_id: call.caller.requestId, run_id: runId, webhook_id: webhookId, ...sent });
    },
  },
];

function sequence(call: RouteCall): number {
  const text = parameter(call, "seq");
  if (!/^\d{1,15}$/.test(text)) throw new Rejection(400, "seq must be a whole number");
  return Number(text);
}
