/** Bodies of answers, which are read up to a bound only. */

import { ParseError } from "./errors.ts";

/** Of the answer of a refusal no more is read. */
export const REFUSAL_BYTES_MAX = 65_536;

/**
 * The body piece by piece. `what` is the request as a person names it. One of more than `maxBytes` is a
 * ParseError.
 */
export async function* piecesOf(
  what: string,
  response: Response,
  maxBytes: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const reader = response.body?.getReader();
  let left = maxBytes;
  try {
    for (let next = await reader?.read(); next && !next.done; next = await reader!.read()) {
      left -= next.value.byteLength;
      if (left < 0) throw new ParseError(`${what}: the answer has more than ${maxBytes} bytes`, "");
      yield next.value;
    }
  } finally {
    // The caller ends the request; what still comes is not waited for.
    reader?.cancel().catch(() => {});
  }
}

/** The whole body. */
export async function bodyOf(what: string, response: Response, maxBytes: number): Promise<Blob> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of piecesOf(what, response, maxBytes)) pieces.push(piece);
  return new Blob(pieces, { type: response.headers.get("content-type") ?? "" });
}

/** The whole body as text. */
export async function textOf(what: string, response: Response, maxBytes: number): Promise<string> {
  const { headers } = response;
  const length = headers.get("content-length");
  // The connection ends such a body itself.
  const isBounded = length !== null && Number(length) <= maxBytes && !headers.has("content-encoding");
  return isBounded ? await response.text() : await (await bodyOf(what, response, maxBytes)).text();
}

/** The beginning of the text of a refusal, for its message. */
export async function refusalText(response: Response): Promise<string> {
  return await textOf("", response, REFUSAL_BYTES_MAX).catch((error) => {
    if (error instanceof ParseError) return "";
    throw error;
  });
}

/** A ParseError where the answer says that it is something else than `mediaType`. */
export function checkType(what: string, response: Response, mediaType: string): void {
  const type = response.headers.get("content-type") ?? "none";
  if (type.startsWith(mediaType)) return;
  throw new ParseError(`${what}: the answer has the type ${type.slice(0, 80)}, not ${mediaType}`, "");
}
