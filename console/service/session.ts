/** Who uses the console: the key of this tab, the client that sends it, and whether the service answers. */

import { batch, computed, signal } from "@preact/signals";
import { Client, isHttpError } from "../../client/mod.ts";

/**
 * `checking` until the service has said whether it wants a key; `refused` when it wants one and has not got
 * it.
 */
export type SessionState = "checking" | "refused" | "signed_in";

/** What a person enters. Both are kept in the session storage of the tab and nowhere else. */
export interface Credentials {
  readonly apiKey: string;
  readonly tenantId: string;
}

const STORED = "console.credentials";
/** The service itself, one folder above the page: it may lie below a path of a proxy. */
export const SERVICE_URL = new URL("..", document.baseURI.replace(/#.*/, ""))
  .href.replace(/\/$/, "");
/** Pause between two questions whether the service answers again. */
const RETRY_MS = 2_000;

export const sessionState = signal<SessionState>("checking");
/** Since when the service has not answered, epoch milliseconds; null while it does. */
export const awaySinceMs = signal<number | null>(null);
/** Why the last key was refused, in the words of the service; null before the first one. */
export const refusedBecause = signal<string | null>(null);
/** Counts how often the service came back, so that whoever shows its data asks for it again. */
export const returns = signal(0);

/** What a header can carry; a text that was copied may have other characters, which nobody sees. */
const SENDABLE = /^[\x21-\x7e]*$/;
const credentials = signal<Credentials>(stored());
const forgetters: (() => void)[] = [];

export const client = computed(() => {
  const { apiKey, tenantId } = credentials.value;
  return new Client(SERVICE_URL, {
    ...(apiKey !== "" && { apiKey }),
    ...(tenantId !== "" && { tenantId }),
    maxRetries: 1,
    fetch: watchedFetch,
  });
});

/** Whether a key was entered; without one the service is open, or refuses. */
export const hasKey = computed(() => credentials.value.apiKey !== "");

/** The headers that say who calls, for what the client library has no method for. */
export function identityHeaders(): Record<string, string> {
  const { apiKey, tenantId } = credentials.value;
  return {
    ...(apiKey !== "" && { "x-api-key": apiKey }),
    ...(tenantId !== "" && { "x-tenant-id": tenantId }),
  };
}

/** Whether a key or a tenant id can be sent at all. */
export function isSendable(text: string): boolean {
  return SENDABLE.test(text);
}

/**
 * Calls `forget` when another key is entered, or none any more: the next caller must not see what was the
 * last one's.
 */
export function whenCallerChanges(forget: () => void): void {
  forgetters.push(forget);
}

/** Asks whether the stored key, or none, is enough. Goes on until the service answers. */
export function startSession(): void {
  void check();
}

export function signIn(entered: Credentials): void {
  sessionStorage.setItem(STORED, JSON.stringify(entered));
  setCredentials(entered);
  sessionState.value = "checking";
  void check();
}

/** Forgets the key. */
export function signOut(): void {
  sessionStorage.removeItem(STORED);
  batch(() => {
    setCredentials({ apiKey: "", tenantId: "" });
    refusedBecause.value = null;
    sessionState.value = "refused";
  });
}

function setCredentials(next: Credentials): void {
  const { apiKey, tenantId } = credentials.peek();
  const isOther = next.apiKey !== apiKey || next.tenantId !== tenantId;
  credentials.value = next;
  if (isOther) { for (const forget of forgetters) forget(); }
}

async function check(): Promise<void> {
  const asked = client.value;
  try {
    await asked.listModels({ maxRetries: 0, timeoutMs: 10_000 });
  } catch (error) {
    if (client.value !== asked) return;
    if (isHttpError(error) && error.status === 401) return; // watchedFetch has noted it
    if (isHttpError(error) && error.status === 422) { // a tenant id that can be none
      batch(() => {
        refusedBecause.value = error.apiError?.message ?? "The service refused the tenant id";
        sessionState.value = "refused";
      });
      return;
    }
    setTimeout(check, RETRY_MS);
    return;
  }
  if (client.value !== asked) return;
  batch(() => {
    sessionState.value = "signed_in";
    refusedBecause.value = null;
  });
}

/** Notes of every request whether the service answers, and whether it takes the key. */
async function watchedFetch(
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  const asked = credentials.value;
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch (error) {
    if (!init?.signal?.aborted) noteAway();
    throw error;
  }
  noteAnswer();
  if (response.status === 401 && credentials.value === asked && !isOfMetrics(response)) {
    await noteRefusal(response.clone(), asked);
  }
  return response;
}

/** Metrics may need a key where nothing else does: without one, the rest of the console goes on. */
function isOfMetrics({ url }: Response): boolean {
  return url === `${SERVICE_URL}/v1/metrics`;
}

async function noteRefusal(
  response: Response,
  { apiKey }: Credentials,
): Promise<void> {
  const { error } = await response.json().catch(() => ({})) as {
    error?: { message?: string };
  };
  batch(() => {
    refusedBecause.value = apiKey === "" ? null : error?.message ?? "The service refused the key";
    sessionState.value = "refused";
  });
}

function noteAway(): void {
  if (awaySinceMs.value !== null) return;
  awaySinceMs.value = Date.now();
  const timer = setInterval(() => {
    if (awaySinceMs.value === null) return clearInterval(timer);
    // Any answer will do: `noteAnswer` sees it.
    client.value.health({ maxRetries: 0, timeoutMs: 5_000 }).catch(() => {});
  }, RETRY_MS);
}

function noteAnswer(): void {
  if (awaySinceMs.value === null) return;
  batch(() => {
    awaySinceMs.value = null;
    returns.value += 1;
  });
}

function stored(): Credentials {
  try {
    const { apiKey, tenantId } = JSON.parse(
      sessionStorage.getItem(STORED) ?? "{}",
    );
    const kept = { apiKey: String(apiKey ?? ""), tenantId: String(tenantId ?? "") };
    if (isSendable(kept.apiKey) && isSendable(kept.tenantId)) return kept;
  } catch {
    // it was written by something else
  }
  return { apiKey: "", tenantId: "" };
}
