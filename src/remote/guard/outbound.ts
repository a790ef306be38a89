/** How outbound connections find and trust their peers. Production leaves all of it out; tests have servers on loopback. */

import type { Resolve } from "./address_guard.ts";

export interface Outbound {
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
  /** PEM; the trusted authorities of the runtime and the machine unless given. */
  readonly roots?: readonly string[];
  /** Where a connection to a checked address really goes; the guard has seen the address before. */
  readonly reroute?: (address: string) => string;
  /** Admits media sources in private networks, which no setting does. */
  readonly allowPrivateMedia?: boolean;
}

/** The same with the certificates that were read, for whoever opens connections. */
export type TrustedOutbound = Outbound & { readonly roots: readonly string[] };
