/** Writes a long list as text, chunk by chunk, in one of several formats. See docs/api/reading.md#formats. */

import { refuse } from "../../contract/refusal.ts";
import { PageEntries, type PageQuery } from "../../flow/list_page.ts";
import { preferredType } from "../answers/accept.ts";
import { type ChunkTerms, jsonChunks, textChunks } from "../answers/reply.ts";
import { type RouteCall, wholeNumber } from "../route/call.ts";

/** How a list is written: a head, its entries with something between them, a tail. */
export interface ListForm<Entry> {
  readonly head: string;
  readonly between: string;
  /** A function where the entries decide on it. */
  readonly tail: string | (() => string);
  /** The text of an entry; of a long one in pieces. */
  entry(stored: Entry): string | AsyncIterable<string>;
}

/** A media type that a list is served as. */
export interface ListFormat<Entry> {
  /** With its parameters, as the answer names it. */
  readonly contentType: string;
  /** The form of one answer; a format may have to read something of the run for it. */
  form(
    call: RouteCall,
    runId: string,
    batches: AsyncIterable<readonly Entry[]>,
  ): ListForm<Entry> | Promise<ListForm<Entry>>;
}

/** The formats by media type, the default one first. */
export type ListFormats<Entry> = readonly [
  readonly [mediaType: string, ListFormat<Entry>],
  ...(readonly [mediaType: string, ListFormat<Entry>])[],
];

/** A chunk has at least so many characters, or is the last one. */
const CHUNK_CHARACTERS = 65_536;

/** The list in the format that the request asks for. */
export async function listResponse<Entry>(
  call: RouteCall,
  { runId, formats, batches }: {
    readonly runId: string;
    readonly formats: ListFormats<Entry>;
    readonly batches: AsyncIterable<readonly Entry[]>;
  },
): Promise<Response> {
  const [[first], ...others] = formats;
  const type = preferredType(call.request.header("accept"), [first, ...others.map(([type]) => type)]);
  const [, format] = formats.find(([mediaType]) => mediaType === type)!;
  if (type !== first && batches instanceof PageEntries) {
    const field = call.request.query("limit") === undefined ? "cursor" : "limit";
    throw refuse.invalid(field, `is for ${first} alone: ${type} has no place for next_cursor`);
  }
  const text = listText(call, await format.form(call, runId, batches), batches);
  const response = await textChunks(text, format.contentType, longAnswer(call));
  response.headers.append("vary", "accept");
  return response;
}

/** The `limit` and `cursor` of a request. */
export function pageQuery(call: RouteCall): PageQuery {
  return { limit: wholeNumber(call, "limit"), cursor: call.request.query("cursor") };
}

/** The end of a JSON object whose last field is the list: a page names the cursor that reads on. */
export function jsonTail(batches: AsyncIterable<unknown>, more = ""): () => string {
  return () => {
    const next = batches instanceof PageEntries ? `,"next_cursor":${JSON.stringify(batches.nextCursor)}` : "";
    return `]${more}${next}}`;
  };
}

/** A list in JSON, in one chunk or several. */
export function jsonList<Entry>(
  call: RouteCall,
  form: ListForm<Entry>,
  batches: AsyncIterable<readonly Entry[]>,
): Promise<Response> {
  return jsonChunks(listText(call, form, batches), longAnswer(call));
}

/** An answer of several chunks waits for a permit, which it holds until it has gone. */
function longAnswer({ use, caller }: RouteCall): ChunkTerms {
  return { admit: () => use.largeReads.answer(caller) };
}

async function* listText<Entry>(
  { use }: RouteCall,
  form: ListForm<Entry>,
  batches: AsyncIterable<readonly Entry[]>,
): AsyncIterable<string> {
  let text = form.head;
  let between = "";
  for await (const batch of batches) {
    for (const stored of batch) {
      text += between;
      between = form.between;
      const entry = form.entry(stored);
      if (typeof entry === "string") text += entry;
      else {
        if (text !== "") yield text;
        yield* entry;
        text = "";
      }
      if (text.length < CHUNK_CHARACTERS) continue;
      yield text;
      text = "";
      await use.largeReads.nextPiece();
    }
  }
  const rest = text + (typeof form.tail === "string" ? form.tail : form.tail());
  if (rest !== "") yield rest;
}
