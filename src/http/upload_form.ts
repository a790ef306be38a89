/** Reading an upload form piece by piece: neither the form nor the file in it is ever in memory as a whole. */

import { Busboy } from "@fastify/busboy";
import { deadline } from "../base/deadline.ts";
import { LIMITS } from "../model/limits.ts";
import { Rejection } from "./reply.ts";

/** The first part of the wanted name. Disposing it stops reading the form, wherever that is. */
export interface FilePart extends AsyncDisposable {
  /** As the caller gave it, paths and all; empty when it gave none. */
  readonly filename: string;
  /**
   * The part's bytes, as fast as they are taken, each good until the next are asked for; then reads the rest of the form. Throws a {@link Rejection} when the
   * form is too long, late, or ends before its closing delimiter.
   */
  readonly content: AsyncIterable<Uint8Array>;
}

export interface FormLimits {
  readonly bodyBytes: number;
  /** Longest pause between two pieces. */
  readonly idleMs: number;
  /** Longest time for all of it. */
  readonly receiveMs: number;
}

/**
 * Reads a multipart/form-data body up to the first part called `field`; undefined when there is none. 415, 400, 413
 * and 408 are plain text (contract 13.5, C6). A length that is declared too long is refused before anything is read.
 *
 * ```
 *   body ─piece→ [parser] ─bytes of the part→ taken until there are none ─→ next piece
 * ```
 */
export async function firstFilePart(
  request: Request,
  field: string,
  limits: FormLimits = {
    bodyBytes: LIMITS.body.uploadBytes,
    idleMs: LIMITS.upload.idleMs,
    receiveMs: LIMITS.upload.receiveMs,
  },
): Promise<FilePart | undefined> {
  if (Number(request.headers.get("content-length")) > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
  const form = new FormParser(formType(request.headers.get("content-type")), field);
  const pieces = bodyPieces(request.body, limits);
  try {
    while (form.filename === undefined) {
      const { done, value } = await pieces.next();
      if (done) {
        await form.end();
        break;
      }
      await form.write(value);
    }
  } catch (error) {
    await pieces.return();
    throw error;
  }
  if (form.filename === undefined) return undefined;
  return {
    filename: form.filename,
    content: contentOf(form, pieces),
    [Symbol.asyncDispose]: () => pieces.return().then(() => {}),
  };
}

/**
 * The parser gives the bytes out in order, so once some of one piece came out it holds none of the piece before. That
 * one's memory is given back at once: the collector would only come when some 30 MB have gathered.
 */
async function* contentOf(
  form: FormParser,
  pieces: AsyncGenerator<Uint8Array<ArrayBuffer>, void>,
): AsyncGenerator<Uint8Array> {
  yield* form.take();
  let before: ArrayBuffer | undefined;
  for await (const { buffer, byteOffset, length } of pieces) {
    await form.write(new Uint8Array(buffer, byteOffset, length));
    const taken = form.take();
    yield* taken;
    if (taken.some((bytes) => bytes.buffer === buffer)) before?.transfer(0);
    before = buffer;
  }
  await form.end();
  yield* form.take();
}

/** The content type of a form with a boundary as RFC 2046 5.1.1 allows it. */
function formType(contentType: string | null): string {
  if (!/^\s*multipart\/form-data\s*(;|$)/i.test(contentType ?? "")) {
    throw new Rejection(415, "Expected a body of content type multipart/form-data");
  }
  const boundary = /;\s*boundary=(?:"([^"]*)"|([^\s;"]*))/i.exec(contentType!);
  const { length } = boundary?.[1] ?? boundary?.[2] ?? "";
  if (length < 1 || length > BOUNDARY_CHARACTERS_MAX) {
    throw new Rejection(
      400,
      `The content type must have a boundary of 1 to ${BOUNDARY_CHARACTERS_MAX} characters`,
    );
  }
  return contentType!;
}

const BOUNDARY_CHARACTERS_MAX = 70;

/** The pieces of a body, within the limits; however it ends, nothing goes on reading. */
async function* bodyPieces(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  { bodyBytes, idleMs, receiveMs }: FormLimits,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  if (body === null) return;
  const reader = body.getReader();
  let isLate = false;
  const giveUp = () => {
    isLate = true;
    reader.cancel().catch(() => {}); // ends the read that waits
  };
  using _whole = deadline(receiveMs, giveUp);
  const read = async () => {
    using _pause = deadline(idleMs, giveUp);
    return await reader.read().catch(() => undefined);
  };
  let length = 0;
  try {
    for (;;) {
      const got = await read();
      if (isLate) throw new Rejection(408, "The body did not arrive in time", { connection: "close" });
      if (got === undefined) throw cutShort(); // the caller hung up
      const { done, value } = got;
      if (done) return;
      length += value.byteLength;
      if (length > bodyBytes) throw tooLarge(bodyBytes);
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The parser with its events turned into values: one piece goes in, what it holds of the wanted part comes out. */
class FormParser {
  /** Known as soon as the part's headers are. */
  filename: string | undefined;
  readonly #parser: InstanceType<typeof Busboy>;
  readonly #finished = Promise.withResolvers<void>();
  #taken: Uint8Array[] = [];
  #isCutShort = false;

  constructor(contentType: string, field: string) {
    this.#parser = new Busboy({
      headers: { "content-type": contentType },
      // Whatever type the part claims; with no other fields or files allowed, the rest is skipped unread.
      isPartAFile: (name) => name === field,
      limits: { files: 1, fields: 0, headerSize: LIMITS.upload.partHeaderBytesMax },
      preservePath: true,
    });
    const failed = () => {
      this.#isCutShort = true;
      this.#finished.resolve();
    };
    this.#parser.on("file", (_name, stream, filename) => {
      this.filename = filename ?? "";
      stream.on("data", (bytes: Uint8Array) => this.#taken.push(bytes));
      stream.on("error", failed);
    });
    this.#parser.on("error", failed);
    this.#parser.on("finish", () => this.#finished.resolve());
  }

  /** Resolves when the piece was parsed. */
  async write(piece: Uint8Array): Promise<void> {
    const parsed = new Promise<void>((resolve) => this.#parser.write(piece, () => resolve()));
    await Promise.race([parsed, this.#finished.promise]);
    this.#assertWhole();
  }

  /** Throws when the closing delimiter did not come. */
  async end(): Promise<void> {
    this.#parser.end();
    await this.#finished.promise;
    this.#assertWhole();
  }

  /** The bytes of the part that were not taken yet. */
  take(): Uint8Array[] {
    const taken = this.#taken;
    this.#taken = [];
    return taken;
  }

  #assertWhole(): void {
    if (this.#isCutShort) throw cutShort();
  }
}

function cutShort(): Rejection {
  return new Rejection(400, "The form is malformed or was cut short");
}

function tooLarge(limitBytes: number): Rejection {
  return new Rejection(413, `The body is longer than ${limitBytes} bytes`);
}
