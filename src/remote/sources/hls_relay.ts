/** A relay on loopback through which ffmpeg reads one HLS source, so that every URL of its playlists is checked. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { joinedBytes } from "../../base/bytes.ts";
import { Refusal } from "../../base/refusal.ts";
import { LIMITS } from "../../model/limits.ts";
import { isPlaylist, PlaylistRefused, withUris } from "../../model/sources/hls_playlist.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused, checkedTarget } from "../guard/address_guard.ts";
import type { FetchContext } from "./prefetch.ts";
import { pinnedRequest, type PinnedResponse } from "../guard/pinned_request.ts";
import { RequestFailed } from "../guard/request_failed.ts";

/**
 * ```
 *   ffmpeg ─http, loopback→ relay ─guard, pinned, verified→ the server that a playlist names
 *          ←─ playlists with every URL replaced by one of the relay; other bodies unchanged
 * ```
 *
 * The relay is needed because ffmpeg itself (5.1) checks no host, verifies no certificate except the playlist's, and
 * follows redirects of every URL in a playlist. See docs/security.md#outbound-addresses.
 */
export class HlsRelay implements AsyncDisposable {
  /** The URL for ffmpeg. */
  readonly url: string;
  readonly #server: Server;
  readonly #origin: string;
  readonly #first: URL;
  readonly #context: FetchContext;
  readonly #closing = new AbortController();
  /** The URLs of the playlists by number. Live playlists have more and more of them, so the oldest are removed. */
  readonly #urls = new Map<number, string>();
  /** The numbers by URL. */
  readonly #numbers = new Map<string, number>();
  #lastNumber = 0;
  #fault: Refusal | undefined;

  private constructor(first: URL, server: Server, context: FetchContext) {
    const { port } = server.address() as AddressInfo;
    // The path is a secret, so that other programs of this machine cannot send requests through the relay.
    this.#origin = `http://127.0.0.1:${port}/${context.world.randomBytes(16).toHex()}`;
    this.#first = first;
    this.#server = server;
    this.#context = context;
    this.url = this.#relayed(first);
    server.on("request", (request, response) => void this.#answer(request, response));
    const { signal } = context;
    const onAbort = () => this.#closing.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { signal: this.#closing.signal });
  }

  /** Fetches the playlist once as a test, so that a failure is refused with its reason: 422 `source_uri`. */
  static async open(first: URL, context: FetchContext): Promise<HlsRelay> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
    const relay = new HlsRelay(first, server, context);
    try {
      await relay.#checkPlaylist();
      return relay;
    } catch (error) {
      await relay[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Why a part of the source was refused, for the first one that was; 422 `source_uri`. */
  get fault(): Refusal | undefined {
    return this.#fault;
  }

  /** Ends all requests and stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the relay is closing"));
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #checkPlaylist(): Promise<void> {
    try {
      const response = await this.#fetch(this.#first, {}, LIMITS.ingest.prefetchTimeoutMs);
      const { head, rest } = await headOf(response);
      if (!isPlaylist(head)) throw sourceFault("it is not an HLS playlist");
      this.#rewritten(await wholeText(head, rest, response), this.#first);
    } catch (error) {
      this.#context.signal.throwIfAborted();
      if (error instanceof AddressRefused || error instanceof PlaylistRefused) {
        throw sourceFault(error.message);
      }
      if (error instanceof RequestFailed) throw sourceFault(`it cannot be fetched: ${error.message}`);
      throw error;
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const target = this.#targetOf(request.url ?? "");
      if (target === undefined || request.method !== "GET") return void response.writeHead(404).end();
      await this.#pass(target, request, response);
    } catch (error) {
      // ffmpeg gets an error status, and the caller gets the reason from `fault`.
      const fault = faultOf(error);
      if (fault) this.#fault ??= refusedPart(fault);
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    }
  }

  async #pass(target: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { range } = request.headers;
    // A long timeout, because ffmpeg reads as slowly as it decodes.
    const answer = await this.#fetch(target, range === undefined ? {} : { range }, PART_TIMEOUT_MS);
    response.once("close", () => answer.body.cancel());
    const { head, rest } = await headOf(answer);
    if (isPlaylist(head)) {
      const text = this.#rewritten(await wholeText(head, rest, answer), target);
      response.writeHead(200, { "content-type": "application/vnd.apple.mpegurl" }).end(text);
      return;
    }
    const headers: Record<string, string> = {};
    for (const name of ["content-length", "content-range", "content-type", "accept-ranges"]) {
      const value = answer.headers.get(name);
      if (value !== null) headers[name] = value;
    }
    response.writeHead(answer.status, headers);
    let passedBytes = head.length;
    await write(response, head);
    for await (const bytes of rest) {
      passedBytes += bytes.length;
      if (passedBytes > LIMITS.ingest.prefetchBytesMax) throw sourceFault("a part of it is too large");
      await write(response, bytes);
    }
    response.end();
  }

  /** An answer of 200 or 206; every other one is a failure, redirects included. */
  async #fetch(url: URL, extra: Record<string, string>, timeoutMs: number): Promise<PinnedResponse> {
    if (url.protocol !== this.#first.protocol) throw new RequestFailed("protocol", "it has another scheme");
    const { world, agent, allowedNetworks, resolve } = this.#context;
    const { signal } = this.#closing;
    const guard = {
      world,
      allowPrivate: false,
      allowedNetworks,
      timeoutMs: LIMITS.ingest.prefetchTimeoutMs,
      signal,
    };
    const addresses = await checkedTarget(url, { ...guard, ...(resolve && { resolve }) });
    const headers = { "accept": "*/*", "accept-encoding": "identity", ...extra };
    const request = { world, agent, url, addresses, method: "GET", headers, timeoutMs, signal };
    const response = await pinnedRequest(request);
    if (response.status === 200 || response.status === 206) return response;
    response.body.cancel();
    throw sourceFault(`its server answered HTTP ${response.status}`);
  }

  #rewritten(playlist: string, base: URL): string {
    return withUris(playlist, base, (uri) => this.#relayed(uri));
  }

  /** The relay's URL for `url`, with the same extension, because ffmpeg accepts only certain ones. */
  #relayed(url: URL): string {
    const key = url.href;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = ++this.#lastNumber;
      this.#numbers.set(key, number);
      this.#urls.set(number, key);
      if (this.#urls.size > URLS_MAX) this.#removeOldest();
    }
    const extension = /\.[a-z0-9]{1,8}$/i.exec(url.pathname)?.[0] ?? "";
    return `${this.#origin}/${number}/part${extension}`;
  }

  /** Removes the second URL: the first is the source itself, and stays. */
  #removeOldest(): void {
    const [, oldest] = this.#urls.keys();
    this.#numbers.delete(this.#urls.get(oldest!)!);
    this.#urls.delete(oldest!);
  }

  #targetOf(path: string): URL | undefined {
    const secret = new URL(this.#origin).pathname;
    if (!path.startsWith(`${secret}/`)) return undefined;
    const href = this.#urls.get(parseInt(path.slice(secret.length + 1), 10));
    return href === undefined ? undefined : new URL(href);
  }
}

/** The refusal for a failure of an address or its server; undefined when ffmpeg has disconnected, and for a bug. */
function faultOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof AddressRefused || error instanceof PlaylistRefused) return sourceFault(error.message);
  if (error instanceof RequestFailed) return sourceFault(`it cannot be fetched: ${error.message}`);
}

