/** A relay on loopback through which ffmpeg reads one HLS source, so that every URL of its playlists is
 * checked.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { joinedBytes } from "../../base/bytes.ts";
import { Refusal } from "../../contract/refusal.ts";
import { abortWith, yieldToEventLoop } from "../../base/wait.ts";
import { LIMITS } from "../../contract/limits.ts";
import { hasPicture, isMediaPart, neededBytes, videoOfPart } from "../../model/sources/hls_part.ts";
import { isPlaylist, PlaylistRefused, withUris } from "../../model/sources/hls_playlist.ts";
import { variantsOf, withVariantOnly } from "../../model/sources/hls_variants.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused } from "../guard/address_guard.ts";
import { HlsProgress, type PlaylistPart } from "./hls_progress.ts";
import { listenForFfmpeg, readerOf, stopListening } from "./listening.ts";
import { type HlsAnswer, hlsAnswer } from "./hls_answer.ts";
import { SourceBudget } from "./source_budget.ts";
import { SourceCookies } from "./source_cookies.ts";
import {
  DRAINED_BYTES_MAX,
  type FetchContext,
  followedRequest,
  type SourceRequest,
} from "./source_request.ts";
import { RequestFailed } from "../guard/request_failed.ts";

/**
 * ```
 *   ffmpeg ─http, loopback→ relay ─guard, pinned, verified→ the server that a playlist names
 *          ←─ playlists with every URL replaced by one of the relay; media unchanged; nothing else
 * ```
 *
 * The relay is needed because ffmpeg itself (5.1) checks no host, verifies no certificate except the
 * playlist's, and follows redirects of every URL in a playlist. A source cannot use more than a small part of
 * the thread: playlists are bounded and rewritten in pieces, and each request and each address in a playlist
 * lets the following requests wait. See docs/security/sources.md#outbound-addresses.
 */
export class HlsRelay implements AsyncDisposable {
  /** The URL for ffmpeg. */
  readonly url: string;
  readonly #server: Server;
  readonly #origin: string;
  readonly #first: URL;
  readonly #context: FetchContext;
  readonly #closing = new AbortController();
  readonly #following: Disposable;
  /** How far the source is read through this relay. */
  readonly progress = new HlsProgress();
  /** How far the source was read before; null where it never was. */
  readonly #before: HlsProgress | null;
  /** Whether a playlist that stands still has ended. */
  readonly #endsStill: boolean;
  /** The last part of each playlist, and since when it is that. */
  readonly #lastParts = new Map<string, { readonly last: string; readonly sinceMs: number }>();
  /** What is known of parts, by their numbers. */
  readonly #parts = new Map<number, PlaylistPart>();
  /**
   * The URLs of the playlists by number. Live playlists have more and more of them, so the oldest are
   * removed.
   */
  readonly #urls = new Map<number, string>();
  /** Characters of all kept URLs together. */
  #urlCharacters = 0;
  /** The numbers of the kept URLs, by URL. */
  readonly #numbers = new Map<string, number>();
  #lastNumber = 0;
  /** The lowest number that is kept, besides that of the source itself, which stays. */
  #oldestNumber = 2;
  #fault: Refusal | undefined;
  readonly #cookies: SourceCookies;
  /** The address of the variant that is taken, as the master playlist has it. */
  #variant: string | undefined;
  /**
   * Whether the relay waits for a part that is not there, and asks again: not where waiting for the part
   * before was in vain.
   */
  #isWaitedFor = true;
  /** The numbers of parts that their playlist says are missing. */
  readonly #missing = new Set<number>();
  /** Why the last playlist and the last part were not given; nothing for one that was. */
  readonly #lost = new Map<"playlist" | "part", string>();
  /** Whether the playlist that was read last goes on. */
  #isLive = false;
  /** What the video of the parts is, by the address of their playlist. */
  readonly #videos = new Map<string, string>();
  /**
   * Whether the source has gone on with another codec. Then nothing more is given: ffmpeg would go on with
   * the parser of the codec before, which may wait for a picture for ever.
   */
  #hasOtherCodec = false;
  readonly #budget: SourceBudget;

