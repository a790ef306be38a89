/** An S3-compatible bucket as the place of backups: signed requests, each with a deadline, repeated after
 * faults of the other side.
 */

import { errorText } from "../base/log.ts";
import { AwsClient } from "aws4fetch";
import { createHash } from "node:crypto";
import { Deadline, pause } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { BACKUP_PART_BYTES, type BackupObject, type BackupStorage } from "../model/backup_storage.ts";

export interface S3Place {
  /** The URL of the provider, such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** The beginning of the name of every object; empty, or ends with a slash. */
  readonly prefix: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Time for one attempt: an object of 16 MiB at 1 Mbit/s takes 134 s. */
const ATTEMPT_MS = 180_000;
const ATTEMPTS_MAX = 5;
const FIRST_PAUSE_MS = 500;
/** Pages of one listing: ten million objects of 16 MiB, 160 TB. */
const PAGES_MAX = 10_000;
const TOKEN_CHARACTERS_MAX = 4096;
const FIRST_ROOM_BYTES = 64 * 1024;
const SERVER_FAULT = 500;
const TOO_MANY = 429;

interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  /** The path of the URL behind the bucket. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
}

interface S3Answer {
  readonly status: number;
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * Backups in one bucket. Addresses have the bucket in their path, which every provider takes. The bytes of
 * each object are covered by the signature, so the other side refuses what was changed on the way. No message
 * has a key, a signature or a header.
 */
export class S3Storage implements BackupStorage {
  readonly name: string;
  readonly #place: S3Place;
  readonly #client: AwsClient;
  readonly #world: World;

  constructor(place: S3Place, world: World) {
    const { accessKeyId, secretAccessKey, region } = place;
    this.name = `s3://${place.bucket}/${place.prefix}`;
    this.#place = place;
    this.#client = new AwsClient({ accessKeyId, secretAccessKey, region, service: "s3", retries: 0 });
    this.#world = world;
  }

