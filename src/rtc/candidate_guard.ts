/** Decides to which addresses of a publisher's candidates connectivity checks are sent. See
 * docs/live/whip.md#ice.
 */

import { networkInterfaces } from "node:os";
import { addressScope, type IpNetwork, ipNetwork, isInNetwork, isLoopback } from "../base/ip_address.ts";
import type { CandidateSender } from "../model/live/candidate.ts";

export interface CandidateRules {
  /** Where the HTTP service listens, as an address; `0.0.0.0` or `::` is everywhere. */
  readonly listenHost: string;
  /** Networks whose private addresses are allowed, besides those of the listener. */
  readonly allowedNetworks: readonly IpNetwork[];
}

/** The addresses of this machine, as `node:os` lists them. */
export type Interfaces = Readonly<Record<string, readonly InterfaceAddress[] | undefined>>;

interface InterfaceAddress {
  readonly address: string;
  /** The address with the length of its network. */
  readonly cidr: string | null;
}

/**
 * A publisher chooses the addresses of its candidates, and the service sends to them. Public addresses are
 * allowed; loopback to a publisher on loopback, where the service itself listens on loopback; private ones in
 * the networks of the addresses on which it listens, and in the allowed ones. Link-local, multicast,
 * broadcast, unspecified and reserved addresses never are.
 */
export function candidateGuard(
  { listenHost, allowedNetworks }: CandidateRules,
  interfaces: Interfaces = networkInterfaces(),
): (address: string, sender: CandidateSender) => boolean {
  const isEverywhere = listenHost === "0.0.0.0" || listenHost === "::";
  const machine = Object.values(interfaces).flatMap((addresses) => addresses ?? [])
    .flatMap(({ address, cidr }) => {
      const network = ipNetwork(cidr ?? "");
      return network ? [{ address, network }] : [];
    });
  const own = machine.filter(({ address }) => isEverywhere || address === listenHost);
  const networks = [
    ...own.map(({ network }) => network),
    ...allowedNetworks,
  ];
  const hasLoopback = isEverywhere || listenHost === "localhost" || isLoopback(listenHost);
  return (address, { isOnLoopback }) => {
    if (isLoopback(address)) return isOnLoopback && hasLoopback;
    const scope = addressScope(address);
    if (scope !== "private") return scope === "public";
    return networks.some((network) => isInNetwork(address, network)) &&
      !machine.some(({ network }) => isBroadcast(address, network));
  };
}

/**
 * Whether an address is the last one of an IPv4 network, which reaches all its hosts. A network of one or two
 * addresses has none.
 */
function isBroadcast(address: string, { first, prefix }: IpNetwork): boolean {
  const isIpv4 = prefix >= 96 && first.slice(0, 6).join() === "0,0,0,0,0,65535";
  if (!isIpv4 || prefix > 126) return false;
  const hostBits = 0xffffffff >>> (prefix - 96);
  const last = ((first[6]! << 16) | first[7]! | hostBits) >>> 0;
  const text = [24, 16, 8, 0].map((shift) => (last >>> shift) & 0xff).join(".");
  return isInNetwork(address, ipNetwork(`${text}/32`)!);
}
