/** Files and folders that appear under their name only when they are whole. */

import { CliError } from "../failure.ts";

/**
 * Writes a text or bytes beside `path` and gives it that name at the end; a file that is there is replaced.
 */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  try {
    await makeWhole(path, (temporary) =>
      Deno.writeFile(
        temporary,
        typeof content === "string" ? new TextEncoder().encode(content) : content,
      ));
  } catch (error) {
    throw cannotWrite(path, error as Error);
  }
}

/** The same for what `make` fills, where the fault may also be that of the server. */
export async function saveWhole<T>(path: string, make: (temporary: string) => Promise<T>): Promise<T> {
  try {
    return await makeWhole(path, make);
  } catch (error) {
    const isOfDisk = error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied;
    throw isOfDisk ? cannotWrite(path, error) : error;
  }
}

async function makeWhole<T>(path: string, make: (temporary: string) => Promise<T>): Promise<T> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    const made = await make(temporary);
    await Deno.rename(temporary, path);
    return made;
  } catch (error) {
    await Deno.remove(temporary, { recursive: true }).catch(() => {});
    throw error;
  }
}

function cannotWrite(path: string, error: Error): CliError {
  return new CliError("failed", `cannot write ${path}: ${error.message}`);
}
