/** Networks of IP addresses in the notation of CIDR, such as 192.168.0.0/16 or fd00::/8. */

import { hasPrefix, ipv4Number, ipv6Groups } from "./ip_address.ts";

export interface IpNetwork {
  /** Of its first address: 8 groups of 16 bits; IPv4 as the IPv4-mapped address of IPv6. */
  readonly first: readonly number[];
  /** How many leading bits of an address are those of the network, of 128. */
  readonly prefix: number;
}

/** Undefined for a text that is no network. Bits of the address after the prefix do not count. */
export function ipNetwork(text: string): IpNetwork | undefined {
  const [, address, length] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const first = address === undefined ? null : mappedGroups(address);
  if (!first) return undefined;
  const offset = address!.includes(":") ? 0 : 96;
  const prefix = offset + Number(length);
  return prefix <= 128 ? { first, prefix } : undefined;
}

/** False for a text that is no address. */
export function isInNetwork(address: string, { first, prefix }: IpNetwork): boolean {
  const groups = mappedGroups(address);
  return groups !== null && hasPrefix(groups, first, prefix);
}

/** An IPv4-mapped address reaches the IPv4 host, so both spellings are the same address. */
function mappedGroups(address: string): number[] | null {
  const v4 = ipv4Number(address);
  return v4 === null ? ipv6Groups(address) : [0, 0, 0, 0, 0, 0xffff, v4 >>> 16, v4 & 0xffff];
}
