/** Reads an upload form piece by piece: neither the form nor the file in it is ever in memory as a whole. */

import type { Busboy } from "@fastify/busboy";
import { LIMITS } from "../../contract/limits.ts";
import { Rejection } from "../answers/reply.ts";
import type { BodyCall } from "./body.ts";
import type { BodyLimits, ReceivedBody } from "./received_body.ts";

/** The first part of the wanted name. Disposing it stops reading the form, wherever that is. */
export interface FilePart extends Disposable {
  /** As the caller sent it, with any path in it; empty when it sent none. */
  readonly filename: string;
  /**
   * The part's bytes, read as fast as they are consumed; afterwards reads the rest of the form. Each array is
   * valid until the next one is requested. Throws a {@link Rejection} when the form is too long, late, or
   * ends before its closing delimiter.
   */
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Reads a multipart/form-data body up to the first part called `field`; undefined when there is none. 415,
 * 400, 413 and 408 are plain text (docs/api.md#plain-rejections). A declared length above the limit is
 * refused before anything is read.
 *
 * ```
 *   body ─piece→ [parser] ─bytes of the part→ consumed until there are none ─→ next piece
 * ```
 */
export async function firstFilePart(
  { request: { raw: request }, caller, use }: BodyCall,
  field: string,
  limits: BodyLimits = {
    bodyBytes: LIMITS.body.uploadBytes,
    idleMs: LIMITS.upload.idleMs,
    receiveMs: LIMITS.upload.receiveMs,
  },
): Promise<FilePart | undefined> {
  using opening = new DisposableStack();
  const body = opening.use(use.bodies.open(request, caller.principalKey, limits));
  const contentType = formType(request.headers.get("content-type"));
  // With the first form. Of a package that is no ES module the single file has only the default.
  const { default: { Busboy: Parser } } = await import("@fastify/busboy");
  const form = new FormParser(Parser, contentType, field);
  while (form.filename === undefined) {
    const piece = await body.next();
    if (piece === null) {
      await form.end();
      break;
    }
    await form.write(piece);
  }
  if (form.filename === undefined) return undefined;
  opening.move(); // the part reads on
  return {
    filename: form.filename,
    content: contentOf(form, body),
    [Symbol.dispose]: () => body[Symbol.dispose](),
  };
}

/**
 * The parser emits the bytes in order, so once it has emitted bytes of one chunk it holds none of the chunk
 * before. The memory of that chunk is freed at once: the garbage collector would run only after some 30 MB.
 */
async function* contentOf(
  form: FormParser,
  body: ReceivedBody,
): AsyncGenerator<Uint8Array> {
  yield* form.take();
  let before: ArrayBuffer | undefined;
  for (let piece = await body.next(); piece !== null; piece = await body.next()) {
    await form.write(piece);
    const taken = form.take();
    yield* taken;
    if (taken.some(({ buffer }) => buffer === piece!.buffer)) before?.transfer(0);
    before = piece.buffer;
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

/**
 * Turns the parser's events into values: takes a chunk of the form, and returns the bytes of the wanted part
 * in it.
 */
class FormParser {
  /** Known as soon as the part's headers were parsed. */
  filename: string | undefined;
  readonly #parser: InstanceType<typeof Busboy>;
  readonly #finished = Promise.withResolvers<void>();
  #taken: Uint8Array[] = [];
  #isCutShort = false;
  #hasTooManyParts = false;

  constructor(Parser: typeof Busboy, contentType: string, field: string) {
    this.#parser = new Parser({
      headers: { "content-type": contentType },
      // The wanted part is a file whatever type it declares. As no other fields or files are allowed, the
      // rest is skipped.
      isPartAFile: (name) => name === field,
      limits: {
        files: 1,
        fields: 0,
        parts: LIMITS.upload.partsMax,
        headerSize: LIMITS.upload.partHeaderBytesMax,
      },
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
    this.#parser.on("partsLimit", () => {
      this.#hasTooManyParts = true;
      this.#finished.resolve();
    });
    this.#parser.on("finish", () => this.#finished.resolve());
  }

  /** Resolves when the chunk was parsed. */
  async write(chunk: Uint8Array): Promise<void> {
    const parsed = new Promise<void>((resolve) => this.#parser.write(chunk, () => resolve()));
    await Promise.race([parsed, this.#finished.promise]);
    this.#assertWhole();
  }

  /** Throws when the closing delimiter did not come. */
  async end(): Promise<void> {
    this.#parser.end();
    await this.#finished.promise;
    this.#assertWhole();
  }

  /** The bytes of the part since the last call. */
  take(): Uint8Array[] {
    const taken = this.#taken;
    this.#taken = [];
    return taken;
  }

  #assertWhole(): void {
    if (this.#hasTooManyParts) {
      throw new Rejection(400, `The form has more than ${LIMITS.upload.partsMax} parts`);
    }
    if (this.#isCutShort) throw cutShort();
  }
}

function cutShort(): Rejection {
  return new Rejection(400, "The form is malformed or was cut short");
}
