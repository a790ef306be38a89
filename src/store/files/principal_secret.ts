/** The secret behind the names of principals: a file of the data directory, made at the first start with an
 * API key.
 */

import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { World } from "../../base/world.ts";
import { PrincipalNames } from "../../model/principal_names.ts";
import { knownFormat, raiseFormat, SEALED_NAMES_FORMAT } from "./data_format.ts";
import { readSecretFile } from "./secret_file.ts";
import { replaceSmallFile } from "./small_file.ts";

/** The file of the secret: 64 hex digits, a space and the CRC-32 of these digits in 8; mode 0600. */
export const PRINCIPAL_SECRET_FILE = "principal-secret";
const SECRET_BYTES = 32;

/**
 * The names of principals in this directory. Call it with the directory locked and its format checked, and
 * before anything in it is read. When it resolves, the secret is on the disk and the format says so: then a
 * start without the secret is refused. Errors: as {@link readPrincipalSecret}.
 */
export async function openPrincipalNames(
  dataDir: string,
  apiKeys: readonly string[],
  world: Pick<World, "randomBytes">,
): Promise<PrincipalNames> {
  let secret = readPrincipalSecret(dataDir, knownFormat(dataDir) ?? 0);
  if (apiKeys.length > 0) {
    secret ??= makeSecret(dataDir, world);
    await raiseFormat(dataDir, SEALED_NAMES_FORMAT);
  }
  return new PrincipalNames(secret, apiKeys);
}

/**
 * Reads the secret; null where there is none yet. Errors: the file is missing although a directory of this
 * format has had one, is open to others, or is damaged; no message has anything of it.
 */
export function readPrincipalSecret(dataDir: string, format: number): Uint8Array | null {
  const path = join(dataDir, PRINCIPAL_SECRET_FILE);
  const text = readSecretFile(path);
  if (text === null && format < SEALED_NAMES_FORMAT) return null;
  const digits = text?.slice(0, 2 * SECRET_BYTES) ?? "";
  if (/^[0-9a-f]{64}$/.test(digits) && text === textOf(digits)) return Uint8Array.fromHex(digits);
  throw new Error(
    `Cannot open the data directory: ${path} is ${text === null ? "missing" : "damaged"}, and without it ` +
      "no API key has its runs; put a copy of it there, as every backup has one",
  );
}

function makeSecret(dataDir: string, world: Pick<World, "randomBytes">): Uint8Array {
  const secret = world.randomBytes(SECRET_BYTES);
  replaceSmallFile(dataDir, PRINCIPAL_SECRET_FILE, { text: textOf(secret.toHex()), isSynced: true });
  return secret;
}

function textOf(digits: string): string {
  return `${digits} ${crc32(digits).toString(16).padStart(8, "0")}\n`;
}
