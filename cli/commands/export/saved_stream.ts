/** An answer of the server written to a file piece by piece. */

import { CliError } from "../../failure.ts";
import { openStream, piecesOf, type StreamRequest } from "../../http.ts";
import type { Settings } from "../../settings/settings.ts";

export interface SavedStream extends StreamRequest {
  readonly file: string;
  readonly onPiece?: (piece: Uint8Array) => void;
}

/** The bytes that were written. */
export async function saveStream(settings: Settings, request: SavedStream): Promise<number> {
  const { file: path, onPiece, signal } = request;
  const response = await openStream(settings, request);
  using file = await Deno.open(path, { write: true, createNew: true });
  let bytes = 0;
  for await (const piece of piecesOf(response, { url: settings.url, signal })) {
    for (let at = 0; at < piece.length;) at += writePart(file, path, piece.subarray(at));
    bytes += piece.length;
    onPiece?.(piece);
  }
  return bytes;
}

function writePart(file: Deno.FsFile, path: string, bytes: Uint8Array): number {
  try {
    return file.writeSync(bytes);
  } catch (error) {
    throw new CliError("failed", `cannot write ${path}: ${(error as Error).message}`);
  }
}