  private constructor(
    first: URL,
    { server, host, context, before, endsStill }: {
      readonly server: Server;
      readonly host: string;
      readonly context: FetchContext;
      readonly before: HlsProgress | null;
      readonly endsStill: boolean;
    },
  ) {
    // The path is a secret, so that other programs of this machine cannot send requests through the relay.
    this.#origin = `http://${host}/${context.world.randomBytes(16).toHex()}`;
    this.#first = first;
    this.#server = server;
    this.#context = context;
    this.#before = before;
    this.#endsStill = endsStill;
    this.#cookies = new SourceCookies(context.world);
    this.#budget = new SourceBudget(context.world, context.onChange);
    this.url = this.#addressOf(first, this.#numberOf(first));
    server.on("request", (request, response) => void this.#answer(request, response));
    this.#following = abortWith(context.signal, this.#closing);
  }

  /**
   * Fetches the playlist once as a test, so that a failure is refused with its reason: 422 `source_uri`. It
   * listens on the Unix socket, or without one on a port of the machine's loopback. What was read `before` is
   * left out of the playlists, and a source that has nothing else is refused, too: a server goes on giving
   * the last playlist of an encoder that has stopped. With `endsStill` a playlist that has had nothing new
   * for a while is given its end, so that its reader does not wait for ever.
   */
  static async open(
    first: URL,
    context: FetchContext,
    { socket = null, before = null, endsStill = false }: {
      readonly socket?: string | null;
      readonly before?: HlsProgress | null;
      readonly endsStill?: boolean;
    } = {},
  ): Promise<HlsRelay> {
    const server = createServer();
    const host = await listenForFfmpeg(server, socket);
    const relay = new HlsRelay(first, { server, host, context, before, endsStill });
    try {
      await relay.#checkPlaylist();
      return relay;
    } catch (error) {
      await relay[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Why the first part of the source that was refused was refused; 422 `source_uri`. */
  get fault(): Refusal | undefined {
    return this.#fault;
  }

  /** Why no more media comes; undefined where the last playlist and the last part were fine. */
  get end(): string | undefined {
    if (this.#hasOtherCodec) return OTHER_CODEC;
    return this.#lost.get("part") ?? this.#lost.get("playlist") ?? this.#budget.reason;
  }

  /** Ends all requests and stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#following[Symbol.dispose]();
    this.#closing.abort(new Error("the relay is closing"));
    await stopListening(this.#server);
  }

  async #checkPlaylist(): Promise<void> {
    try {
      const playlist = await this.#read(this.#first);
      await this.#chooseVariant(playlist);
      await this.#checkProgress((await this.#rewritten(playlist)).newParts);
    } catch (error) {
      this.#context.signal.throwIfAborted();
      if (error instanceof AddressRefused || error instanceof PlaylistRefused) {
        throw sourceFault(error.message);
      }
      if (error instanceof RequestFailed) throw sourceFault(`it cannot be fetched: ${error.message}`);
      throw error;
    }
  }

  /** Refuses a source without anything new; `newParts` are those of the first playlist. */
  async #checkProgress(newParts: number): Promise<void> {
    const lists = this.#before?.lists ?? [];
    if (lists.length === 0) return;
    for (const list of lists) {
      const found = list === this.#first.href
        ? newParts
        : await this.#newPartsOf(new URL(list)).catch((error) => {
          this.#context.signal.throwIfAborted();
          if (faultOf(error) === undefined) throw error;
          // One that cannot be read is left to ffmpeg, which may need another one now.
          return Infinity;
        });
      if (found > 0) return;
    }
    throw sourceFault("its playlist has nothing new since it was read last");
  }

  async #newPartsOf(list: URL): Promise<number> {
    return (await this.#rewritten(await this.#read(list))).newParts;
  }

  async #read(list: URL): Promise<ReadPlaylist> {
    const { signal } = this.#closing;
    const answer = await this.#fetch(list, { timeoutMs: LIMITS.ingest.prefetchTimeoutMs, signal });
    const { head, rest } = await headOf(answer);
    if (!isPlaylist(head)) throw sourceFault("it is not an HLS playlist");
    return { text: await wholeText(head, rest, answer), base: answer.url, list: list.href };
  }

  /**
   * The best variant that can be read and has a picture. Where none has, it is the best one, and ffmpeg says
   * what is wrong with it.
   */
  async #chooseVariant({ text, base }: ReadPlaylist): Promise<void> {
    const variants = variantsOf(text);
    if (variants.length < 2) return;
    for (const { uri, saysPicture } of variants.slice(0, VARIANTS_TRIED_MAX)) {
      const url = URL.parse(uri, base);
      try {
        if (url === null) continue;
        const playlist = await this.#read(url);
        this.#variant ??= uri;
        if (!saysPicture && await this.#hasNoPicture(playlist)) continue;
        this.#variant = uri;
        return;
      } catch (error) {
        this.#context.signal.throwIfAborted();
        if (faultOf(error) === undefined) throw error;
      }
    }
  }

  /** Whether a playlist has no picture, by what its parts begin with; false where that does not tell. */
  async #hasNoPicture({ text, base }: ReadPlaylist): Promise<boolean> {
    let named = base;
    const note = (uri: URL) => {
      named = uri;
      return "a part";
    };
    const first = withUris(text, base, note).find((line) => /^(a part|#EXT-X-MAP:)/.test(line));
    if (first === undefined) return false;
    const { signal } = this.#closing;
    const answer = await this.#fetch(named, { timeoutMs: LIMITS.ingest.prefetchTimeoutMs, signal });
    try {
      const { head } = await headOf(answer, TABLES_BYTES);
      return isMediaPart(head) && hasPicture(head) === false;
    } finally {
      answer.body.cancel();
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reader = readerOf(response);
    using _closing = abortWith(this.#closing.signal, reader);
    let isPart = false;
    try {
      const target = this.#targetOf(request.url ?? "");
      if (target === undefined || request.method !== "GET") return void response.writeHead(404).end();
      isPart = this.#parts.has(target.number);
      if (this.#missing.has(target.number) || this.#hasOtherCodec) {
        if (!this.#isLive) this.#fail(sourceFault(PART_MISSING));
        return void response.writeHead(404).end();
      }
      const { range } = request.headers;
      await this.#pass(target, response, {
        ...(range !== undefined && { headers: { range } }),
        // A long timeout, because ffmpeg reads as slowly as it decodes.
        timeoutMs: PART_TIMEOUT_MS,
        signal: reader.signal,
      });
      this.#lost.delete(isPart ? "part" : "playlist");
      this.#context.onChange?.();
    } catch (error) {
      // ffmpeg gets an error status, and the caller gets the reason from `fault`.
      const fault = faultOf(error);
      if (fault) {
        const refused = refusedPart(fault);
        this.#lost.set(isPart ? "part" : "playlist", (isPart ? refused : fault).details[0]!.message);
        this.#fail(refused);
      }
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    }
  }

  async #pass(
    target: AskedAddress,
    response: ServerResponse,
    options: Omit<SourceRequest, "budget" | "cookies">,
  ): Promise<void> {
    const answer = await this.#fetch(target.url, options, RETRY_PAUSES_MS);
    const { head, rest } = await headOf(answer);
    if (isPlaylist(head)) {
      const read = await wholeText(head, rest, answer);
      const { text } = await this.#rewritten({ text: read, base: answer.url, list: target.url.href });
      response.writeHead(200, { "content-type": "application/vnd.apple.mpegurl" }).end(text);
      return;
    }
    if (!isMediaPart(head)) throw sourceFault("it is neither media nor a playlist");
    const part = this.#parts.get(target.number);
    if (part && head.length === 0) this.#fail(refusedPart(sourceFault("it is empty")));
    if (part && this.#changesCodec(part, head)) {
      this.#context.onChange?.();
      answer.body.cancel();
      return void response.writeHead(404).end();
    }
    if (part) {
      this.progress.note(part);
      this.#context.onChange?.();
    }
    const headers: Record<string, string> = {};
    for (const name of answer.isPacked ? ["content-type"] : PASSED_HEADERS) {
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

  /** Whether the source goes on with another codec there; the next connection begins with this part. */
  #changesCodec({ list }: PlaylistPart, head: Uint8Array): boolean {
    const video = videoOfPart(head);
    if (video === null) return false;
    const before = this.#videos.get(list) ?? video;
    this.#hasOtherCodec ||= this.#isLive && before !== video;
    this.#videos.set(list, video);
    return this.#hasOtherCodec;
  }

  /**
   * An answer of 200 or 206 behind all redirects; every other one is a failure. What may come soon is asked
   * for again, after each of the pauses.
   */
  async #fetch(
    url: URL,
    options: Omit<SourceRequest, "budget" | "cookies">,
    pausesMs: readonly number[] = [],
  ): Promise<HlsAnswer> {
    const isAllowed = url.protocol === "https:" ||
      (url.protocol === "http:" && this.#first.protocol === "http:");
    if (!isAllowed) throw new RequestFailed("protocol", "it has another scheme");
    for (let attempt = 0;; attempt++) {
      const followed = await followedRequest(url, this.#context, {
        ...options,
        budget: this.#budget,
        cookies: this.#cookies,
      });
      const { status, body } = followed.response;
      if (status === 200 || status === 206) {
        this.#isWaitedFor = true;
        return hlsAnswer(followed, this.#budget, options.signal);
      }
      const pauseMs = this.#isWaitedFor ? pausesMs[attempt] : undefined;
      if (pauseMs === undefined || !MAY_COME_SOON.has(status)) {
        this.#isWaitedFor = false;
        body.cancel();
        throw sourceFault(`its server answered HTTP ${status}`);
      }
      await body.drain(DRAINED_BYTES_MAX);
      await this.#context.world.sleep(pauseMs, options.signal);
    }
  }

  /** A playlist with the relay's addresses, and the number of parts in it that were not read before. */
  async #rewritten(
    { text: whole, base, list }: ReadPlaylist,
  ): Promise<{ readonly text: string; readonly newParts: number }> {
    const variants = variantsOf(whole);
    const variant = variants.find(({ uri }) => uri === this.#variant) ?? variants[0];
    const playlist = variant ? withVariantOnly(whole, variant) : whole;
    this.#isLive = !/#EXT-X-ENDLIST|^#EXT-X-PLAYLIST-TYPE:\s*VOD/m.test(whole);
    let [text, lines, newParts, sequence] = ["", 0, 0, 0];
    let [hasRanges, isMissing, stateLines] = [false, false, ""];
    let part: PlaylistPart | null = null;
    let last = "";
    const usualEnding = variant ? ".m3u8" : playlist.includes("#EXT-X-MAP") ? ".mp4" : ".ts";
    const relayed = (uri: URL, isPart: boolean) => {
      this.#budget.spend({ addresses: 1 });
      const number = this.#numberOf(uri);
      if (isPart) {
        part = { list, sequence: sequence++, address: uri.origin + uri.pathname };
        last = `${part.sequence} ${part.address}`;
        // Of a file that is read in ranges the address tells no part.
        if (!hasRanges) this.#parts.set(number, part);
        if (isMissing) this.#missing.add(number);
        isMissing = false;
      }
      return this.#addressOf(uri, number, isPart ? usualEnding : "");
    };
    for (const line of withUris(playlist, base, relayed)) {
      // Else its key would be refused, as it is no media.
      if (ENCRYPTED.test(line)) throw new PlaylistRefused("its media are encrypted, which is not supported");
      text += line;
      sequence = Number(/^#EXT-X-MEDIA-SEQUENCE:\s*(\d+)/.exec(line)?.[1] ?? sequence);
      hasRanges ||= line.startsWith("#EXT-X-BYTERANGE");
      isMissing ||= line.startsWith("#EXT-X-GAP");
      const listed: PlaylistPart | null = part;
      if (listed === null) {
        if (!OF_ONE_PART.test(line)) stateLines += line;
      } else {
        newParts++;
        part = null;
        if (this.#before?.isLast(listed)) {
          [text, newParts] = [`${stateLines}#EXT-X-MEDIA-SEQUENCE:${sequence}\n`, 0];
        }
      }
      if (++lines % LINES_PER_TURN === 0) {
        await yieldToEventLoop();
        this.#closing.signal.throwIfAborted();
      }
    }
    const hasEnded = variant === undefined && (!this.#isLive || this.#standsStill(whole, { list, last }));
    if (hasEnded && !text.includes("#EXT-X-ENDLIST")) text += "#EXT-X-ENDLIST\n";
    return { text, newParts };
  }

  /** Remembers a fault; only the first one counts. */
  #fail(fault: Refusal): void {
    this.#fault ??= fault;
    this.#context.onChange?.();
  }

  /** Whether the playlist has had this last part for so long that nothing more is waited for. */
  #standsStill(playlist: string, { list, last }: { readonly list: string; readonly last: string }): boolean {
    const nowMs = this.#context.world.monotonicMs();
    const known = this.#lastParts.get(list);
    if (known?.last !== last) {
      if (this.#lastParts.size < LISTS_WATCHED_MAX) this.#lastParts.set(list, { last, sinceMs: nowMs });
      return false;
    }
    const targetMs = Number(/^#EXT-X-TARGETDURATION:\s*(\d+)/m.exec(playlist)?.[1] ?? 0) * 1000;
    const stillMs = nowMs - known.sinceMs;
    if (!this.#endsStill || stillMs < Math.max(STILL_MS, STILL_PARTS * targetMs)) return false;
    const seconds = Math.round(stillMs / 1000);
    this.#fail(
      sourceFault(`its playlist does not say that it has ended, and had nothing new for ${seconds} s`),
    );
    return true;
  }

  /** The number of `url`, by which the relay's own URL names it. */
  #numberOf(url: URL): number {
    const key = url.href;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = ++this.#lastNumber;
      this.#numbers.set(key, number);
      this.#urls.set(number, key);
      this.#urlCharacters += key.length;
      while (this.#urls.size > URLS_MAX || this.#urlCharacters > URL_CHARACTERS_MAX) this.#removeOldest();
    }
    return number;
  }

  /**
   * The relay's URL for an address. ffmpeg refuses parts by the ending of their names, and servers give them
   * any ending. So an ending that ffmpeg does not know becomes the usual one; what a part is, the relay finds
   * out itself.
   */
  #addressOf(url: URL, number: number, usualEnding = ""): string {
    const ending = /\.[a-z0-9]{1,8}$/i.exec(url.pathname)?.[0] ?? "";
    const isKnown = usualEnding === "" || PART_ENDING.test(ending);
    return `${this.#origin}/${number}/part${isKnown ? ending : usualEnding}`;
  }

  /**
   * Removes the oldest URL. It is found by its number, because walking a map past what was removed from it
   * takes longer with each removal.
   */
  #removeOldest(): void {
    const oldest = this.#oldestNumber++;
    const url = this.#urls.get(oldest)!;
    this.#urlCharacters -= url.length;
    this.#numbers.delete(url);
    this.#urls.delete(oldest);
    this.#parts.delete(oldest);
    this.#missing.delete(oldest);
  }

  #targetOf(path: string): AskedAddress | undefined {
    const secret = new URL(this.#origin).pathname;
    if (!path.startsWith(`${secret}/`)) return undefined;
    const number = parseInt(path.slice(secret.length + 1), 10);
    const href = this.#urls.get(number);
    return href === undefined ? undefined : { url: new URL(href), number };
  }
}

/** A playlist as its server gave it. */
interface ReadPlaylist {
  readonly text: string;
  /** The address that gave the playlist in the end: others are relative to it. */
  readonly base: URL;
  /** The address that was asked. */
  readonly list: string;
}

/** An address that ffmpeg asks for. */
interface AskedAddress {
  readonly url: URL;
  readonly number: number;
}

/**
 * Tags that belong to the next part only. Other tags hold for all parts behind them, except the number of the
 * first part.
 */
const OF_ONE_PART =
  /^(#EXTINF|#EXT-X-(BYTERANGE|DISCONTINUITY|GAP|PROGRAM-DATE-TIME|MEDIA-SEQUENCE)(?!-)|\s*$)/;

const ENCRYPTED = /^#EXT-X-KEY:(?!(?:.*,)?METHOD="?NONE\b)/;
const PART_MISSING = "its playlist says that a part of it is missing";

/** Endings of names by which ffmpeg knows playlists and media. */
const PART_ENDING =
  /^\.(?:m3u8?|ts|m2t|m2ts|mts|mpegts|mp4|m4s|m4v|m4a|cmf[va]|mov|aac|ac3|eac3|mp3|mpg|mpeg|vtt|webvtt)$/i;

/**
 * The refusal for a failure of an address or its server; undefined when ffmpeg has disconnected, and for a
 * bug.
 */
function faultOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof AddressRefused || error instanceof PlaylistRefused) return sourceFault(error.message);
  if (error instanceof RequestFailed) return sourceFault(`it cannot be fetched: ${error.message}`);
}

function refusedPart({ details }: Refusal): Refusal {
  return sourceFault(`something that its playlist names: ${details[0]?.message}`);
}

const OTHER_CODEC = "it sends another codec";
/** URLs that are kept: enough for a film of three hours in parts of one second, with several variants. */
const URLS_MAX = 100_000;
/** Characters of all URLs that are kept: twice as many as one playlist may name. */
const URL_CHARACTERS_MAX = 2 ** 24;
const PART_TIMEOUT_MS = 600_000;
const PLAYLIST_BYTES_MAX = 4 * 2 ** 20;
/** Bytes that are enough to see whether a body is a playlist. */
const HEAD_BYTES = 1024;
/** Bytes that are enough for the tables of MPEG-TS, and for what MP4 has before its fragments. */
const TABLES_BYTES = 16 * 1024;
const LINES_PER_TURN = 1000;
const VARIANTS_TRIED_MAX = 8;
/**
 * After this many times its longest part, a playlist without anything new has ended. A server has to list a
 * part one and a half times the longest part after the one before (RFC 8216, section 6.2.2).
 */
const STILL_PARTS = 3;
const STILL_MS = 10_000;
const LISTS_WATCHED_MAX = 64;
/** Pauses before a part is asked for again: it may be listed a moment before it is there. */
const RETRY_PAUSES_MS: readonly number[] = [300, 1000];
const MAY_COME_SOON: ReadonlySet<number> = new Set([404, 408, 425, 429, 500, 502, 503, 504]);
const PASSED_HEADERS: readonly string[] = [
  "content-length",
  "content-range",
  "content-type",
  "accept-ranges",
];

/** The first bytes of a body, as many as are needed to judge it unless it is shorter, and the rest of it. */
async function headOf({ body }: HlsAnswer, leastBytes = HEAD_BYTES) {
  const rest = body[Symbol.asyncIterator]();
  let head = new Uint8Array();
  for (let needed = leastBytes; head.length < needed; needed = Math.max(needed, neededBytes(head))) {
    const parts: Uint8Array[] = [head];
    let isOver = false;
    for (let bytes = head.length; bytes < needed && !isOver;) {
      const { value, done } = await rest.next();
      isOver = done === true;
      if (value) parts.push(value);
      bytes += value?.length ?? 0;
    }
    head = joinedBytes(...parts);
    if (isOver) break;
  }
  return { head, rest };
}

async function wholeText(
  head: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  { body }: HlsAnswer,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = decoder.decode(head, { stream: true });
  let received = head.length;
  try {
    for await (const bytes of rest) {
      received += bytes.length;
      if (received > PLAYLIST_BYTES_MAX) throw new PlaylistRefused("the playlist is too long");
      text += decoder.decode(bytes, { stream: true });
    }
  } finally {
    body.cancel();
  }
  return text + decoder.decode();
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