function refusedPart({ details }: Refusal): Refusal {
  return sourceFault(`something that its playlist names: ${details[0]?.message}`);
}

/** Enough for a film of three hours in parts of one second, with several variants. */
const URLS_MAX = 100_000;
const PART_TIMEOUT_MS = 600_000;
const PLAYLIST_BYTES_MAX = 4 * 2 ** 20;
/** Enough bytes to see whether a body is a playlist. */
const HEAD_BYTES = 1024;

/** The first bytes of a body, at least `HEAD_BYTES` unless it is shorter, and the rest of it. */
async function headOf({ body }: PinnedResponse) {
  const rest = body[Symbol.asyncIterator]();
  let head = new Uint8Array();
  while (head.length < HEAD_BYTES) {
    const { value, done } = await rest.next();
    if (done) break;
    head = joinedBytes(head, value);
  }
  return { head, rest };
}

async function wholeText(
  head: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  { body }: PinnedResponse,
): Promise<string> {
  let whole = head;
  try {
    for await (const bytes of rest) {
      whole = joinedBytes(whole, bytes);
      if (whole.length > PLAYLIST_BYTES_MAX) throw new PlaylistRefused("the playlist is too long");
    }
  } finally {
    body.cancel();
  }
  return new TextDecoder().decode(whole);
}

/** Resolves when there is room for more bytes; rejects when ffmpeg has disconnected. */
function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed) return reject(new Error("the reader has gone"));
    if (response.write(bytes)) return resolve();
    const onDrain = () => {
      response.off("close", onClose);
      resolve();
    };
    const onClose = () => {
      response.off("drain", onDrain);
      reject(new Error("the reader has gone"));
    };
    response.once("drain", onDrain).once("close", onClose);
  });
}
