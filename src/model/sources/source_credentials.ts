/** The user name and password of a source, and the answers to a server that asks for them: Basic and Digest. */

import { createHash } from "node:crypto";

export interface SourceCredentials {
  readonly user: string;
  readonly password: string;
}

/** One request as Digest protects it. */
export interface ProtectedRequest {
  readonly method: string;
  /** As it stands in the request line. */
  readonly uri: string;
}

/** What a server asked for last, in `WWW-Authenticate`. */
type Challenge = { readonly scheme: "basic" } | {
  readonly scheme: "digest";
  readonly realm: string;
  readonly nonce: string;
  readonly opaque: string | undefined;
  readonly algorithm: "MD5" | "SHA-256";
  /** Whether it takes `qop=auth`; without it the older form of RFC 2069. */
  readonly hasQop: boolean;
  /** Whether the last nonce was only too old. */
  readonly isStale: boolean;
};

/**
 * The answers to the challenges of one server on one connection, or over several requests. Credentials are sent only after the
 * server asked for them, and Digest goes before Basic. RFC 7616, RFC 2617, RFC 2326 section 14.4.
 */
export class Authorization {
  readonly #credentials: SourceCredentials;
  readonly #clientNonce: string;
  #challenge: Challenge | null = null;
  /** Of the present nonce. */
  #uses = 0;
  /** Whether they were sent since the server accepted them last. */
  #isTried = false;
  #attempts = 0;

  /** `clientNonce` is random text of hexadecimal digits. */
  constructor(credentials: SourceCredentials, clientNonce: string) {
    this.#credentials = credentials;
    this.#clientNonce = clientNonce;
  }

  /**
   * Reads the challenges of an answer with 401. Whether the request should be sent again: not where the server has refused the
   * same credentials just before, or asks for something else.
   */
  take(challenges: readonly string[]): boolean {
    const challenge = strongest(challenges);
    const wasRefused = this.#isTried && !(challenge?.scheme === "digest" && challenge.isStale);
    if (challenge === null || wasRefused || ++this.#attempts > ATTEMPTS_MAX) return false;
    this.#challenge = challenge;
    this.#uses = 0;
    this.#isTried = false;
    return true;
  }

  /** The server has accepted the credentials: a later 401 is a new question. */
  accepted(): void {
    this.#isTried = false;
    this.#attempts = 0;
  }

  /** The value of the header `Authorization`; null before the server asked. */
  header(request: ProtectedRequest): string | null {
    const challenge = this.#challenge;
    if (challenge === null) return null;
    this.#uses++;
    this.#isTried = true;
    const { user, password } = this.#credentials;
    return challenge.scheme === "basic"
      ? `Basic ${new TextEncoder().encode(`${user}:${password}`).toBase64()}`
      : this.#digest(challenge, request);
  }

  #digest(challenge: Extract<Challenge, { scheme: "digest" }>, { method, uri }: ProtectedRequest): string {
    const { realm, nonce, opaque, algorithm, hasQop } = challenge;
    const { user, password } = this.#credentials;
    const hash = (text: string) =>
      createHash(algorithm === "MD5" ? "md5" : "sha256").update(text, "utf8").digest("hex");
    const count = this.#uses.toString(16).padStart(8, "0");
    const secret = hash(`${user}:${realm}:${password}`);
    const request = hash(`${method}:${uri}`);
    const response = hasQop
      ? hash(`${secret}:${nonce}:${count}:${this.#clientNonce}:auth:${request}`)
      : hash(`${secret}:${nonce}:${request}`);
    const fields = [
      `username=${quotedText(user)}, realm=${quotedText(realm)}, nonce=${quotedText(nonce)}`,
      `uri=${quotedText(uri)}, response="${response}", algorithm=${algorithm}`,
      ...hasQop ? [`qop=auth, nc=${count}, cnonce="${this.#clientNonce}"`] : [],
      ...opaque === undefined ? [] : [`opaque=${quotedText(opaque)}`],
    ];
    return `Digest ${fields.join(", ")}`;
  }
}

/** A server that asks again and again is not answered for ever. */
const ATTEMPTS_MAX = 4;
const CHALLENGES_MAX = 8;
/** A longer header counts as none: some hundred characters are usual, and reading one takes longer than its length. */
const CHALLENGE_CHARACTERS_MAX = 2048;

function quotedText(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** SHA-256 before MD5 before Basic; null where none of them is offered. */
function strongest(challenges: readonly string[]): Challenge | null {
  const short = challenges.filter(({ length }) => length <= CHALLENGE_CHARACTERS_MAX);
  const found = short.slice(0, CHALLENGES_MAX).flatMap((header) => challengesIn(header)).map(readChallenge);
  const of = (algorithm: string) =>
    found.find((one) => one?.scheme === "digest" && one.algorithm === algorithm);
  return of("SHA-256") ?? of("MD5") ?? found.find((one) => one?.scheme === "basic") ?? null;
}

/** One header may have several challenges, each of which begins with the name of its scheme. */
function challengesIn(header: string): string[] {
  return header.split(/(?:^|,\s*)(?=(?:basic|digest)\s+[a-z])/i).filter((text) => text.trim() !== "");
}

function readChallenge(text: string): Challenge | null {
  const [, scheme = "", rest = ""] = /^\s*(basic|digest)\s+(.*)$/is.exec(text) ?? [];
  if (scheme.toLowerCase() === "basic") return { scheme: "basic" };
  if (scheme === "") return null;
  const fields = new Map<string, string>();
  for (
    const [, name, quoted, plain] of rest.matchAll(
      /([a-z-]{1,32})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi,
    )
  ) {
    fields.set(name!.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "");
  }
  const algorithm = (fields.get("algorithm") ?? "MD5").toUpperCase();
  const [realm, nonce] = [fields.get("realm"), fields.get("nonce")];
  const qop = fields.get("qop");
  const isKnown = algorithm === "MD5" || algorithm === "SHA-256";
  const takesAuth = qop === undefined || /(^|[\s,])auth([\s,]|$)/i.test(qop);
  if (realm === undefined || nonce === undefined || !isKnown || !takesAuth) return null;
  const isStale = fields.get("stale")?.toLowerCase() === "true";
  const opaque = fields.get("opaque");
  return { scheme: "digest", realm, nonce, opaque, algorithm, hasQop: qop !== undefined, isStale };
}
