/** The search index as a file, so that a start does not read every description again; may be deleted any time. */

import { BLOCK_TEXTS, blocksOf, SEGMENT_TEXTS, SIGNATURE_WORDS, TextSegment } from "./text_segment.ts";
import { PrincipalDescriptions } from "./principal_index.ts";
import { SummedReader, SummedWriter } from "./bytes.ts";
import { DistinctTexts } from "./distinct_texts.ts";

/*
 *   offset    0   8  "searches" in ASCII
 *             8   4  format version
 *            12   4  length of the head, h
 *            16   h  head: JSON in UTF-8, see Head
 *          16+h   4  CRC-32 of everything before
 *                    for each entry of head.principals, each number 4 bytes:
 *                       events sequence numbers, events run numbers, events text numbers, texts hashes
 *                       for each segment of up to 8,192 texts:
 *                          how many of its texts are in blocks, 1 if it has a signature or 0, its size in bytes
 *                          the end of each text, within its block where it is in one, else alone
 *                          the signature, if it has one
 *                          the texts that are in no block and then the blocks, one byte a character
 *        last 4      CRC-32 of everything before
 *
 * All numbers little-endian.
 */
const MAGIC = "searches";
const FORMAT_VERSION = 1;
const START_BYTES = 16;

interface Head {
  readonly lastSeq: number;
  readonly fingerprint: string;
  readonly principals: readonly {
    readonly principalKey: string;
    readonly runIds: readonly string[];
    readonly events: number;
    readonly texts: number;
  }[];
}

/** What the file holds. */
export interface IndexState {
  /** The last event of the log that the index knows of. */
  readonly lastSeq: number;
  /** Something that tells that event from any other under its number. */
  readonly fingerprint: string;
  readonly principals: ReadonlyMap<string, PrincipalDescriptions>;
}

/** Awaited now and then while much is read or written, so that others get their turn; throws to end the work. */
export type GiveWay = () => Promise<void>;

/** Errors: `NotFound` when there is no file, and an Error that says why when it cannot be used. */
export async function loadIndex(path: string, yieldToEventLoop: GiveWay): Promise<IndexState> {
  using file = Deno.openSync(path, { read: true });
  const reader = new SummedReader(file);
  const start = reader.bytes(START_BYTES);
  if (new TextDecoder().decode(start.subarray(0, MAGIC.length)) !== MAGIC) {
    throw new Error("it is no search index");
  }
  const [version, headBytes] = new Uint32Array(start.slice(MAGIC.length).buffer) as unknown as [
    number,
    number,
  ];
  if (version !== FORMAT_VERSION) throw new Error(`its format is ${version}`);
  const headText = new TextDecoder().decode(reader.bytes(headBytes));
  reader.checkSum();
  const head = JSON.parse(headText) as Head;
  const principals = new Map<string, PrincipalDescriptions>();
  for (const { principalKey, runIds, events, texts } of head.principals) {
    const columns = {
      seqs: reader.numbers(events),
      runs: reader.numbers(events),
      texts: reader.numbers(events),
      runIds,
    };
    const hashes = reader.numbers(texts);
    const segments: TextSegment[] = [];
    for (let left = texts; left > 0; left -= SEGMENT_TEXTS) {
      segments.push(readSegment(reader, Math.min(left, SEGMENT_TEXTS)));
      if (reader.isTurnOver()) await yieldToEventLoop();
    }
    principals.set(principalKey, new PrincipalDescriptions(columns, new DistinctTexts(segments, hashes)));
    if (reader.isTurnOver()) await yieldToEventLoop();
  }
  reader.checkSum();
  return { lastSeq: head.lastSeq, fingerprint: head.fingerprint, principals };
}

/** Writes the state as it is at the call; the index may go on to grow meanwhile. Returns the size of the file. */
export async function saveIndex(path: string, state: IndexState): Promise<number> {
  const parts = Array.from(state.principals, ([principalKey, principal]) => ({
    principalKey,
    ...principal.events(),
    hashes: principal.texts.hashes,
    segments: principal.texts.segments.map((segment) => segment.content()),
  }));
  const head = new TextEncoder().encode(JSON.stringify(
    {
      lastSeq: state.lastSeq,
      fingerprint: state.fingerprint,
      principals: parts.map(({ principalKey, runIds, seqs, hashes }) => ({
        principalKey,
        runIds,
        events: seqs.length,
        texts: hashes.length,
      })),
    } satisfies Head,
  ));
  const temporary = `${path}.new`;
  try {
    using file = await Deno.open(temporary, { create: true, write: true, truncate: true, mode: 0o600 });
    const writer = new SummedWriter(file);
    await writer.text(MAGIC);
    await writer.numbers(Uint32Array.of(FORMAT_VERSION, head.length));
    await writer.bytes(head);
    await writer.sum();
    for (const { seqs, runs, texts, hashes, segments } of parts) {
      for (const column of [seqs, runs, texts, hashes]) await writer.numbers(column);
      for (const { blocks, ends, signature, open } of segments) {
        const strings = [...open, ...blocks];
        const characters = strings.reduce((sum, string) => sum + string.length, 0);
        await writer.numbers(Uint32Array.of(ends.length, signature === undefined ? 0 : 1, characters));
        await writer.numbers(ends);
        await writer.numbers(Uint32Array.from(open, (text) => text.length));
        if (signature !== undefined) await writer.numbers(signature);
        for (const string of strings) await writer.text(string);
      }
    }
    await writer.sum();
    await writer.flush();
    await Deno.rename(temporary, path);
    return writer.written;
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
}

function readSegment(reader: SummedReader, texts: number): TextSegment {
  const [blocked, hasSignature, characters] = reader.numbers(3) as unknown as [number, number, number];
  if (blocked > texts || blocked % BLOCK_TEXTS !== 0) throw new Error("it is damaged");
  const ends = reader.numbers(blocked);
  const openLengths = reader.numbers(texts - blocked);
  const signature = hasSignature === 1 ? reader.numbers(SIGNATURE_WORDS) : undefined;
  const all = reader.text(characters);
  let at = 0;
  const open = Array.from(openLengths, (length) => all.slice(at, at += length));
  const blocks = blocksOf(all.slice(at), ends);
  return new TextSegment({ blocks, ends, signature, open });
}
