/** The file of the search index, so that a start does not read every description again. */

import { BLOCK_TEXTS, blocksOf, SEGMENT_TEXTS, SIGNATURE_WORDS, TextSegment } from "./text_segment.ts";
import { PrincipalIndex } from "./principal_index.ts";
import { ChecksumReader, ChecksumWriter } from "./bytes.ts";
import { DistinctTexts } from "./distinct_texts.ts";

/*
 *   offset    0   8  "searches" in ASCII
 *             8   4  format version
 *            12   4  length of the header, h
 *            16   h  header: JSON in UTF-8, see SearchIndexHeader
 *          16+h   4  CRC-32 of everything before
 *                    for each entry of header.principals, with `events` and `texts` of that entry:
 *                       a sequence number for each event, a run number for each event, a text number for each event,
 *                       a hash for each text
 *                       for each segment of up to 8,192 texts:
 *                          how many of its texts are in blocks, 1 if it has a signature or else 0, its characters
 *                          for each text in a block its end within the block, for each other text its length
 *                          the signature, if it has one
 *                          the texts that are in no block, then the blocks, one byte for each character
 *        last 4      CRC-32 of everything before
 *
 * All numbers have 4 bytes and are little-endian. The file may be deleted at any time: the next start then
 * reads the whole log. See docs/protocols.md#search-index.
 */
const MAGIC = "searches";
const FORMAT_VERSION = 3;

interface SearchIndexHeader {
  readonly lastSeq: number;
  readonly fingerprint: string;
  readonly principals: readonly {
    readonly principalKey: string;
    readonly runIds: readonly string[];
    readonly events: number;
    readonly texts: number;
  }[];
}

/** The content of the file. */
export interface SearchIndexState {
  /** The last event of the log that is in the index. */
  readonly lastSeq: number;
  /** A text that distinguishes that event from another one with the same number, in another log. */
  readonly fingerprint: string;
  readonly principals: ReadonlyMap<string, PrincipalIndex>;
}

/**
 * Reads the file. Awaits `yieldOrStop` regularly, so that other requests are served meanwhile; what that
 * throws ends the reading. Errors: `NotFound` when there is no file, and an Error with the reason when it
 * cannot be used.
 */
export async function loadIndex(path: string, yieldOrStop: () => Promise<void>): Promise<SearchIndexState> {
  using file = Deno.openSync(path, { read: true });
  const reader = new ChecksumReader(file, file.statSync().size);
  if (new TextDecoder().decode(reader.bytes(MAGIC.length)) !== MAGIC) {
    throw new Error("it is no search index");
  }
  const version = reader.number();
  const headerBytes = reader.number();
  if (version !== FORMAT_VERSION) throw new Error(`its format is ${version}`);
  const headerText = new TextDecoder().decode(reader.bytes(headerBytes));
  reader.verifyChecksum();
  const header = JSON.parse(headerText) as SearchIndexHeader;
  const principals = new Map<string, PrincipalIndex>();
  for (const { principalKey, runIds, events, texts } of header.principals) {
    const columns = {
      seqs: reader.numbers(events),
      runNumbers: reader.numbers(events),
      textNumbers: reader.numbers(events),
      runIds,
    };
    const hashes = reader.numbers(texts);
    const segments: TextSegment[] = [];
    for (let left = texts; left > 0; left -= SEGMENT_TEXTS) {
      segments.push(readSegment(reader, Math.min(left, SEGMENT_TEXTS)));
      if (reader.shouldYield()) await yieldOrStop();
    }
    principals.set(principalKey, new PrincipalIndex(columns, new DistinctTexts(segments, hashes)));
    if (reader.shouldYield()) await yieldOrStop();
  }
  reader.verifyChecksum();
  return { lastSeq: header.lastSeq, fingerprint: header.fingerprint, principals };
}

/** Writes the state at the time of the call; the index may grow meanwhile. Returns the size of the file. */
export async function saveIndex(path: string, state: SearchIndexState): Promise<number> {
  const parts = Array.from(state.principals, ([principalKey, principal]) => ({
    principalKey,
    ...principal.events(),
    hashes: principal.texts.hashes,
    segments: principal.texts.segments.map((segment) => segment.content()),
  }));
  const header = new TextEncoder().encode(JSON.stringify(
    {
      lastSeq: state.lastSeq,
      fingerprint: state.fingerprint,
      principals: parts.map(({ principalKey, runIds, seqs, hashes }) => ({
        principalKey,
        runIds,
        events: seqs.length,
        texts: hashes.length,
      })),
    } satisfies SearchIndexHeader,
  ));
  const temporary = `${path}.new`;
  try {
    using file = await Deno.open(temporary, { create: true, write: true, truncate: true, mode: 0o600 });
    const writer = new ChecksumWriter(file);
    await writer.text(MAGIC);
    await writer.numbers(Uint32Array.of(FORMAT_VERSION, header.length));
    await writer.bytes(header);
    await writer.checksum();
    for (const { seqs, runNumbers, textNumbers, hashes, segments } of parts) {
      for (const column of [seqs, runNumbers, textNumbers, hashes]) await writer.numbers(column);
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
    await writer.checksum();
    await writer.flush();
    await Deno.rename(temporary, path);
    return writer.writtenBytes;
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
}

function readSegment(reader: ChecksumReader, texts: number): TextSegment {
  const textsInBlocks = reader.number();
  const hasSignature = reader.number() === 1;
  const characters = reader.number();
  if (textsInBlocks > texts || textsInBlocks % BLOCK_TEXTS !== 0) throw new Error("it is damaged");
  const ends = reader.numbers(textsInBlocks);
  const openLengths = reader.numbers(texts - textsInBlocks);
  const signature = hasSignature ? reader.numbers(SIGNATURE_WORDS) : undefined;
  const all = reader.text(characters);
  let at = 0;
  const open = Array.from(openLengths, (length) => all.slice(at, at += length));
  const blocks = blocksOf(all.slice(at), ends);
  return new TextSegment({ blocks, ends, signature, open });
}
