/** Replacements for the resolver, the trusted roots and the target of outbound connections, for tests only. */

import type { Resolve } from "./address_guard.ts";

export interface Outbound {
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
  /** PEM certificates; those of the runtime and of the machine unless given. */
  readonly roots?: readonly string[];
  /** Replaces the address of a connection, after the guard has checked it: test servers are on loopback. */
  readonly reroute?: (address: string) => string;
}

/** The same with the certificates that were read, for code that opens connections. */
export type TrustedOutbound = Outbound & { readonly roots: readonly string[] };
