/** Adds the key of the page to its requests for pictures, films and sound, which cannot carry a header themselves. */

/** The headers of each page, by its client id; asked of the page anew after this worker was stopped. */
const known = new Map();
const ANSWER_WAIT_MS = 2000;
const MEDIA = ["image", "video", "audio"];
const FILES = new URL("../v1/", self.location).href;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener(
  "activate",
  (event) => event.waitUntil(self.clients.claim()),
);
self.addEventListener(
  "message",
  ({ source, data }) => data?.forget && known.delete(source?.id),
);

self.addEventListener("fetch", (event) => {
  const { request, clientId } = event;
  const isOurs = request.url.startsWith(FILES);
  if (
    isOurs && request.method === "GET" && MEDIA.includes(request.destination)
  ) {
    event.respondWith(withHeaders(request, clientId));
  }
});

async function withHeaders(request, clientId) {
  const headers = new Headers(request.headers); // with the range that a player asks for
  for (const [name, value] of Object.entries(await headersOf(clientId))) {
    headers.set(name, value);
  }
  return await fetch(request.url, {
    headers,
    mode: "same-origin",
    redirect: "error",
    signal: request.signal,
  });
}

async function headersOf(clientId) {
  const kept = known.get(clientId);
  if (kept) return kept;
  const page = await self.clients.get(clientId);
  if (!page) return {};
  const channel = new MessageChannel();
  const answered = new Promise((resolve) => {
    channel.port1.onmessage = ({ data }) => resolve(data);
    setTimeout(() => resolve(null), ANSWER_WAIT_MS);
  });
  page.postMessage("headers", [channel.port2]);
  const headers = await answered;
  if (headers) known.set(clientId, headers); // a page that is busy is asked again
  return headers ?? {};
}
