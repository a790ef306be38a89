/** The TCP connections of this machine as Linux lists them; the sandboxed service may not read that list
 * itself.
 */

import type { ConnectionsSeen, ListenedAt, LookAtConnections } from "../http/connections.ts";

/**
 * Looks once at the connections to a listener: how many are open, which of `clients` are gone, and which are
 * behind. Null where the system has no such list.
 */
export const lookAtConnections: LookAtConnections = (listener, clients) =>
  Promise.resolve(look(listener, clients));

function look({ hostname, port }: ListenedAt, clients: readonly string[]): ConnectionsSeen | null {
  const left = new Map(clients.flatMap((client) => keysOf(client).map((key) => [key, client] as const)));
  const connected = new Set<string>();
  const behind: string[] = [];
  let open = 0;
  try {
    for (const connection of connectionsTo({ hostname, port })) {
      const { key, state } = connection;
      if (state === ESTABLISHED || state === CLOSED_BY_PEER) open++;
      const client = state === ESTABLISHED ? left.get(key) : undefined;
      if (client === undefined) continue;
      connected.add(client);
      if (unsentOf(connection) > BEHIND_BYTES) behind.push(client);
    }
  } catch {
    return null;
  }
  return { open, gone: clients.filter((client) => !connected.has(client)), behind };
}

/**
 * Acknowledgements come late, so a client that takes everything has some bytes left, too. A socket that is
 * full has more.
 */
const BEHIND_BYTES = 4096;
const ESTABLISHED = "01";
/** CLOSE_WAIT: the other side has sent its last byte. */
const CLOSED_BY_PEER = "08";

/** One connection as Linux lists it. */
export interface ListedConnection {
  /** The client. */
  readonly key: string;
  readonly state: string;
  /** The numbers behind the state, which {@link unsentOf} and {@link inodeOf} read. */
  readonly rest: string;
}

/** The connections to a listener. Throws where the system has no list. */
export function connectionsTo({ hostname, port }: ListenedAt): Iterable<ListedConnection> {
  // Those of clients over IPv4, too, are in the list of the socket that took them. At once: to go through a
  // list takes longer than to read it.
  return connectionsIn(
    Deno.readTextFileSync(hostname.includes(":") ? "/proc/net/tcp6" : "/proc/net/tcp"),
    port,
  );
}

/** Bytes that the client has not acknowledged: `<sent>:<received> …`, in hexadecimal digits. */
export function unsentOf({ rest }: ListedConnection): number {
  return parseInt(rest.slice(0, 8), 16);
}

const PROBES_WINDOW = "04";

/**
 * Whether the client has taken nothing for a while: its window is full, or it acknowledges nothing. One that
 * takes everything may have bytes that are not acknowledged at any time, as that comes late: `<queues>
 * <timer>:<when> <retransmits> …`.
 */
export function isStuck({ rest }: ListedConnection): boolean {
  const [, timer, retransmits] = rest.split(" ", 3);
  return timer!.startsWith(PROBES_WINDOW) || /[^0]/.test(retransmits!);
}

/** The number of the socket: `<queues> <timer> <retransmits> <user> <timeout> <inode> …`. */
export function inodeOf({ rest }: ListedConnection): string {
  return rest.trim().split(/ +/)[5] ?? "";
}

/**
 * The lines of connections to the local `port`. A line is `12: <local> <remote> <state> …`, an endpoint is an
 * address, a colon and a port in hexadecimal digits; all endpoints of a list have the same length.
 */
function* connectionsIn(list: string, port: number): Iterable<ListedConnection> {
  const portDigits = hex(port, 4);
  for (let line = list.indexOf("\n") + 1; line < list.length;) {
    const end = list.indexOf("\n", line);
    const local = list.indexOf(": ", line) + 2;
    const length = list.indexOf(" ", local) - local;
    if (list.startsWith(portDigits, local + length - 4)) {
      const remote = local + length + 1;
      const state = remote + length + 1;
      yield {
        key: list.slice(remote, remote + length),
        state: list.slice(state, state + 2),
        rest: list.slice(state + 3, end < 0 ? undefined : end),
      };
    }
    if (end < 0) return;
    line = end + 1;
  }
}

/** How the lists write a client (`address port`). A client over IPv4 may be in either list. */
function keysOf(client: string): string[] {
  const [address, port] = client.split(" ");
  const digits = `:${hex(Number(port), 4)}`;
  if (address!.includes(":")) return [wordsOf(bytesOfIpv6(address!)) + digits];
  const word = wordsOf(address!.split(".").map(Number));
  return [word + digits, `0000000000000000FFFF0000${word}${digits}`];
}

/** Words of four bytes in the byte order of the machine, which is little-endian. */
function wordsOf(bytes: readonly number[]): string {
  return bytes.map((_, at) => hex(bytes[(at & ~3) + 3 - (at & 3)]!, 2)).join("");
}

function bytesOfIpv6(address: string): number[] {
  const host = URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) ?? "::";
  const [before, after] = host.split("::").map((part) => part === "" ? [] : part.split(":"));
  const zeros = Array(8 - before!.length - (after?.length ?? 0)).fill("0");
  const groups = after === undefined ? before! : [...before!, ...zeros, ...after];
  return groups.map((group) => parseInt(group, 16)).flatMap((group) => [group >> 8, group & 255]);
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, "0");
}
