/** The errors of the client: one base class, and one class for each way in which a call can fail. */

/** One fault that the service found: the field of the request, and the rule that it breaks. */
export interface ErrorDetail {
  readonly field: string;
  readonly message: string;
}

/** The `error` object of a JSON answer of the service. */
export interface ApiError {
  readonly code: string;
  readonly message: string;
  readonly request_id: string;
  readonly details: readonly ErrorDetail[];
}

/**
 * What every error of the client is. An abort is not among them: it rejects with the reason of the signal.
 */
export class ServiceError extends Error {
  override name = "ServiceError";
  /** Says what went wrong in one word, for programs: `not_found`, `network_error`. */
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** The service answered with a status other than success. */
export class HttpError extends ServiceError {
  override name = "HttpError";
  readonly status: number;
  /** The error object of the answer; null where the answer was plain text. */
  readonly apiError: ApiError | null;
  /** The id under which the service's log knows the request; null where the answer has none. */
  readonly requestId: string | null;
  /** How long the service asks to wait before a retry; null where it does not say. */
  readonly retryAfterMs: number | null;

  /** `what` is the request as a person names it: `POST /v1/runs`. */
  constructor(
    what: string,
    answer: { status: number; apiError: ApiError | null; text: string; retryAfterMs?: number | null },
  ) {
    const { status, apiError, text } = answer;
    super(apiError?.code ?? "http_error", `${what}: ${status} ${apiError ? told(apiError) : plain(text)}`);
    this.status = status;
    this.apiError = apiError;
    this.requestId = apiError?.request_id ?? null;
    this.retryAfterMs = answer.retryAfterMs ?? null;
  }

  get isClientError(): boolean {
    return this.status >= 400 && this.status < 500;
  }

  get isServerError(): boolean {
    return this.status >= 500;
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }

  get isValidationError(): boolean {
    return this.status === 422;
  }

  get isConflict(): boolean {
    return this.status === 409;
  }
}

/** No answer: the service cannot be reached, the connection broke, or the time was over. */
export class NetworkError extends ServiceError {
  override name = "NetworkError";

  constructor(message: string, options?: { cause?: unknown }) {
    super("network_error", message, options);
  }
}

/** Every attempt at a request that is safe to repeat has failed. */
export class RetryExhaustedError extends ServiceError {
  override name = "RetryExhaustedError";
  readonly attempts: number;
  /** What the last attempt ended with. */
  readonly lastError: ServiceError;

  constructor(attempts: number, lastError: ServiceError) {
    const count = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
    super("retry_exhausted", `${lastError.message} (after ${count})`, { cause: lastError });
    this.attempts = attempts;
    this.lastError = lastError;
  }
}

/**
 * A file was not uploaded; `cause` is the HttpError, the NetworkError, or what the file's own stream threw.
 */
export class UploadError extends ServiceError {
  override name = "UploadError";

  constructor(message: string, options?: { cause?: unknown }) {
    super("upload_error", message, options);
  }
}

/** The answer is not what the service sends: no JSON, or a broken event stream. */
export class ParseError extends ServiceError {
  override name = "ParseError";
  /** The text that could not be read, at most its first 10,000 characters. */
  readonly raw: string;

  constructor(message: string, raw: string, options?: { cause?: unknown }) {
    super("parse_error", message, options);
    this.raw = raw.slice(0, 10_000);
  }
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof ServiceError;
}

export function isHttpError(error: unknown): error is HttpError {
  return error instanceof HttpError;
}

export function isNetworkError(error: unknown): error is NetworkError {
  return error instanceof NetworkError;
}

/** The error object of an answer, or null where its text is none. */
export function readApiError(text: string): ApiError | null {
  let error: Partial<ApiError> | undefined;
  try {
    error = (JSON.parse(text) as { error?: Partial<ApiError> } | null)?.error;
  } catch {
    return null;
  }
  if (typeof error?.code !== "string") return null;
  const { code, message = "", request_id = "", details = [] } = error;
  return { code, message, request_id, details };
}

function told({ code, message, request_id, details }: ApiError): string {
  const faults = details.map((detail) => `${detail.field} ${detail.message}`).join("; ");
  return `${code}: ${faults || message}${request_id && ` (request ${request_id})`}`;
}

function plain(text: string): string {
  return text.trim().slice(0, 500) || "without a text";
}
