/** Files of the data directory that hold a secret of the instance. */

const OTHERS = 0o077;

/** The text of the file; null where there is none. Errors: it is open to others. */
export function readSecretFile(path: string): string | null {
  try {
    if (((Deno.statSync(path).mode ?? 0) & OTHERS) !== 0) {
      throw new Error(`${path} must be closed to other users, as it is a secret; run chmod 600 on it`);
    }
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
