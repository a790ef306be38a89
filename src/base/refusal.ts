/** TABLE of refusals: every expected "no", its HTTP status and code, and the words that make one. */

/** Interface part 7 and decision D16. Two rows may share a wire code: the status tells them apart. */
export const REFUSALS = {
  preflight_without_origin: { status: 400, code: "validation_error" },
  bad_request: { status: 400, code: "bad_request" },
  unauthorized: { status: 401, code: "unauthorized" },
  cors_forbidden: { status: 403, code: "cors_forbidden" },
  not_found: { status: 404, code: "not_found" },
  conflict: { status: 409, code: "conflict" },
  validation_error: { status: 422, code: "validation_error" },
  rate_limited: { status: 429, code: "rate_limited" },
  internal_error: { status: 500, code: "internal_error" },
  metrics_unavailable: { status: 503, code: "metrics_unavailable" },
  webhooks_unavailable: { status: 503, code: "webhooks_unavailable" },
  provider_saturated: { status: 503, code: "provider_saturated" },
  deadline_missed: { status: 503, code: "deadline_missed" },
  inference_provider_unavailable: { status: 503, code: "inference_provider_unavailable" },
  audio_sidecar_unavailable: { status: 503, code: "audio_sidecar_unavailable" },
  policy_acknowledgement_timeout: { status: 503, code: "policy_acknowledgement_timeout" },
  storage_unavailable: { status: 503, code: "storage_unavailable" },
} as const satisfies Record<string, { status: number; code: string }>;

export type RefusalKind = keyof typeof REFUSALS;

/** One entry of `error.details`: the field that is wrong and the rule that it breaks. */
export interface FieldFault {
  field: string;
  message: string;
}

/** An expected "no". Everything else that is thrown is a bug and answers 500. */
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

export const refuse = {
  /** 422 on one field: `message` says the rule and what was got. */
  invalid: (field: string, message: string) =>
    new Refusal("validation_error", `Invalid ${field}: ${message}`, [{ field, message }]),
  /** 422 on several fields at once. */
  invalidFields: (details: readonly FieldFault[]) =>
    new Refusal(
      "validation_error",
      `Invalid request: ${details.map((fault) => `${fault.field} ${fault.message}`).join("; ")}`,
      details,
    ),
  /** 404: missing and foreign alike, so that nobody learns what exists. */
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
