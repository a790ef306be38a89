/** Routes of a run's webhooks. */

import {
  ALL_WEBHOOKS,
  CREATED_WEBHOOK,
  DELETED_WEBHOOK,
  DELIVERIES,
  REDELIVER_BODY,
  REDELIVERY,
  REGISTER_WEBHOOK_BODY,
  SENT_DELIVERY,
  WEBHOOKS,
} from "../../model/api/webhooks.ts";
import { json, Rejection } from "../answers/reply.ts";
import { pageQuery } from "../formats/list_text.ts";
import { readJson } from "../requests/body.ts";
import { parameter, type RouteCall } from "../route/call.ts";
import { answersJson, jsonContent, PAGE_QUERY, type Route } from "../route/route.ts";

export const WEBHOOK_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/webhooks",
    id: "createWebhook",
    tag: "webhooks",
    summary: "Registers a webhook for a run.",
    body: jsonContent(REGISTER_WEBHOOK_BODY),
    answers: {
      201: {
        description: "The webhook with its secret, which is told only here",
        content: jsonContent(CREATED_WEBHOOK),
      },
    },
    failures: [404, 422, 500, 503],
    once: {
      kinds: ["webhook_registered"],
      secret: {
        field: "signing_secret",
        derive: (call, answer) =>
          call.use.webhooks.signingSecret(parameter(call, "id"), String(answer.webhook_id)),
      },
    },
    handle: async (call) => {
      const body = await readJson(call, REGISTER_WEBHOOK_BODY);
      const registered = await call.use.webhooks.register(call.caller, parameter(call, "id"), body);
      return json({ request_id: call.caller.requestId, ...registered }, 201);
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/webhooks",
    id: "listWebhooks",
    tag: "webhooks",
    summary: "Lists the webhooks of a run with their delivery state.",
    query: PAGE_QUERY,
    answers: answersJson(WEBHOOKS, "The webhooks of the run with their delivery state"),
    failures: [400, 404, 422, 500],
    handle: (call) => {
      const runId = parameter(call, "id");
      const listed = call.use.webhooks.list(call.caller, runId, pageQuery(call));
      return json({ request_id: call.caller.requestId, run_id: runId, ...listed });
    },
  },
  {
    method: "GET",
    path: "/v1/webhooks",
    id: "listAllWebhooks",
    tag: "webhooks",
    summary: "Lists the webhooks of all runs of the caller with their delivery state.",
    query: PAGE_QUERY,
    answers: answersJson(ALL_WEBHOOKS, "The webhooks of all runs of the caller, the newest first"),
    failures: [400, 422, 500],
    handle: (call) => {
      const listed = call.use.webhooks.listAll(call.caller, pageQuery(call));
      return json({ request_id: call.caller.requestId, ...listed });
    },
  },
  {
    method: "DELETE",
    path: "/v1/runs/:id/webhooks/:webhook_id",
    id: "deleteWebhook",
    tag: "webhooks",
    summary: "Removes a webhook.",
    answers: answersJson(DELETED_WEBHOOK, "The webhook is removed"),
    failures: [404, 409, 422, 500],
    handle: (call) => {
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      call.use.webhooks.delete(call.caller, runId, webhookId);
      return json({ request_id: call.caller.requestId, run_id: runId, webhook_id: webhookId, deleted: true });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/webhooks/:webhook_id/redeliver",
    id: "redeliverWebhook",
    tag: "webhooks",
    summary: "Sends a range of events to a webhook again.",
    body: jsonContent(REDELIVER_BODY),
    answers: {
      202: { description: "The events that are sent again", content: jsonContent(REDELIVERY) },
    },
    failures: [404, 409, 422, 500, 503],
    once: { kinds: [] },
    handle: async (call) => {
      const body = await readJson(call, REDELIVER_BODY);
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      const scheduled = await call.use.webhooks.redeliver(call.caller, runId, webhookId, body);
      return json({ request_id: call.caller.requestId, ...scheduled }, 202);
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/webhooks/:webhook_id/deliveries",
    id: "listDeliveries",
    tag: "webhooks",
    summary: "Lists the last deliveries of a webhook.",
    answers: answersJson(DELIVERIES, "The last deliveries with their attempts, the newest first"),
    failures: [404, 422, 500],
    handle: (call) => {
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      const deliveries = call.use.webhooks.deliveries(call.caller, runId, webhookId);
      return json({ request_id: call.caller.requestId, run_id: runId, webhook_id: webhookId, deliveries });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/webhooks/:webhook_id/deliveries/:seq",
    id: "getDelivery",
    tag: "webhooks",
    summary: "Reads what was sent to a webhook for an event.",
    answers: answersJson(SENT_DELIVERY, "The body as it is sent, and the headers of the last attempt"),
    failures: [400, 404, 422, 500, 503],
    handle: async (call) => {
      const [runId, webhookId] = [parameter(call, "id"), parameter(call, "webhook_id")];
      const sent = await call.use.webhooks.delivery(call.caller, runId, webhookId, sequence(call));
      return json({ request_id: call.caller.requestId, run_id: runId, webhook_id: webhookId, ...sent });
    },
  },
];

function sequence(call: RouteCall): number {
  const text = parameter(call, "seq");
  if (!/^\d{1,15}$/.test(text)) throw new Rejection(400, "seq must be a whole number");
  return Number(text);
}
