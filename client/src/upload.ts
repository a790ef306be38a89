/** Upload of a file with progress: one multipart body, which the service takes whole or not at all. */

import { REFUSAL_BYTES_MAX, textOf } from "./http/bodies.ts";
import { type Connection, failed, failureOf, type RequestOptions } from "./http/connection.ts";
import { ServiceError, UploadError } from "./http/errors.ts";
import { Deadline } from "./http/waiting.ts";
import type { UploadResponse } from "./types.ts";

/** A file whose content is read while it is sent, and not held in memory. */
export interface FileStream {
  stream: ReadableStream<Uint8Array>;
  /** Its ending decides about the type. */
  name: string;
  /** In bytes; without it `total` of the progress is null. */
  size?: number;
}

/** Bytes of the file that were handed to the connection, and how many there are. */
export type UploadProgress = (loaded: number, total: number | null) => void;

const CALL = { method: "POST", path: "/v1/upload" } as const;
const WHAT = "POST /v1/upload";
/** The service allows an upload an hour. */
const UPLOAD_TIMEOUT_MS = 3_600_000;

/** Sends the file once; nothing is repeated. Throws UploadError, or the reason of the signal. */
export async function upload(
  connection: Connection,
  file: Blob | FileStream,
  onProgress: UploadProgress | undefined,
  options: RequestOptions = {},
): Promise<UploadResponse> {
  const { signal, timeoutMs = UPLOAD_TIMEOUT_MS } = options;
  signal?.throwIfAborted();
  const deadline = new Deadline(timeoutMs, signal);
  try {
    const sendIt = file instanceof Blob && hasRequestProgress() ? sendByXhr : sendByFetch;
    const answer = connection.parse<UploadResponse>(
      CALL,
      await sendIt(connection, file, onProgress, deadline),
    );
    deadline.end();
    return answer;
  } catch (error) {
    deadline.end(true);
    const cause = failed(WHAT, error, { signal, timeoutMs: deadline.isOver ? timeoutMs : undefined });
    if (signal?.aborted || !(cause instanceof ServiceError)) throw cause;
    throw new UploadError(`the file was not uploaded: ${cause.message}`, { cause });
  }
}

/**
 * Only XMLHttpRequest tells a page how much of a body is sent; `fetch` of browsers sends no stream over
 * HTTP/1.1.
 */
function hasRequestProgress(): boolean {
  return typeof (globalThis as { XMLHttpRequest?: unknown }).XMLHttpRequest === "function";
}

async function sendByFetch(
  connection: Connection,
  file: Blob | FileStream,
  onProgress: UploadProgress | undefined,
  deadline: Deadline,
): Promise<string> {
  const { stream, size = null } = file instanceof Blob ? { stream: file.stream(), size: file.size } : file;
  const reader = stream.getReader();
  const boundary = `part-${Math.random().toString(36).slice(2)}${Date.now()}`;
  const body = multipart(reader, { boundary, name: nameOf(file), size, onProgress });
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  try {
    const response = await connection.open({ ...CALL, body, headers }, deadline);
    return await textOf(WHAT, response, REFUSAL_BYTES_MAX);
  } finally {
    // The service may refuse before it has everything.
    await reader.cancel().catch(() => {});
  }
}

interface Part {
  readonly boundary: string;
  readonly name: string;
  readonly size: number | null;
  readonly onProgress: UploadProgress | undefined;
}

/** The form with the one file, read as fast as the connection takes it. */
function multipart(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  part: Part,
): ReadableStream<Uint8Array> {
  const text = new TextEncoder();
  const name = part.name.replace(/["\r\n]/g, encodeURIComponent);
  let loaded = 0;
  return new ReadableStream({
    start(controller) {
      controller.enqueue(text.encode(
        `--${part.boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\n` +
          "content-type: application/octet-stream\r\n\r\n",
      ));
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        controller.enqueue(text.encode(`\r\n--${part.boundary}--\r\n`));
        return controller.close();
      }
      controller.enqueue(value);
      part.onProgress?.(loaded += value.byteLength, part.size);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function nameOf(file: Blob | FileStream): string {
  return (file as { name?: string }).name ?? "upload.mp4";
}

/** What of XMLHttpRequest is used; the types of browsers are not those of other runtimes. */
interface Xhr {
  readonly upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null };
  readonly status: number;
  readonly responseText: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: FormData): void;
  abort(): void;
}

function sendByXhr(
  connection: Connection,
  file: Blob | FileStream,
  onProgress: UploadProgress | undefined,
  deadline: Deadline,
): Promise<string> {
  const xhr = new (globalThis as unknown as { XMLHttpRequest: new () => Xhr }).XMLHttpRequest();
  const { size } = file as Blob;
  const form = new FormData();
  form.append("file", file as Blob, nameOf(file));
  return new Promise<string>((resolve, reject) => {
    deadline.signal.addEventListener("abort", () => xhr.abort(), { once: true });
    xhr.open("POST", connection.baseUrl + CALL.path);
    for (const [name, value] of Object.entries(connection.identity)) xhr.setRequestHeader(name, value);
    // The form around the file counts too; what is reported is the file alone.
    xhr.upload.onprogress = ({ loaded, total }) =>
      onProgress?.(Math.max(0, Math.min(size, loaded - (total - size))), size);
    xhr.onload = () => {
      if (xhr.status >= 200 && xhr.status < 300) return resolve(xhr.responseText);
      const headers = { get: (name: string) => xhr.getResponseHeader(name) };
      reject(failureOf(WHAT, { status: xhr.status, headers } as Response, xhr.responseText));
    };
    xhr.onerror = () => reject(new Error("the connection broke, or the service does not allow this origin"));
    xhr.onabort = () => reject(new Error("ended"));
    xhr.send(form);
  });
}