  /**
   * Lists the objects whose names begin with `prefix`. An answer that is not a whole list is an error: what
   * is left out of a list would be lost when backups are dropped, and a backup into something that is no
   * storage would be none.
   */
  async *list(prefix: string): AsyncIterable<BackupObject> {
    let token: string | undefined;
    const tokens = new Set<string>();
    for (let page = 1; page <= PAGES_MAX; page++) {
      const query = {
        ...{ "list-type": "2", "encoding-type": "url", prefix: this.#place.prefix + prefix },
        ...(token !== undefined && { "continuation-token": token }),
      };
      const answer = await this.#send({ method: "GET", path: "", query });
      if (answer.status !== 200) throw this.#refused("list", answer);
      const xml = new TextDecoder().decode(answer.body);
      if (!LIST_RESULT.test(xml)) throw this.#noStorage("is no whole ListBucketResult");
      for (const content of xml.split("<Contents>").slice(1)) {
        const end = content.indexOf("</Contents>");
        const object = end < 0 ? null : objectIn(content.slice(0, end));
        if (object === null || !spaced(object.name).startsWith(spaced(query.prefix))) {
          throw this.#noStorage(`names an object that is not below ${query.prefix}, or has no size`);
        }
        yield { ...object, name: object.name.slice(this.#place.prefix.length) };
      }
      if (elementIn(xml, "IsTruncated") !== "true") return;
      token = elementIn(xml, "NextContinuationToken");
      if (token === undefined) throw this.#noStorage("has no NextContinuationToken, and is not the last one");
      if (token.length > TOKEN_CHARACTERS_MAX) {
        throw this.#noStorage(`has a NextContinuationToken of more than ${TOKEN_CHARACTERS_MAX} characters`);
      }
      if (tokens.has(token)) throw this.#noStorage("has the same NextContinuationToken as one before");
      tokens.add(token);
    }
    throw this.#noStorage(`has more than ${PAGES_MAX} pages`);
  }

  async get(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const answer = await this.#send({ method: "GET", path: this.#place.prefix + name });
    if (answer.status === 404 && codeOf(answer) !== "NoSuchBucket") return null;
    if (answer.status !== 200) throw this.#refused("read", answer);
    return answer.body;
  }

  async put(name: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
    const answer = await this.#send({ method: "PUT", path: this.#place.prefix + name, body });
    if (answer.status !== 200) throw this.#refused("store", answer);
  }

  async remove(name: string): Promise<void> {
    const answer = await this.#send({ method: "DELETE", path: this.#place.prefix + name });
    const isGone = answer.status === 204 || answer.status === 200 ||
      answer.status === 404 && codeOf(answer) !== "NoSuchBucket";
    if (!isGone) throw this.#refused("remove", answer);
  }

  /** Sends a request, and repeats it where it may work the next time. */
  async #send(request: S3Request): Promise<S3Answer> {
    for (let attempt = 1;; attempt++) {
      const isLast = attempt === ATTEMPTS_MAX;
      try {
        const answer = await this.#attempt(request);
        if (isLast || answer.status < SERVER_FAULT && answer.status !== TOO_MANY) return answer;
      } catch (error) {
        if (error instanceof AnswerTooLong) throw error;
        // A message of the runtime has the whole address and nothing of the headers.
        const why = errorText(error);
        if (isLast) throw new Error(`${this.#place.endpoint} cannot be reached: ${why}`);
      }
      await pause(this.#world, FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }

  async #attempt({ method, path, query = {}, body }: S3Request): Promise<S3Answer> {
    const { endpoint, bucket } = this.#place;
    const url = new URL(
      `${endpoint}/${bucket}${path === "" ? "" : `/${path.split("/").map(encodeURIComponent).join("/")}`}`,
    );
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const sha256 = createHash("sha256").update(body ?? "").digest("hex");
    using deadline = new Deadline(this.#world, ATTEMPT_MS);
    const signed = await this.#client.sign(url, {
      method,
      headers: { "x-amz-content-sha256": sha256 },
      ...(body !== undefined && { body }),
    });
    const response = await fetch(signed, { redirect: "manual", signal: deadline.signal });
    return { status: response.status, body: await this.#bodyOf(response) };
  }

  async #bodyOf({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
    let room = new Uint8Array(FIRST_ROOM_BYTES);
    let bytes = 0;
    // No object is longer, and no page of a listing, with its 1,000 names. It may come in millions of pieces,
    // so none is kept.
    for await (const piece of body ?? []) {
      const end = bytes + piece.length;
      if (end > BACKUP_PART_BYTES) {
        throw new AnswerTooLong(`${this.#place.endpoint} answers with more than ${BACKUP_PART_BYTES} bytes`);
      }
      if (end > room.length) {
        const larger = new Uint8Array(Math.max(end, room.length * 2));
        larger.set(room.subarray(0, bytes));
        room = larger;
      }
      room.set(piece, bytes);
      bytes = end;
    }
    return room.subarray(0, bytes);
  }

  #noStorage(why: string): Error {
    return new Error(
      `${this.#place.endpoint} is no S3-compatible storage: its answer to a listing of ${this.name} ${why}`,
    );
  }

  #refused(what: string, answer: S3Answer): Error {
    const code = codeOf(answer);
    return new Error(
      `${this.name} did not ${what} an object: status ${answer.status}${code ? ` ${code}` : ""}`,
    );
  }
}

/** The error of an answer that is too long; the next attempt would give the same. */
class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";
}

/** A whole list, from its root to its end: the list of an answer that was cut would be too short. */
const LIST_RESULT = /^\s*(<\?xml[^>]*\?>\s*)?<ListBucketResult(\s[^>]*)?(\/>|>.*<\/ListBucketResult>)\s*$/s;

/** A name without its encoding; some servers encode a space as a plus. */
function spaced(name: string): string {
  return name.replaceAll("+", " ");
}

/** An object of a list; null where its name is not encoded as a URL, or its size is none. */
function objectIn(xml: string): BackupObject | null {
  const [key, size] = [elementIn(xml, "Key"), elementIn(xml, "Size")];
  if (key === undefined || !/^\d{1,15}$/.test(size ?? "")) return null;
  try {
    return { name: decodeURIComponent(key), bytes: Number(size) };
  } catch {
    return null;
  }
}

/** The code of the error in the answer, such as `AccessDenied`. */
function codeOf({ body }: S3Answer): string | undefined {
  return /^\w{1,64}$/.exec(elementIn(new TextDecoder().decode(body), "Code") ?? "")?.[0];
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "&amp;": "&",
};

function elementIn(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return text?.replace(/&(lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity]!);
}
