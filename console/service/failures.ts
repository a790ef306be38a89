/** What a person reads when something failed: what happened, whether it is tried again, and what can be done.
 */

import { type HttpError, isHttpError, isNetworkError, RetryExhaustedError } from "../../client/mod.ts";

export interface FailureText {
  readonly what: string;
  readonly todo: string;
  /** Under which the service's log has the request; null where there was no answer. */
  readonly requestId: string | null;
  /** What the service calls the fault; null where there was no answer. */
  readonly code: string | null;
  /** Faults of single fields, as the service tells them. */
  readonly fields: readonly {
    readonly field: string;
    readonly message: string;
  }[];
}

const TODO: Readonly<Record<number, string>> = {
  401: "Enter a key that the service accepts.",
  403: "Ask the operator to allow this origin.",
  404: "It may have been deleted, or belong to another key.",
  409: "Look at its present state, then try again.",
  413: "Send less at once.",
  429: "Wait a moment, then try again.",
  503: "Try again in a moment; the system page tells what is busy.",
  507: "Make room: delete runs or uploads, or raise the quota.",
};

/** Whether the service did not answer at all, which the bar of every page tells of already. */
export function isAwayFailure(failure: unknown): boolean {
  return isNetworkError(errorOf(failure));
}

function errorOf(failure: unknown): unknown {
  return failure instanceof RetryExhaustedError ? failure.lastError : failure;
}

/** An answer in plain text is the end of the message of its error. */
function plainText({ message, status }: HttpError): string {
  const text = message.split(`: ${status} `).slice(1).join(`: ${status} `);
  return text === "" ? `The service answered ${status}` : text.replace(/[^.!?]$/, "$&.");
}

/** Of anything that was thrown. */
export function failureText(failure: unknown): FailureText {
  const error = errorOf(failure);
  if (isHttpError(error)) {
    const details = error.apiError?.details ?? [];
    return {
      what: error.apiError?.message ?? plainText(error),
      todo: TODO[error.status] ??
        (error.status >= 500 ? "Try again; the service's log has the reason." : ""),
      requestId: error.requestId ?? null,
      code: error.apiError?.code ?? null,
      fields: details.map(({ field, message }) => ({ field, message })),
    };
  }
  if (isNetworkError(error)) {
    return {
      what: "The service does not answer.",
      todo: "It is asked again by itself.",
      requestId: null,
      code: null,
      fields: [],
    };
  }
  const what = error instanceof Error ? error.message : String(error);
  return { what, todo: "", requestId: null, code: null, fields: [] };
}
