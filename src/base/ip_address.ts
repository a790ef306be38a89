/** IP addresses: their scope (on the public internet, in the network of the operator, or neither) and
 * networks of them. See docs/security/sources.md#outbound-addresses.
 */

/**
 * `public` is routed on the internet; `private` belongs to this machine or to the local network; `unusable`
 * is everything else, such as multicast, documentation, and link-local addresses, where clouds serve their
 * credentials.
 */
export type AddressScope = "public" | "private" | "unusable";

/** The scope of a literal address. A text that is no address, or an address with a zone id, is `unusable`. */
export function addressScope(text: string): AddressScope {
  const v4 = ipv4Number(text);
  if (v4 !== null) return ipv4Scope(v4);
  const groups = ipv6Groups(text);
  return groups === null ? "unusable" : ipv6Scope(groups);
}

/** Whether a literal address is routed on the public internet. */
export function isPublicAddress(text: string): boolean {
  return addressScope(text) === "public";
}

/** Whether a text is a literal IPv4 or IPv6 address in its plain spelling. */
export function isAddress(text: string): boolean {
  return ipv4Number(text) !== null || ipv6Groups(text) !== null;
}

/** First address, prefix length, scope. The first matching row decides; the rest of IPv4 is public. */
const IPV4_NETS = ([
  ["168.63.129.16", 32, "unusable"], // Azure's platform: host agent and metadata
  ["100.100.100.200", 32, "unusable"], // Alibaba Cloud's metadata service
  ["0.0.0.0", 8, "unusable"], // "this network"; 0.0.0.0 reaches the machine itself
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "private"], // shared by a carrier's customers
  ["127.0.0.0", 8, "private"],
  ["169.254.0.0", 16, "unusable"], // link-local, among them the metadata services of clouds
  ["172.16.0.0", 12, "private"],
  ["192.0.0.0", 24, "unusable"], // protocol assignments, and Oracle Cloud's metadata service
  ["192.0.2.0", 24, "unusable"], // documentation
  ["192.88.99.0", 24, "unusable"], // 6to4 relays, withdrawn
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "private"], // benchmarks
  ["198.51.100.0", 24, "unusable"], // documentation
  ["203.0.113.0", 24, "unusable"], // documentation
  ["224.0.0.0", 4, "unusable"], // multicast
  ["240.0.0.0", 4, "unusable"], // reserved, and broadcast
] as const).map(([first, prefix, scope]) => ({ first: ipv4Number(first)!, shift: 32 - prefix, scope }));

function ipv4Scope(address: number): AddressScope {
  return IPV4_NETS.find(({ first, shift }) => address >>> shift === first >>> shift)?.scope ?? "public";
}

/**
 * Networks of IPv6 with their scopes. Only 2000::/3 is public, so an address without a row is `unusable`.
 * `v4` is the index of an embedded IPv4 address.
 */
const IPV6_NETS = ([
  ["::1", 128, "private"],
  ["::ffff:0:0", 96, { v4: 6 }], // IPv4-mapped
  ["64:ff9b::", 96, { v4: 6 }], // NAT64: answers of resolvers in networks without IPv4
  ["fd00:ec2::", 32, "unusable"], // AWS: metadata, time, names, credentials of containers
  ["fd20:ce::254", 128, "unusable"], // Google Cloud's metadata service
  ["fd00:c1::a9fe:a9fe", 128, "unusable"], // Oracle Cloud's metadata service
  ["fd00:42::42", 128, "unusable"], // Scaleway's metadata service
  ["fc00::", 7, "private"], // unique local
  ["2001::", 23, "unusable"], // protocol assignments, Teredo and ORCHID among them
  ["2001:db8::", 32, "unusable"], // documentation
  ["2002::", 16, { v4: 1 }], // 6to4
  ["3fff::", 20, "unusable"], // documentation
  ["2000::", 3, "public"],
] as const).map(([first, prefix, scope]) => ({ first: ipv6Groups(first)!, prefix, scope }));

