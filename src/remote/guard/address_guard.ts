/** The guard of all outbound connections: which hosts may be called, and at which addresses. */

import { lookup } from "node:dns";
import type { World } from "../../base/world.ts";
import { addressScope, type IpNetwork, isAddress, isInNetwork } from "../../base/ip_address.ts";
import { Deadline, OutOfTime, unlessAborted } from "../../base/wait.ts";

/** Every address of a host name; rejects or is empty when there is none. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface AddressGuardOptions {
  readonly world: World;
  /** Allows the operator's own network too, but no link-local, multicast or reserved address. */
  readonly allowPrivate: boolean;
  /** Networks whose private and loopback addresses are allowed; none unless given. */
  readonly allowedNetworks?: readonly IpNetwork[];
  /** Looks up host names; the system's resolver unless given. */
  readonly resolve?: Resolve;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * The error of a host that may not be called. The message may be shown to the caller: it reveals nothing of
 * the operator's network.
 */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
  readonly #host: string | undefined;

  /** `host`: the one that the message names. */
  constructor(message: string, host?: string) {
    super(message);
    this.#host = host;
  }

  /** This error for a caller who must not learn which host it is: the message does not name it. */
  get withoutHost(): AddressRefused {
    return this.#host === undefined ? this : new AddressRefused(this.message.replace(this.#host, "its host"));
  }
}

/** The addresses of a URL's host. Errors: `AddressRefused`, also for a user name or password in the URL. */
export function checkedTarget(url: URL, options: AddressGuardOptions): Promise<readonly string[]> {
  if (url.username !== "" || url.password !== "") {
    return Promise.reject(new AddressRefused("must not contain a user name or password"));
  }
  return checkedAddresses(url.hostname, options);
}

/**
 * The addresses of a host, if all of them may be called. Connect to these only (`pinnedRequest`), because a
 * second look-up may have another result (DNS rebinding). `hostname` may have brackets, upper case, and any
 * spelling of a number that browsers read as an IPv4 address: `0x7f.1` is 127.0.0.1. A name that does not
 * exist and a name of a private network get the same message. Errors: `AddressRefused`, or the reason of
 * `signal`. See docs/security/sources.md#outbound-addresses.
 */
export async function checkedAddresses(
  hostname: string,
  options: AddressGuardOptions,
): Promise<readonly string[]> {
  const host = canonicalHost(hostname);
  const { allowPrivate, allowedNetworks = [] } = options;
  const isListed = (address: string) => allowedNetworks.some((network) => isInNetwork(address, network));
  const isAllowed = (address: string) => {
    const scope = addressScope(address);
    return scope === "public" || (scope === "private" && (allowPrivate || isListed(address)));
  };
  if (isAddress(host)) {
    if (!isAllowed(host)) throw new AddressRefused(`${host} is not a public address`, host);
    return [host];
  }
  const isLocal = !allowPrivate && isLocalName(host);
  if (isLocal && allowedNetworks.length === 0) {
    throw new AddressRefused(`${host} names this machine or its network, not a public host`, host);
  }
  const addresses = await resolveHost(host, options);
  const areAllowed = addresses.every((address) => isAllowed(address) && (!isLocal || isListed(address)));
  if (addresses.length === 0 || !areAllowed) {
    throw new AddressRefused(`${host} cannot be resolved to public addresses`, host);
  }
  return addresses;
}

/**
 * The addresses of a host from the operator's configuration, which may be in any network. Errors:
 * `AddressRefused` for a host without an address, or the reason of `signal`.
 */
export async function operatorAddresses(
  hostname: string,
  options: Omit<AddressGuardOptions, "allowPrivate" | "allowedNetworks">,
): Promise<readonly string[]> {
  const host = canonicalHost(hostname);
  const addresses = isAddress(host) ? [host] : await resolveHost(host, options);
  if (addresses.length === 0) throw new AddressRefused(`${host} cannot be resolved`, host);
  return addresses;
}

/**
 * The host as the URL parser writes it for http: lower case, numbers as dotted decimals, and without brackets
 * and trailing dots. For other schemes the parser keeps the host as the caller wrote it, so it is parsed
 * again as http here.
 */
export function canonicalHost(hostname: string): string {
  const plain = /^\[(.*:.*)\]$/.exec(hostname)?.[1] ?? hostname;
  const isIpv6 = plain.includes(":") && isAddress(plain);
  // Such characters would end the host, or would be dropped, when the text is parsed as a URL.
  const url = isIpv6 || !/[\s/\\?#@:[\]]/.test(plain)
    ? URL.parse(`http://${isIpv6 ? `[${plain}]` : plain}/`)
    : null;
  const host = url?.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "") ?? "";
  if (host === "" || host.length > HOST_NAME_CHARACTERS) throw new AddressRefused("must name a valid host");
  return host;
}

/** The longest name that DNS allows (RFC 1035 section 2.3.4). */
const HOST_NAME_CHARACTERS = 253;

/**
 * Whether a name means another host on every machine. Such a name is refused unless the operator admits where
 * it leads.
 */
function isLocalName(host: string): boolean {
  return /(^|\.)(localhost|local)$/.test(host);
}

async function resolveHost(
  host: string,
  options: Omit<AddressGuardOptions, "allowPrivate" | "allowedNetworks">,
): Promise<readonly string[]> {
  using deadline = new Deadline(options.world, options.timeoutMs, options.signal);
  try {
    const resolve = options.resolve ?? systemResolve;
    return [...new Set(await unlessAborted(resolve(host, deadline.signal), deadline.signal))];
  } catch (error) {
    if (error instanceof OutOfTime) {
      throw new AddressRefused(`${host} cannot be resolved within ${options.timeoutMs / 1000} s`, host);
    }
    options.signal.throwIfAborted();
    return [];
  }
}

/**
 * The system's resolver (getaddrinfo), which reads /etc/hosts and the operator's other settings.
 * `Deno.resolveDns` asks name servers only, so it can have other results than a connection by name. A look-up
 * cannot be cancelled: after the deadline it continues in the background until the system's own time limit.
 */
function systemResolve(hostname: string): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      if (error) reject(error);
      else resolve(addresses.map(({ address }) => address));
    });
  });
}
