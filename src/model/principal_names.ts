/** How the service calls principals, in memory and in all that it writes. See
 * docs/security.md#names-of-principals.
 */

import { createHmac } from "node:crypto";
import { ownerPrefix, ownerPrefixIn, principalKeyOf } from "./identifiers.ts";

/**
 * An operator calls a principal by the SHA-256 of its key, and whoever reads that name can try keys against
 * it. The service calls it by the HMAC of that name, with a secret of the instance. The other name is nowhere
 * but in the configuration, so nothing can write it.
 *
 * ```
 *   key ──SHA-256──► name in the configuration ──HMAC──► name in memory, events, files
 *                                                          ▲ current()
 *                                 data of earlier versions ┘
 * ```
 */
export class PrincipalNames {
  readonly #secret: Uint8Array | null;
  /** The present names of what earlier versions wrote: names of configured keys, prefixes of uploads. */
  readonly #current = new Map<string, string>();
  /** The earlier names, by the present ones. */
  readonly #earlier = new Map<string, string>();

  /** Makes the names. Without a secret they are all those of the configuration. */
  constructor(secret: Uint8Array | null, apiKeys: readonly string[] = []) {
    this.#secret = secret;
    for (const earlier of apiKeys.map(principalKeyOf)) {
      const name = this.sealed(earlier);
      this.#current.set(earlier, name).set(ownerPrefix(earlier), ownerPrefix(name));
      this.#earlier.set(name, earlier);
    }
  }

  ofKey(apiKey: string): string {
    return this.sealed(principalKeyOf(apiKey));
  }

  /** The name of a principal that the configuration names. */
  sealed(configured: string): string {
    if (this.#secret === null) return configured;
    return `api-key:${createHmac("sha256", this.#secret).update(configured, "utf8").digest("hex")}`;
  }

  /**
   * The present name of a principal whose name stands in data of any version. A name of no configured key
   * stays as it is.
   */
  current(written: string): string {
    return this.#current.get(written) ?? written;
  }

  /** The name that earlier versions wrote for the principal; null where no configured key has it. */
  earlier(principalKey: string): string | null {
    return this.#earlier.get(principalKey) ?? null;
  }

  /**
   * Whether the name of a file in the upload root says that it is the principal's, as this or an earlier
   * version names it.
   */
  isUploadOf(principalKey: string, filename: string): boolean {
    const prefix = ownerPrefixIn(filename);
    return prefix !== null && this.current(prefix) === ownerPrefix(principalKey);
  }
}
