/** What is said of the addresses on which the service listens. */

/** An address as it stands in a URL. */
export function authorityOf({ hostname, port }: Pick<Deno.NetAddr, "hostname" | "port">): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/** Why nothing listens on the address of `setting`. */
export function notFree(
  setting: string,
  address: Pick<Deno.NetAddr, "hostname" | "port">,
  error: unknown,
): Error {
  const why = error instanceof Deno.errors.AddrInUse
    ? "another program listens there already"
    : (error as Error).message;
  return new Error(`${setting} must be an address that is free, got ${authorityOf(address)}: ${why}`, {
    cause: error,
  });
}
