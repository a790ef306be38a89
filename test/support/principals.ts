/** What a service writes in place of an API key, worked out here once more from its secret. */

import { createHash, createHmac } from "node:crypto";
import { join } from "node:path";

/** The name of the holder of the key in the configuration. */
export function configuredName(apiKey: string): string {
  return `api-key:${sha256(apiKey)}`;
}

/** The name of the holder of the key in the events and files of the data directory. */
export function writtenName(dataDir: string, apiKey: string): string {
  const secret = Deno.readTextFileSync(join(dataDir, "principal-secret")).slice(0, 64);
  const hmac = createHmac("sha256", Uint8Array.fromHex(secret)).update(configuredName(apiKey));
  return `api-key:${hmac.digest("hex")}`;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
