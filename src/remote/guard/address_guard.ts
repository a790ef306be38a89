/** The guard of every outbound address: which hosts may be called, and at which of their addresses. Contract 2.2. */

import { lookup } from "node:dns";
import type { World } from "../../base/world.ts";
import { addressScope, isAddress } from "../../model/sources/ip_address.ts";
import { Deadline, OutOfTime, unlessAborted } from "../../base/wait.ts";

/** Every address of a host name; rejects or is empty when there is none. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface AddressGuardOptions {
  readonly world: World;
  /** Admits the operator's own network (D8), but still no link-local, multicast or reserved address. */
  readonly allowPrivate: boolean;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Why a host may not be called, in words for the caller: they tell nothing of what lies in the operator's network. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/** The addresses of a URL's host. Errors: `AddressRefused`, also for a user name or password in the URL. */
export function checkedTarget(url: URL, options: AddressGuardOptions): Promise<readonly string[]> {
  if (url.username !== "" || url.password !== "") {
    return Promise.reject(new AddressRefused("must not contain a user name or password"));
  }
  return checkedAddresses(url.hostname, options);
}

/**
 * Every address of a host, of which all may be called; connect to these only (`pinnedRequest`), since a second look-up
 * may answer otherwise. `hostname` may have brackets, upper case, and any spelling of a number that browsers read as an
 * IPv4 address: `0x7f.1` is 127.0.0.1. A name that does not exist and one of a private network are refused in the same
 * words. Errors: `AddressRefused`, or the reason of `signal`.
 */
export async function checkedAddresses(
  hostname: string,
  options: AddressGuardOptions,
): Promise<readonly string[]> {
  const host = canonicalHost(hostname);
  const scopes = options.allowPrivate ? ["public", "private"] : ["public"];
  const isAllowed = (address: string) => scopes.includes(addressScope(address));
  if (isAddress(host)) {
    if (!isAllowed(host)) throw new AddressRefused(`${host} is not a public address`);
    return [host];
  }
  if (!options.allowPrivate && isLocalName(host)) {
    throw new AddressRefused(`${host} names this machine or its network, not a public host`);
  }
  const addresses = await resolved(host, options);
  if (addresses.length === 0 || !addresses.every(isAllowed)) {
    throw new AddressRefused(`${host} cannot be resolved to public addresses`);
  }
  return addresses;
}

/**
 * Every address of a host that the operator has named: it may lie in any network. Errors: `AddressRefused` for a host
 * without an address, or the reason of `signal`.
 */
export async function operatorAddresses(
  hostname: string,
  options: Omit<AddressGuardOptions, "allowPrivate">,
): Promise<readonly string[]> {
  const host = canonicalHost(hostname);
  const addresses = isAddress(host) ? [host] : await resolved(host, options);
  if (addresses.length === 0) throw new AddressRefused(`${host} cannot be resolved`);
  return addresses;
}

/**
 * The host as an http URL spells it: lower case, without brackets and trailing dots, numbers as dotted decimals. URLs of
 * other schemes keep what the caller wrote, which is why the host is read once more as one of http.
 */
export function canonicalHost(hostname: string): string {
  const plain = /^\[(.*:.*)\]$/.exec(hostname)?.[1] ?? hostname;
  const isIpv6 = plain.includes(":") && isAddress(plain);
  // What would end the host, or be dropped, when the text is read as a URL.
  const url = isIpv6 || !/[\s/\\?#@:[\]]/.test(plain)
    ? URL.parse(`http://${isIpv6 ? `[${plain}]` : plain}/`)
    : null;
  const host = url?.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "") ?? "";
  if (host === "" || host.length > HOST_NAME_CHARACTERS) throw new AddressRefused("must name a valid host");
  return host;
}

/** What DNS can carry. */
const HOST_NAME_CHARACTERS = 253;

/** Contract 2.2. Such names mean something else on every machine, whatever they resolve to. */
function isLocalName(host: string): boolean {
  return /(^|\.)(localhost|local)$/.test(host);
}

async function resolved(
  host: string,
  options: Omit<AddressGuardOptions, "allowPrivate">,
): Promise<readonly string[]> {
  using deadline = new Deadline(options.world, options.timeoutMs, options.signal);
  try {
    const resolve = options.resolve ?? systemResolve;
    return [...new Set(await unlessAborted(resolve(host, deadline.signal), deadline.signal))];
  } catch (error) {
    if (error instanceof OutOfTime) {
      throw new AddressRefused(`${host} cannot be resolved within ${options.timeoutMs / 1000} s`);
    }
    options.signal.throwIfAborted();
    return [];
  }
}

/**
 * The system's own resolver (getaddrinfo), as it reads /etc/hosts and what else the operator has set up;
 * `Deno.resolveDns` asks name servers only, so it would not see what a connection by name would reach. A look-up cannot
 * be called back: one that nobody waits for any more ends by the system's own time limit.
 */
function systemResolve(hostname: string): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      if (error) reject(error);
      else resolve(addresses.map(({ address }) => address));
    });
  });
}
