/** Files that appear under their name only when they are whole. */

import { CliError } from "../failure.ts";

/** Writes a text or bytes beside `path` and gives it that name at the end; a file that is there is replaced. */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    await Deno.writeFile(
      temporary,
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    );
    await Deno.rename(temporary, path);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw new CliError("failed", `cannot write ${path}: ${(error as Error).message}`);
  }
}