function ipv6Scope(groups: readonly number[]): AddressScope {
  const scope = IPV6_NETS.find(({ first, prefix }) => hasPrefix(groups, first, prefix))?.scope ?? "unusable";
  if (typeof scope === "string") return scope;
  return ipv4Scope(((groups[scope.v4]! << 16) | groups[scope.v4 + 1]!) >>> 0);
}

export function hasPrefix(groups: readonly number[], first: readonly number[], prefix: number): boolean {
  return groups.every((group, index) => {
    const bits = Math.min(16, Math.max(0, prefix - index * 16));
    return group >>> (16 - bits) === first[index]! >>> (16 - bits);
  });
}

/**
 * Four decimal numbers. Null with leading zeros, as in "010.0.0.1", because some programs read them as octal.
 */
export function ipv4Number(text: string): number | null {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1);
  if (!parts?.every((part) => Number(part) <= 255 && String(Number(part)) === part)) return null;
  return parts.reduce((address, part) => address * 256 + Number(part), 0);
}

/** "2001:db8::1" as eight numbers of 16 bits; the last two may be spelt as an IPv4 address. */
export function ipv6Groups(text: string): number[] | null {
  const tail = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const v4 = tail ? ipv4Number(tail[2]!) : null;
  if (tail && v4 === null) return null;
  const plain = tail ? `${tail[1]}${(v4! >>> 16).toString(16)}:${(v4! & 0xffff).toString(16)}` : text;
  const halves = plain.split("::");
  if (halves.length > 2) return null;
  const [head, rest] = halves.map((half) => half === "" ? [] : half.split(":"));
  const missing = 8 - head!.length - (rest?.length ?? 0);
  if (rest === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...head!, ...Array<string>(missing).fill("0"), ...rest ?? []];
  return groups.every((group) => /^[\da-f]{1,4}$/i.test(group))
    ? groups.map((group) => parseInt(group, 16))
    : null;
}

/** A network in the notation of CIDR, such as 192.168.0.0/16 or fd00::/8. */
export interface IpNetwork {
  /** The network's first address: 8 groups of 16 bits; IPv4 as the IPv4-mapped address of IPv6. */
  readonly first: readonly number[];
  /** How many leading bits of an address are those of the network, of 128. */
  readonly prefix: number;
}

/**
 * Reads a network in the notation of CIDR; undefined for a text that is none. Bits of the address after the
 * prefix do not count.
 */
export function ipNetwork(text: string): IpNetwork | undefined {
  const [, address, length] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const first = address === undefined ? null : mappedGroups(address);
  if (!first) return undefined;
  const offset = address!.includes(":") ? 0 : 96;
  const prefix = offset + Number(length);
  return prefix <= 128 ? { first, prefix } : undefined;
}

/** Whether a literal address is in the network; false for a text that is no address. */
export function isInNetwork(address: string, { first, prefix }: IpNetwork): boolean {
  const groups = mappedGroups(address);
  return groups !== null && hasPrefix(groups, first, prefix);
}

const LOOPBACK = [ipNetwork("127.0.0.0/8")!, ipNetwork("::1/128")!];

/** Whether a literal address is one of this machine itself; false for a text that is no address. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.some((network) => isInNetwork(address, network));
}

/** An IPv4-mapped address reaches the IPv4 host, so both spellings are the same address. */
function mappedGroups(address: string): number[] | null {
  const v4 = ipv4Number(address);
  return v4 === null ? ipv6Groups(address) : [0, 0, 0, 0, 0, 0xffff, v4 >>> 16, v4 & 0xffff];
}

/**
 * An IPv4 address, or the 64 bits of an IPv6 address that a provider gives to one customer; another text as
 * it is.
 */
export function networkOf(address: string): string {
  const groups = address.includes(":") ? ipv6Groups(address) : null;
  if (groups === null) return address;
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return (isMapped ? groups : groups.slice(0, 4)).join(":");
}
