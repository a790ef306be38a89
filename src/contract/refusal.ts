/** TABLE of refusals: every expected failure of a request, its HTTP status and code, and functions that make
 * one.
 */

/**
 * Every refusal, by name: status and code. See docs/api.md#errors. Two rows may have the same code on the
 * wire; their statuses differ.
 */
export const REFUSALS = {
  preflight_without_origin: {
    status: 400,
    code: "validation_error",
    when: "A CORS preflight has no `Origin` header.",
  },
  bad_request: {
    status: 400,
    code: "bad_request",
    when:
      "The file name in the path is no bare name of a video file, a number in the URL is none, or the body is malformed.",
  },
  unauthorized: {
    status: 401,
    code: "unauthorized",
    when: "The API key is missing or not accepted, or a required `x-tenant-id` header is missing.",
  },
  cors_forbidden: {
    status: 403,
    code: "cors_forbidden",
    when:
      "A CORS preflight, or in open mode any request of a browser, comes from an origin that is not listed.",
  },
  not_found: {
    status: 404,
    code: "not_found",
    when: "The run, file, blob, webhook, revision, schema or route does not exist, or is not the caller's.",
  },
  method_not_allowed: {
    status: 405,
    code: "method_not_allowed",
    when: "The route does not take the method; `Allow` names those that it takes.",
  },
  request_timeout: {
    status: 408,
    code: "request_timeout",
    when: "The body did not arrive in time.",
  },
  conflict: {
    status: 409,
    code: "conflict",
    when:
      "The request contradicts the present state: a run has ended, a limit is reached, a revision is not the newest, an idempotency key is in use.",
  },
  cursor_expired: {
    status: 410,
    code: "cursor_expired",
    when: "Retention removed the event at the cursor; `first_seq` is the first one that is left of the run.",
  },
  media_removed: {
    status: 410,
    code: "media_removed",
    when: "Retention removed the picture, clip or sound; the event that names it stays.",
  },
  payload_too_large: {
    status: 413,
    code: "payload_too_large",
    when: "The body is too long.",
  },
  uri_too_long: {
    status: 414,
    code: "uri_too_long",
    when: "The URL is too long.",
  },
  unsupported_media_type: {
    status: 415,
    code: "unsupported_media_type",
    when: "The content type is not what the route takes.",
  },
  misdirected_request: {
    status: 421,
    code: "misdirected_request",
    when: "In open mode, the host of the request is no loopback name, no address and not listed.",
  },
  validation_error: {
    status: 422,
    code: "validation_error",
    when: "A field breaks a rule; `details` names each one.",
  },
  rate_limited: {
    status: 429,
    code: "rate_limited",
    when:
      "More requests a second, event streams at once, idempotency keys or bytes of bodies at once than the limit; `Retry-After` says when to come back.",
  },
  internal_error: {
    status: 500,
    code: "internal_error",
    when: "A fault of the service or of a model provider, or no model backend is configured.",
  },
  metrics_unavailable: {
    status: 503,
    code: "metrics_unavailable",
    when: "Metrics need an API key and none is configured.",
  },
  webhooks_unavailable: {
    status: 503,
    code: "webhooks_unavailable",
    when: "Webhooks are off, their delivery log takes no records, or the limit of webhooks is reached.",
  },
  provider_saturated: {
    status: 503,
    code: "provider_saturated",
    when:
      "The service is full: too many model calls, decodes, fetches, reads of long decodes, long answers or live sessions are under way, too many watch one session, decodes have all the memory that they may take, or the machine is so busy that a file could not be looked into or decoded in time; `Retry-After` says when to come back, where that is known.",
  },
  deadline_missed: {
    status: 503,
    code: "deadline_missed",
    when: "A model call could not end within its deadline.",
  },
  inference_provider_unavailable: {
    status: 503,
    code: "inference_provider_unavailable",
    when: "The request needs a model backend and none is configured.",
  },
  audio_sidecar_unavailable: {
    status: 503,
    code: "audio_sidecar_unavailable",
    when: "The request needs the audio sidecar and none is configured.",
  },
  policy_acknowledgement_timeout: {
    status: 503,
    code: "policy_acknowledgement_timeout",
    when: "The live session did not take the policy revision over in time.",
  },
  decoder_unusable: {
    status: 503,
    code: "decoder_unusable",
    when:
      "The service's ffmpeg or ffprobe cannot do what the request needs, whatever the file is; the message has its last words.",
  },
  storage_unavailable: {
    status: 503,
    code: "storage_unavailable",
    when: "The disk refuses a write, too many uploads wait, or the log has as many runs as it takes.",
  },
  storage_quota: {
    status: 507,
    code: "storage_quota",
    when:
      "The caller would store more than SERVICE_STORAGE_QUOTA_BYTES, or its runs on hold would have more than they may. A retry fails until the operator makes room, or a hold ends.",
  },
} as const satisfies Record<string, { status: number; code: string; when: string }>;

export type RefusalKind = keyof typeof REFUSALS;

/** One entry of `error.details`: the field that is wrong and the rule that it breaks. */
export interface FieldFault {
  field: string;
  message: string;
}

/** An expected failure. Every other exception is a bug and answers 500. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly code: string;

  constructor(readonly kind: RefusalKind, message: string, readonly details: readonly FieldFault[] = []) {
    super(message);
    this.status = REFUSALS[kind].status;
    this.code = REFUSALS[kind].code;
  }
}

/** A refusal that ends by itself, with the number of whole seconds after which a request can succeed. */
export class RefusalForNow extends Refusal {
  constructor(
    readonly retryAfterSeconds: number,
    kind: RefusalKind,
    message: string,
    details?: readonly FieldFault[],
  ) {
    super(kind, message, details);
  }
}

/** The refusal of a cursor whose event was removed. */
export class CursorExpired extends Refusal {
  constructor(readonly firstSeq: number, field: "from_seq" | "cursor" = "from_seq") {
    super("cursor_expired", `Cannot read from there on: the first event that is left is ${firstSeq}`, [
      { field, message: `must be at least ${firstSeq}` },
    ]);
  }
}

/** The refusal of a picture, clip or sound that was removed, unlike the event that names it. */
export class MediaRemoved extends Refusal {
  constructor(media: string, throughSeq: number) {
    super("media_removed", `Retention removed each ${media} that events of the run up to ${throughSeq} name`);
  }
}

export const refuse = {
  /** Makes a 422 on one field; `message` names the rule and the given value. */
  invalid: (field: string, message: string) =>
    new Refusal("validation_error", `Invalid ${field}: ${message}`, [{ field, message }]),
  /** Makes a 422 on several fields at once. */
  invalidFields: (details: readonly FieldFault[]) =>
    new Refusal(
      "validation_error",
      `Invalid request: ${details.map((fault) => `${fault.field} ${fault.message}`).join("; ")}`,
      details,
    ),
  /** Makes a 404, for missing and foreign things alike, so that a caller does not learn what exists. */
  notFound: (what: string, field?: string) =>
    new Refusal("not_found", `${what} not found`, field ? [{ field, message: "not found" }] : []),
  runIsTerminal: (status: string, action: string) =>
    new Refusal("conflict", `Cannot ${action} a run that is ${status}`, [
      { field: "run_id", message: `run is ${status}` },
    ]),
  conflict: (field: string, message: string) => new Refusal("conflict", message, [{ field, message }]),
  badRequest: (field: string, message: string) => new Refusal("bad_request", message, [{ field, message }]),
  because: (kind: RefusalKind, message: string) => new Refusal(kind, message),
};
