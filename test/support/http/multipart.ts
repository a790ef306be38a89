/** Multipart bodies by hand, right and wrong ones. */

export const BOUNDARY = "----boundary-of-the-test";

export interface Part {
  /** The Content-Disposition line's value; without it the part has no such header. */
  readonly disposition?: string;
  readonly headers?: readonly string[];
  readonly body: string | Uint8Array;
}

/** A form of `parts` with its closing delimiter. */
export function form(parts: readonly Part[], boundary = BOUNDARY): Uint8Array<ArrayBuffer> {
  const pieces: (string | Uint8Array)[] = [];
  for (const { disposition, headers = [], body } of parts) {
    const lines = [...(disposition === undefined ? [] : [`Content-Disposition: ${disposition}`]), ...headers];
    pieces.push(`--${boundary}\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`, body, "\r\n");
  }
  return joined([...pieces, `--${boundary}--\r\n`]);
}

/** The part that uploads `body` as `filename`. */
export function filePart(body: string | Uint8Array, filename = "clip.mp4"): Part {
  return {
    disposition: `form-data; name="file"; filename="${filename}"`,
    headers: ["Content-Type: video/mp4"],
    body,
  };
}

export function joined(pieces: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const parts = pieces.map((piece) => typeof piece === "string" ? encoder.encode(piece) : piece);
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
