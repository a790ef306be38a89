/** The user name and password of a source, and the answers to a server that asks for them: Basic and Digest.
 */

import { createHash } from "node:crypto";

export interface SourceCredentials {
  readonly user: string;
  readonly password: string;
}

/** One request as Digest protects it. */
export interface ProtectedRequest {
  readonly method: string;
  /** The address as it stands in the request line. */
  readonly uri: string;
}

/** What a server asked for last, in `WWW-Authenticate`. */
type Challenge = { readonly scheme: "basic" } | {
  readonly scheme: "digest";
  readonly realm: string;
  readonly nonce: string;
  readonly opaque: string | undefined;
  readonly algorithm: "MD5" | "SHA-256";
  /** Whether each secret is for one nonce of ours: `MD5-sess`. */
  readonly isOfSession: boolean;
  /**
   * The quality of protection; null is the older form of RFC 2069. Requests have no bodies, so that
   * `auth-int` protects none.
   */
  readonly qop: "auth" | "auth-int" | null;
  /** Whether the last nonce was only too old. */
  readonly isStale: boolean;
};

/**
 * The answers to the challenges of one server on one connection, or over several requests. Credentials are
 * sent only after the server asked for them, and Digest goes before Basic. RFC 7616, RFC 2617, RFC 2326
 * section 14.4.
 */
export class Authorization {
  readonly #credentials: SourceCredentials;
  readonly #clientNonce: string;
  #challenge: Challenge | null = null;
  /** How often the present nonce was used. */
  #uses = 0;
  /** Whether the credentials were sent since the server accepted them last. */
  #isTried = false;
  #attempts = 0;
  /**
   * Whether the server has taken the credentials before: then another nonce is a new question, and some
   * servers do not say that it is.
   */
  #wereRight = false;

  /** `clientNonce`: random text of hexadecimal digits. */
  constructor(credentials: SourceCredentials, clientNonce: string) {
    this.#credentials = credentials;
    this.#clientNonce = clientNonce;
  }

  /**
   * Reads the challenges of an answer with 401. Whether the request should be sent again: not where the
   * server has refused the same credentials just before, or asks for something else.
   */
  take(challenges: readonly string[]): boolean {
    const challenge = strongest(challenges);
    const [next, last] = [challenge, this.#challenge];
    const isNew = next?.scheme === "digest" &&
      (next.isStale || this.#wereRight && !(last?.scheme === "digest" && last.nonce === next.nonce));
    const wasRefused = this.#isTried && !isNew;
    if (challenge === null || wasRefused || ++this.#attempts > ATTEMPTS_MAX) return false;
    this.#challenge = challenge;
    this.#uses = 0;
    this.#isTried = false;
    return true;
  }

  /** Notes that the server has accepted the credentials: a later 401 is a new question. */
  accepted(): void {
    this.#wereRight ||= this.#isTried;
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
    const { realm, nonce, opaque, algorithm, isOfSession, qop } = challenge;
    const { user, password } = this.#credentials;
    const clientNonce = this.#clientNonce;
    const hash = (text: string) =>
      createHash(algorithm === "MD5" ? "md5" : "sha256").update(text, "utf8").digest("hex");
    const count = this.#uses.toString(16).padStart(8, "0");
    const own = hash(`${user}:${realm}:${password}`);
    const secret = isOfSession ? hash(`${own}:${nonce}:${clientNonce}`) : own;
    const request = hash(qop === "auth-int" ? `${method}:${uri}:${hash("")}` : `${method}:${uri}`);
    const response = qop === null
      ? hash(`${secret}:${nonce}:${request}`)
      : hash(`${secret}:${nonce}:${count}:${clientNonce}:${qop}:${request}`);
    const name = `${algorithm}${isOfSession ? "-sess" : ""}`;
    const fields = [
      `username=${quotedText(user)}, realm=${quotedText(realm)}, nonce=${quotedText(nonce)}`,
      `uri=${quotedText(uri)}, response="${response}", algorithm=${name}`,
      ...qop === null ? [] : [`qop=${qop}, nc=${count}`],
      ...qop === null && !isOfSession ? [] : [`cnonce="${clientNonce}"`],
      ...opaque === undefined ? [] : [`opaque=${quotedText(opaque)}`],
    ];
    return `Digest ${fields.join(", ")}`;
  }
}

/** How often a server that asks again and again is answered. */
const ATTEMPTS_MAX = 4;
const CHALLENGES_MAX = 8;
/**
 * The longest header that is read: some hundred characters are usual, and reading one takes longer than its
 * length.
 */
const CHALLENGE_CHARACTERS_MAX = 2048;

function quotedText(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** The strongest challenge: SHA-256 before MD5 before Basic; null where none of them is offered. */
function strongest(challenges: readonly string[]): Challenge | null {
  const short = challenges.filter(({ length }) => length <= CHALLENGE_CHARACTERS_MAX);
  const found = short.slice(0, CHALLENGES_MAX).flatMap((header) => challengesIn(header)).map(readChallenge);
  const of = (algorithm: string) =>
    found.find((one) => one?.scheme === "digest" && one.algorithm === algorithm);
  return of("SHA-256") ?? of("MD5") ?? found.find((one) => one?.scheme === "basic") ?? null;
}

/** The challenges in a header: it may have several, each of which begins with the name of its scheme. */
function challengesIn(header: string): string[] {
  return header.split(/(?:^|,\s*)(?=(?:basic|digest)(?:\s+[a-z]|\s*(?:,|$)))/i).filter((text) =>
    text.trim() !== ""
  );
}

function readChallenge(text: string): Challenge | null {
  const [, scheme = "", rest = ""] = /^\s*(basic|digest)\b(.*)$/is.exec(text) ?? [];
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
  const [, algorithm, session] = /^(MD5|SHA-256)(-SESS)?$/.exec(
    (fields.get("algorithm") || "MD5").toUpperCase(),
  ) ?? [];
  const nonce = fields.get("nonce");
  const qops = (fields.get("qop") ?? "").toLowerCase().split(/[\s,]+/).filter((one) => one !== "");
  const qop = qops.length === 0 ? null : (["auth", "auth-int"] as const).find((one) => qops.includes(one));
  if (nonce === undefined || algorithm === undefined || qop === undefined) return null;
  const isStale = fields.get("stale")?.toLowerCase() === "true";
  const opaque = fields.get("opaque");
  return {
    ...{ scheme: "digest", realm: fields.get("realm") ?? "", nonce, opaque, qop, isStale },
    ...{ algorithm: algorithm as "MD5" | "SHA-256", isOfSession: session !== undefined },
  };
}
