/** Secrets that are read from a file or from stdin, so that no shell history and no list of processes has
 * them.
 */

import { CliError } from "../failure.ts";

const BYTES_MAX = 65_536;

/** The text of the file without blanks and line breaks around it; `-` is stdin. */
export function readSecret(path: string): string {
  let text: string;
  try {
    text = path === "-" ? readInput() : Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError("usage", `cannot read ${path}: ${error instanceof Error ? error.message : error}`);
  }
  return text.trim();
}

function readInput(): string {
  const chunk = new Uint8Array(BYTES_MAX);
  let used = 0;
  for (;;) {
    const count = Deno.stdin.readSync(chunk.subarray(used));
    if (count === null) break;
    used += count;
    // A person who types ends it with Return.
    if (Deno.stdin.isTerminal() && chunk[used - 1] === 0x0a) break;
    if (used === BYTES_MAX) throw new CliError("usage", `more than ${BYTES_MAX} bytes on stdin`);
  }
  return new TextDecoder().decode(chunk.subarray(0, used));
}

/**
 * A secret as it may be shown: its last four characters where it is long enough not to be guessed from them.
 */
export function masked(secret: string): string {
  return secret.length >= 16 ? `****${secret.slice(-4)}` : "****";
}
