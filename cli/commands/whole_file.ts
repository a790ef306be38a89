/** Files that appear under their name only when they are whole. */

import { CliError } from "../failure.ts";

/** Writes a text beside `path` and gives it that name at the end; a file that is there is replaced. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    await Deno.writeTextFile(temporary, text);
    await Deno.rename(temporary, path);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw new CliError("failed", `cannot write ${path}: ${(error as Error).message}`);
  }
}
