/** Replacements for the resolver, the trusted roots and the target of outbound connections, for tests only.
 */

import type { Resolve } from "./address_guard.ts";

export interface Outbound {
  /** Looks up host names; the system's resolver unless given. */
  readonly resolve?: Resolve;
  /** PEM certificates to trust; those of the runtime and of the machine unless given. */
  readonly roots?: readonly string[];
  /** Replaces the address of a connection, after the guard has checked it: test servers are on loopback. */
  readonly reroute?: (address: string) => string;
}

/** An {@link Outbound} with a way to the certificates, for code that opens connections. */
export type TrustedOutbound = Omit<Outbound, "roots"> & { readonly roots: Roots };

/**
 * Gives the PEM certificates of the authorities to trust. They are hundreds, so they are read for the first
 * who asks.
 */
export type Roots = () => readonly string[];
