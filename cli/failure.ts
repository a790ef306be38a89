/** What is said and which exit code follows when a command fails. */

import type { HttpError, RetryExhaustedError } from "../client/mod.ts";
import { EXIT_CODES, type ExitName, exitOfStatus } from "./exit_codes.ts";
import { visible } from "./output/visible.ts";

/** A failure with its own message; `hint` says what can be done. */
export class CliError extends Error {
  readonly exit: ExitName;
  readonly hint: string | undefined;

  constructor(exit: ExitName, message: string, hint?: string) {
    super(message);
    this.name = "CliError";
    this.exit = exit;
    this.hint = hint;
  }
}

/** An error answer of the server. */
export interface ErrorAnswer {
  readonly status: number;
  readonly code?: string | undefined;
  readonly message: string;
  readonly requestId?: string | undefined;
}

/** A fault that names every field of a large request would fill the screen. */
const MESSAGE_CHARACTERS = 2_000;

const HINTS: Readonly<Record<string, string>> = {
  unauthorized: "give a key with --api-key-file, SERVICE_API_KEY or `config set api_key -`",
  rate_limited: "wait a moment and try again",
  provider_saturated: "the server is busy; try again in a moment",
  storage_quota: "remove runs or uploads, or ask the operator for more room",
  inference_provider_unavailable: "the server has no model backend; `doctor` and `models` say more",
  audio_sidecar_unavailable: "the server has no audio sidecar; leave --local-audio out",
  webhooks_unavailable: "the operator has to set SERVICE_WEBHOOK_SECRET, or no more webhooks are allowed",
};

/** A failure made of the server's answer. */
export function answerError({ status, code, message, requestId }: ErrorAnswer): CliError {
  const facts = [code, `HTTP ${status}`, requestId].filter(Boolean).join(", ");
  const hint = /limit of active runs/.test(message)
    ? "`runs stop RUN` ends one; `runs list --status processing` and `--status pending` list those that count"
    : HINTS[code ?? ""];
  return new CliError(exitOfStatus(status), `${message || "the server refused"} (${facts})`, hint);
}

/** The server cannot be reached, or not in time. */
export function unreachable(url: string, cause: unknown): CliError {
  const isLate = cause instanceof Error &&
    (cause.name === "TimeoutError" || / no answer within \d+ ms$/.test(cause.message));
  const why = isLate ? "it did not answer in time" : rootMessage(cause);
  if (/redirect/i.test(why)) {
    return new CliError(
      "unreachable",
      `${url} answers with a redirect, which is not followed as the API key would go with it`,
      "give the address that it leads to with --url or SERVICE_API_URL",
    );
  }
  return new CliError(
    "unreachable",
    `cannot reach ${url}: ${why}`,
    isLate ? undefined : "is the server running there? --url or SERVICE_API_URL names another one",
  );
}

/**
 * Any thrown value as a failure. The client's errors are known by their names, so that a usage error need not
 * load them.
 */
export function failureOf(error: unknown, url: string): CliError {
  if (error instanceof CliError) return error;
  if (!(error instanceof Error)) return new CliError("failed", String(error));
  switch (error.name) {
    case "RetryExhaustedError":
      return failureOf((error as RetryExhaustedError).lastError, url);
    case "UploadError":
      return error.cause instanceof Error && isOfClient(error.cause)
        ? failureOf(error.cause, url)
        : new CliError("failed", error.message);
    case "NetworkError":
      return unreachable(url, error);
    case "HttpError": {
      const { status, apiError, requestId, message } = error as HttpError;
      const details = apiError?.details.map((detail) => `${detail.field}: ${detail.message}`).join("; ");
      // The message begins with the request: `GET /v1/runs/run-…: 404 `.
      const plain = message.replace(/^[A-Z]+ \S+: \d+ /, "");
      return answerError({
        status,
        code: apiError?.code,
        message: details || apiError?.message || plain,
        requestId: requestId || undefined,
      });
    }
    case "ParseError":
      return new CliError("server", error.message, "--url has to name the address of the service itself");
    default:
      return new CliError("failed", rootMessage(error));
  }
}

function isOfClient({ name }: Error): boolean {
  return ["HttpError", "NetworkError", "ParseError", "RetryExhaustedError"].includes(name);
}

/** What a user has to know of a failure. */
export interface Told {
  readonly code: number;
  /** One or two lines without control characters, and without the API key. */
  readonly lines: readonly string[];
}

export function tell(failure: CliError, apiKey: string | undefined): Told {
  const clean = (text: string) => {
    const line = text.replaceAll(/\s*\n\s*/g, " ").slice(0, MESSAGE_CHARACTERS);
    return visible(apiKey ? line.replaceAll(apiKey, "***") : line);
  };
  return {
    code: EXIT_CODES[failure.exit].code,
    lines: [
      `error: ${clean(failure.message)}`,
      ...(failure.hint ? [`hint: ${clean(failure.hint)}`] : []),
    ],
  };
}

/** The message of the innermost cause, which names the system's own reason. */
function rootMessage(error: unknown): string {
  let at: unknown = error;
  for (let depth = 0; depth < 8 && at instanceof Error && at.cause !== undefined; depth++) at = at.cause;
  const message = at instanceof Error ? at.message || at.name : String(at);
  return /ECONNREFUSED|onnection refused/.test(message)
    ? "connection refused"
    : /ENOTFOUND|failed to lookup/.test(message)
    ? "no address is known for this name"
    : message;
}
