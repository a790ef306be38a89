/** What a page shows in place of its data: while it comes, when it failed, when there is none. */

import type { ComponentChildren } from "preact";
import type { Loaded } from "../service/loaded.ts";
import { failureText, isAwayFailure } from "../service/failures.ts";

/** Why something failed, what can be done, and the id of the request. */
export function FailureNote(
  { failure, onRetry }: { failure: unknown; onRetry?: () => void },
) {
  const { what, todo, requestId, fields } = failureText(failure);
  return (
    <div class="note fault" role="alert">
      <p>
        <strong>{what}</strong> {todo}
      </p>
      {fields.length > 0 && (
        <ul>
          {fields.map(({ field, message }) => (
            <li key={field}>
              <code>{field}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {requestId !== null && (
        <details>
          <summary>Request</summary>
          <code>{requestId}</code>
        </details>
      )}
      {onRetry && <button type="button" onClick={onRetry}>Try again</button>}
    </div>
  );
}

/** There is nothing yet: says what to do. */
export function EmptyNote(
  { title, children }: { title: string; children?: ComponentChildren },
) {
  return (
    <div class="note empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** The value where it is there, also while it is asked for again; else what is the matter. */
export function Shown<T>(
  { of, whileAway, children }: {
    of: Loaded<T>;
    /**
     * Said in place of the failure while the service does not answer, on a page that tells of that elsewhere.
     */
    whileAway?: string;
    children: (value: T) => ComponentChildren;
  },
) {
  if (whileAway !== undefined && isAwayFailure(of.failure)) {
    return <>{of.value === undefined ? <p class="dim">{whileAway}</p> : children(of.value)}</>;
  }
  if (of.value !== undefined) {
    return (
      <>
        {of.failure !== undefined && <FailureNote failure={of.failure} onRetry={of.reload} />}
        {children(of.value)}
      </>
    );
  }
  if (of.failure !== undefined) {
    return <FailureNote failure={of.failure} onRetry={of.reload} />;
  }
  return of.isSlow ? <Waiting /> : null;
}

/** Three grey lines in the place of what is to come. */
export function Waiting() {
  return (
    <div class="waiting" role="status" aria-label="Loading">
      <span />
      <span />
      <span />
    </div>
  );
}
