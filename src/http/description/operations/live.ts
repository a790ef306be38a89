/** TABLE of the operations on live sessions, by method and path. */

import * as z from "zod";
import {
  ARMED_SOURCE,
  CLOSED_LIVE_SOURCE,
  LIVE_SESSIONS,
  LIVE_SOURCE,
  NAMED_SOURCES,
  RECORDED_SEGMENTS,
  UPDATED_PROMPT,
  WATCHED_SESSION,
} from "../../../model/api/answers/live.ts";
import { count, text } from "../../../model/events/payload_shapes.ts";
import { LIVE_SOURCE_BODY, PROMPT_BODY } from "../../../model/api/live.ts";
import { ARM_BODY } from "../../../model/api/sources.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { PAGE_QUERY } from "../parameters.ts";
import { answersFile, answersJson, FILE_HEADERS, jsonContent, type Operation } from "../operation.ts";

const SDP = { "application/sdp": z.string().min(1) };
const ICE_FRAGMENT = { "application/trickle-ice-sdpfrag": z.string() };
const LIVE_VIDEO = "Fragmented MP4, from a key frame on until the session ends or its codec changes";

const RECORDED_RANGE = {
  from: { description: "A time (RFC 3339) or epoch milliseconds: what ends later", schema: text },
  to: { description: "What begins earlier", schema: text },
};

export const LIVE_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/stream/whip": {
    id: "whipOffer",
    tag: "live",
    body: SDP,
    headers: ["x-attach-config"],
    answers: {
      201: {
        description: "The answer to the offer; the session is at `location`",
        content: SDP,
        headers: ["location", "x-service-run-id", "etag", "link"],
      },
    },
    failures: [400, 409, 415, 500, 503],
    refusesInText: true,
  },
  "PATCH /v1/stream/whip/:sess": {
    id: "whipIce",
    tag: "live",
    body: ICE_FRAGMENT,
    headers: ["if-match"],
    answers: {
      204: { description: "The candidates are taken" },
      200: { description: "ICE was restarted", content: ICE_FRAGMENT, headers: ["etag"] },
    },
    failures: [400, 404, 412, 422],
    refusesInText: true,
  },
  "DELETE /v1/stream/whip/:sess": {
    id: "whipTerminate",
    tag: "live",
    answers: { 200: { description: "The session is over" } },
    failures: [404, 500],
    refusesInText: true,
  },
  "PATCH /v1/stream/whip/:sess/prompt": {
    id: "whipUpdatePrompt",
    tag: "live",
    body: jsonContent(PROMPT_BODY),
    answers: answersJson(UPDATED_PROMPT, "The session has taken the prompt"),
    failures: [400, 403, 404, 409, 415, 422, 503],
    refusesInText: true,
  },
  "POST /v1/runs/:id/live": {
    id: "openLiveSource",
    tag: "live",
    body: jsonContent(LIVE_SOURCE_BODY),
    answers: answersJson(LIVE_SOURCE, "The session that watches the source"),
    failures: [404, 409, 422, 500, 503],
  },
  "GET /v1/live": {
    id: "listLiveSessions",
    tag: "live",
    answers: answersJson(LIVE_SESSIONS, "The open sessions of the caller"),
    failures: [500],
  },
  "GET /v1/runs/:id/live": {
    id: "getLiveSession",
    tag: "live",
    query: {
      after_ms: { description: "Only signals behind this media time, milliseconds", schema: count },
    },
    answers: answersJson(WATCHED_SESSION, "The open session of the run"),
    failures: [400, 404, 422, 500],
  },
  "GET /v1/sources": {
    id: "listSources",
    tag: "live",
    answers: answersJson(NAMED_SOURCES, "The named sources that the caller may use"),
    failures: [500],
  },
  "POST /v1/sources/:name/arm": {
    id: "armSource",
    tag: "live",
    body: jsonContent(ARM_BODY),
    answers: answersJson(ARMED_SOURCE, "How the camera is armed now"),
    failures: [404, 409, 422, 500, 503],
  },
  "POST /v1/sources/:name/disarm": {
    id: "disarmSource",
    tag: "live",
    body: jsonContent(ARM_BODY),
    answers: answersJson(ARMED_SOURCE, "How the camera is armed now"),
    failures: [404, 409, 422, 500, 503],
  },
  "GET /v1/sources/:name/recordings": {
    id: "listRecordings",
    tag: "live",
    query: {
      ...RECORDED_RANGE,
      ...PAGE_QUERY,
      limit: {
        ...PAGE_QUERY.limit,
        description: `How many segments at most; ${LIMITS.list.pageDefault} without it`,
      },
    },
    answers: answersJson(RECORDED_SEGMENTS, "Segments of the recording, oldest first"),
    failures: [400, 404, 422, 500],
  },
  "GET /v1/sources/:name/recordings/export": {
    id: "exportRecording",
    tag: "live",
    query: RECORDED_RANGE,
    answers: {
      200: {
        description: "The range as one MP4, from the key frame at or before its begin on",
        content: { "video/mp4": "binary" },
        headers: ["content-disposition", "x-service-start-at-ms"],
      },
    },
    failures: [404, 422, 500],
  },
  "GET /v1/sources/:name/recordings/:segment": {
    id: "getRecording",
    tag: "live",
    headers: FILE_HEADERS,
    answers: answersFile("video/mp4"),
    failures: [404, 412, 416, 500],
  },
  "GET /v1/runs/:id/snapshot.jpg": {
    id: "getSnapshot",
    tag: "live",
    answers: {
      200: { description: "A frame that came less than a second ago", content: { "image/jpeg": "binary" } },
    },
    failures: [404, 422, 500],
  },
  "GET /v1/runs/:id/live.mp4": {
    id: "watchLiveVideo",
    tag: "live",
    answers: { 200: { description: LIVE_VIDEO, content: { "video/mp4": "binary" } } },
    failures: [404, 422, 500, 503],
  },
  "GET /v1/sources/:name/live.mp4": {
    id: "watchSourceVideo",
    tag: "live",
    answers: { 200: { description: LIVE_VIDEO, content: { "video/mp4": "binary" } } },
    failures: [404, 422, 500, 503],
  },
  "DELETE /v1/runs/:id/live": {
    id: "closeLiveSource",
    tag: "live",
    answers: answersJson(CLOSED_LIVE_SOURCE, "The session is over"),
    failures: [404, 422, 500],
  },
};
