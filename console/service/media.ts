/** Addresses of pictures, films and sound for elements such as `<video>`, which cannot send a key themselves.
 */

// With a key, the service worker of the console adds it, so that a browser can seek in a film of any size.
// Where there is no service worker (plain HTTP on another machine), a file is fetched as a whole.

import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { client, hasKey, identityHeaders, SERVICE_URL, whenCallerChanges } from "./session.ts";

/** How long a page waits for its service worker before it fetches files as a whole. */
const WORKER_WAIT_MS = 3_000;

let workerReady: Promise<boolean> | undefined;

// Before the first picture is shown.
effect(() => {
  if (hasKey.value) workerReady ??= startWorker();
});
// A service worker that holds the last key asks for the new one.
whenCallerChanges(forgetHeaders);
forgetHeaders();

/**
 * The address of a file of the service, such as `/v1/files/clip.mp4`; undefined until it is known, and for
 * null. `failure` is why the file could not be fetched, where it is fetched as a whole.
 */
export function useMedia(
  path: string | null,
): { readonly url?: string; readonly failure?: unknown } {
  const [state, setState] = useState<{ url?: string; failure?: unknown }>({});
  useEffect(() => {
    setState({});
    if (path === null) return;
    const ending = new AbortController();
    let made: string | undefined;
    (async () => {
      if (!hasKey.peek() || await (workerReady ??= startWorker())) {
        if (!ending.signal.aborted) setState({ url: SERVICE_URL + path });
        return;
      }
      const blob = await fetchedBlob(path, ending.signal);
      if (ending.signal.aborted) return;
      made = URL.createObjectURL(blob);
      setState({ url: made });
    })().catch((failure) => ending.signal.aborted || setState({ failure }));
    return () => {
      ending.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [path]);
  return state;
}

/**
 * Why an element could not play a file that it was given: it is not there, or the browser does not know its
 * format.
 */
export async function filmFault(
  path: string,
): Promise<"missing" | "unplayable"> {
  const asked = {
    method: "HEAD",
    headers: identityHeaders(),
    redirect: "error",
  } as const;
  const response = await fetch(SERVICE_URL + path, asked).catch(() => null);
  return response?.ok ? "unplayable" : "missing";
}

/** What became of a picture, clip or sound that could not be shown, as the end of a sentence. */
export async function lossOf(path: string): Promise<string> {
  const asked = { method: "HEAD", headers: identityHeaders(), redirect: "error" } as const;
  const response = await fetch(SERVICE_URL + path, asked).catch(() => null);
  return response?.status === 410
    ? "was removed by retention; its event stays"
    : "is no longer on the service";
}

/** A picture of the service, decoded; to be closed by whoever has drawn it. */
export async function fetchedPicture(path: string, signal: AbortSignal): Promise<ImageBitmap> {
  return await createImageBitmap(await fetchedBlob(path, signal));
}

async function fetchedBlob(path: string, signal: AbortSignal): Promise<Blob> {
  const [, kind, first, second] = /^\/v1\/(?:(files)\/([^/?]+)|.*)$/.exec(path) ?? [];
  if (kind === "files" && second === undefined) {
    return await client.peek().getFile(decodeURIComponent(first!), { signal });
  }
  const response = await fetch(SERVICE_URL + path, {
    headers: identityHeaders(),
    signal,
    redirect: "error",
  });
  if (!response.ok) throw new Error(`The service answered ${response.status}`);
  return await response.blob();
}

function forgetHeaders(): void {
  navigator.serviceWorker?.controller?.postMessage({ forget: true });
}

/** Whether a service worker serves this page. */
async function startWorker(): Promise<boolean> {
  const container = navigator.serviceWorker;
  if (!container) return false;
  container.addEventListener("message", ({ data, ports }) => {
    if (data === "headers") ports[0]?.postMessage(identityHeaders());
  });
  container.startMessages();
  try {
    await container.register(new URL("service_worker.js", document.baseURI));
  } catch {
    return false;
  }
  if (container.controller) return true;
  return await new Promise((resolve) => {
    const timer = setTimeout(
      () => resolve(container.controller !== null),
      WORKER_WAIT_MS,
    );
    container.addEventListener("controllerchange", () => {
      clearTimeout(timer);
      resolve(true);
    }, { once: true });
  });
}
