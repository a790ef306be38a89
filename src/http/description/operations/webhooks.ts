/** TABLE of the operations on webhooks and feedback, by method and path. */

import { FEEDBACK_LIST, FEEDBACK_SUBMITTED } from "../../../model/api/answers/system.ts";
import {
  ALL_WEBHOOKS,
  CREATED_WEBHOOK,
  DELETED_WEBHOOK,
  DELIVERIES,
  REDELIVERY,
  SENT_DELIVERY,
  WEBHOOKS,
} from "../../../model/api/answers/webhooks.ts";
import { FEEDBACK_BODY } from "../../../model/api/feedback.ts";
import { REDELIVER_BODY, REGISTER_WEBHOOK_BODY } from "../../../model/api/webhooks.ts";
import { PAGE_QUERY } from "../parameters.ts";
import { answersJson, jsonContent, type Operation } from "../operation.ts";

export const WEBHOOK_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/runs/:id/webhooks": {
    id: "createWebhook",
    tag: "webhooks",
    body: jsonContent(REGISTER_WEBHOOK_BODY),
    answers: {
      201: {
        description: "The webhook with its secret, which is told only here",
        content: jsonContent(CREATED_WEBHOOK),
      },
    },
    failures: [404, 422, 500, 503],
  },
  "GET /v1/runs/:id/webhooks": {
    id: "listWebhooks",
    tag: "webhooks",
    query: PAGE_QUERY,
    answers: answersJson(WEBHOOKS, "The webhooks of the run with their delivery state"),
    failures: [400, 404, 422, 500],
  },
  "GET /v1/webhooks": {
    id: "listAllWebhooks",
    tag: "webhooks",
    query: PAGE_QUERY,
    answers: answersJson(ALL_WEBHOOKS, "The webhooks of all runs of the caller, the newest first"),
    failures: [400, 422, 500],
  },
  "DELETE /v1/runs/:id/webhooks/:webhook_id": {
    id: "deleteWebhook",
    tag: "webhooks",
    answers: answersJson(DELETED_WEBHOOK, "The webhook is removed"),
    failures: [404, 409, 422, 500],
  },
  "POST /v1/runs/:id/webhooks/:webhook_id/redeliver": {
    id: "redeliverWebhook",
    tag: "webhooks",
    body: jsonContent(REDELIVER_BODY),
    answers: {
      202: { description: "The events that are sent again", content: jsonContent(REDELIVERY) },
    },
    failures: [404, 409, 422, 500, 503],
  },
  "GET /v1/runs/:id/webhooks/:webhook_id/deliveries": {
    id: "listDeliveries",
    tag: "webhooks",
    answers: answersJson(DELIVERIES, "The last deliveries with their attempts, the newest first"),
    failures: [404, 422, 500],
  },
  "GET /v1/runs/:id/webhooks/:webhook_id/deliveries/:seq": {
    id: "getDelivery",
    tag: "webhooks",
    answers: answersJson(SENT_DELIVERY, "The body as it is sent, and the headers of the last attempt"),
    failures: [400, 404, 422, 500, 503],
  },
  "POST /v1/runs/:id/feedback": {
    id: "submitFeedback",
    tag: "feedback",
    body: jsonContent(FEEDBACK_BODY),
    answers: answersJson(FEEDBACK_SUBMITTED, "The rating is committed"),
    failures: [404, 422, 500],
  },
  "GET /v1/feedback": {
    id: "listFeedback",
    tag: "feedback",
    query: PAGE_QUERY,
    answers: answersJson(FEEDBACK_LIST, "The feedback on the caller's runs"),
    failures: [400, 422, 500, 503],
  },
};
