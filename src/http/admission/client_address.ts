/** Where the client of a request is. */

import { isLoopback } from "../../base/ip_address.ts";

/**
 * Whether the client is on this machine. Behind a proxy on this machine every client comes from loopback;
 * then the headers count in which the proxy says for whom it asks. They can take from a client what its
 * address gives, and never the other way round. See docs/deployment.md#behind-a-proxy.
 */
export function isOnLoopback(address: string | undefined, headers: Headers): boolean {
  return address !== undefined && [address, ...forwardedFor(headers)].every(isLoopback);
}

/** All that the headers name; what is no address stays a text that is none. */
function forwardedFor(headers: Headers): string[] {
  const listed = ["x-forwarded-for", "x-real-ip"].flatMap((name) => headers.get(name)?.split(",") ?? []);
  const forwarded = headers.get("forwarded")?.split(/[,;]/).filter((pair) =>
    !/^\s*(by|host|proto)=/i.test(pair)
  );
  return [...listed, ...forwarded ?? []].map((text) => addressIn(text.replace(/^\s*for=/i, "")));
}

/** The address in `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `"[2001:db8::1]:4711"`. */
function addressIn(text: string): string {
  const plain = text.trim().replaceAll('"', "");
  return /^\[(.*)\](?::\d+)?$/.exec(plain)?.[1] ?? /^([\d.]+):\d+$/.exec(plain)?.[1] ?? plain;
}
