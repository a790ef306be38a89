/** The measures of labelled videos, as one compressed file: what a detector is fitted on. */

/** A header of any form, and rows of numbers. */
export interface Rows {
  /** How many numbers a row has. */
  readonly width: number;
  /** The rows, one after the other. */
  readonly values: Uint8Array<ArrayBuffer>;
}

/** What is asked of a candidate: it is a cut, or is none, or both answers are right. */
export type Label = 0 | 1 | 2;
export const EITHER = 2;

/** A video and its candidates, in order. Lists have one value for each candidate. */
export interface LabelledVideoRows {
  readonly name: string;
  readonly kind: string;
  readonly labels: readonly Label[];
  /** Index of the origin that is shown before the frame, and from it on. */
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** A video and its candidates for cuts. */
export interface VideoRows extends LabelledVideoRows {
  /** The true cuts. */
  readonly cuts: readonly number[];
  readonly frames: readonly number[];
}

/** The candidates of all videos, one after the other. */
export interface LabelledRows<Video extends LabelledVideoRows = LabelledVideoRows> extends Rows {
  /** Sum of the rows of a drawn film: it is another one where a kernel measures otherwise. */
  readonly kernelSum: string;
  /** Clips of one origin show the same things; see `edits/files/origins.ts`. */
  readonly origins: readonly string[];
  readonly videos: readonly Video[];
}

export type CutRows = LabelledRows<VideoRows>;

const LENGTH_BYTES = 4;

/** Writes rows into a file, column by column, because equal numbers lie together then and compress better. */
export async function writeRows(path: string | URL, { values, ...header }: Rows): Promise<void> {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(LENGTH_BYTES + text.length + values.length);
  new DataView(bytes.buffer).setUint32(0, text.length);
  bytes.set(text, LENGTH_BYTES);
  bytes.set(turned(values, header.width, values.length / header.width), LENGTH_BYTES + text.length);
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  await Deno.writeFile(path, packed);
}

export async function readRows<R extends Rows = CutRows>(path: string | URL): Promise<R> {
  const packed = new Blob([await Deno.readFile(path)]).stream();
  const unpacked = packed.pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  const end = LENGTH_BYTES + new DataView(bytes.buffer).getUint32(0);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(LENGTH_BYTES, end))) as Rows;
  const columns = bytes.subarray(end);
  return { ...header, values: turned(columns, columns.length / header.width, header.width) } as R;
}

/** Turns a table: `across` values in a line become `along` values in a line. */
function turned(values: Uint8Array, across: number, along: number): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(values.length);
  for (let y = 0; y < along; y++) {
    for (let x = 0; x < across; x++) result[x * along + y] = values[y * across + x]!;
  }
  return result;
}

/** Rows with the sum of the measures of a drawn film, and the videos that they are of. */
interface MeasuredRows extends Rows {
  readonly kernelSum: string;
  readonly videos: readonly unknown[];
}

/**
 * All videos of both, one after the other, for rows that do not refer to origins. Both must be measured by
 * the same kernel.
 */
export function appendedRows<R extends MeasuredRows>(first: R, second: R): R {
  if (first.kernelSum !== second.kernelSum) throw new Error("The rows to join were measured otherwise");
  const values = new Uint8Array(first.values.length + second.values.length);
  values.set(first.values);
  values.set(second.values, first.values.length);
  return { ...first, videos: [...first.videos, ...second.videos], values };
}

/**
 * All videos of both, one after the other, with the origins of both, as candidates have them. Both must be
 * measured by the same kernel.
 */
export function joinedRows(first: CutRows, second: CutRows): CutRows {
  const origins = [...new Set([...first.origins, ...second.origins])];
  const videosOf = ({ videos, origins: own }: CutRows) => {
    const places = own.map((origin) => origins.indexOf(origin));
    return videos.map((video): VideoRows => ({
      ...video,
      before: video.before.map((origin) => places[origin]!),
      after: video.after.map((origin) => places[origin]!),
    }));
  };
  return appendedRows(
    { ...first, origins, videos: videosOf(first) },
    { ...second, origins, videos: videosOf(second) },
  );
}
