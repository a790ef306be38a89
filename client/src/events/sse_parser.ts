/** Server-sent events out of the text of a stream, piece by piece. */

import { ParseError } from "../http/errors.ts";

export interface SseMessage {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Lines end with LF, CRLF or CR, also where a piece ends between the two characters. */
export class SseParser {
  readonly #maxCharacters: number;
  /** Of the line that has not ended yet. */
  #pieces: string[] = [];
  #data: string[] = [];
  #id = "";
  #event = "";
  /** Characters kept for the message that has not ended yet. */
  #kept = 0;
  #endedWithCr = false;

  /** A message of more characters is a ParseError. */
  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  /** The messages that end in this piece. */
  push(text: string): SseMessage[] {
    const messages: SseMessage[] = [];
    let start = this.#endedWithCr && text.startsWith("\n") ? 1 : 0;
    this.#endedWithCr = text === "" ? this.#endedWithCr : text.endsWith("\r");
    for (const { index, 0: end } of text.matchAll(/\r\n?|\n/g)) {
      if (index < start) continue;
      this.#keep(text.slice(start, index));
      const message = this.#line(this.#pieces.join(""));
      if (message) messages.push(message);
      this.#pieces = [];
      start = index + end.length;
    }
    this.#keep(text.slice(start));
    return messages;
  }

  #keep(piece: string): void {
    if (piece === "") return;
    this.#pieces.push(piece);
    this.#kept += piece.length;
    if (this.#kept > this.#maxCharacters) {
      throw new ParseError(`an event of the stream has more than ${this.#maxCharacters} characters`, piece);
    }
  }

  #line(line: string): SseMessage | undefined {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id") this.#id = value;
    else this.#kept -= line.length; // A comment, or a field that means nothing here.
    return undefined;
  }

  #end(): SseMessage | undefined {
    const message = { id: this.#id, event: this.#event, data: this.#data.join("\n") };
    const hasData = this.#data.length > 0;
    this.#data = [];
    this.#event = "";
    this.#id = "";
    this.#kept = 0;
    return hasData ? message : undefined;
  }
}
