/** The system-call filter of the service itself and of all programs that it starts: what none of them needs
 * is refused.
 */

import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  AF_UNIX,
  ALLOW,
  AND,
  ARCHITECTURE,
  ARCHITECTURE_WORD,
  argument,
  EAFNOSUPPORT,
  encoded,
  ENOSYS,
  EPERM,
  ERROR,
  IF_AT_LEAST,
  IF_EQUAL,
  type Instruction,
  judged,
  LOAD,
  noneOf,
  NUMBER,
  oneOf,
  RETURN,
  SOCK_DGRAM,
  SOCK_SEQPACKET,
  SOCK_STREAM,
  SOCKET_TYPE_MASK,
} from "./bpf.ts";
import { numberOf, type Processor, REFUSED_TO_SERVICE, SERVICE_BY_ARGUMENT } from "./syscalls.ts";

/** First number of the calls of x86-64 with pointers of 32 bits; no program of ours uses them. */
const X32 = 0x40000000;

/**
 * Requests that put text into a terminal's input as if it had been typed (`TIOCSTI`), or paste on a console
 * (`TIOCLINUX`).
 */
const TYPING = [0x5412, 0x541c];

/** Bits of a mode that are the kind of file; below, the kinds that are devices. */
const FILE_KIND = 0xf000;
const DEVICES = [0x2000, 0x6000];

/**
 * The filter of the service. It is a list of what is refused, and not of what is allowed as for decoders: the
 * runtime, bubblewrap, a shell and the tools of util-linux need most calls, and a newer runtime more. Refused
 * are the calls with which a process that was taken over goes on to other processes of its user, to the
 * kernel, or to what containers do not hold back: debugging, keyrings, modules, BPF, perf, io_uring, raw and
 * unusual sockets.
 */
export function serviceFilterOf(processor: Processor): Uint8Array<ArrayBuffer> {
  const numbers = Object.values(REFUSED_TO_SERVICE).map((row) => numberOf(row, processor))
    .filter((number) => number !== null);
  const makeNode = (name: "mknod" | "mknodat", modeArgument: number): Instruction[] => {
    const number = numberOf(SERVICE_BY_ARGUMENT[name], processor);
    if (number === null) return [];
    return judged(number, [
      argument(modeArgument),
      { code: AND, value: FILE_KIND },
      ...noneOf(DEVICES, EPERM),
    ]);
  };
  return encoded([
    { code: LOAD, value: ARCHITECTURE_WORD },
    { code: IF_EQUAL, value: ARCHITECTURE[processor], skipTrue: 1 },
    { code: RETURN, value: ERROR | ENOSYS },
    { code: LOAD, value: NUMBER },
    { code: IF_AT_LEAST, value: X32, skipFalse: 1 },
    { code: RETURN, value: ERROR | ENOSYS },
    ...numbers.flatMap((number) => judged(number, [{ code: RETURN, value: ERROR | EPERM }])),
    ...judged(numberOf(SERVICE_BY_ARGUMENT.ioctl, processor)!, [argument(1), ...noneOf(TYPING, EPERM)]),
    ...makeNode("mknod", 1),
    ...makeNode("mknodat", 2),
    ...judged(numberOf(SERVICE_BY_ARGUMENT.socket, processor)!, [
      argument(0),
      // Lists of network interfaces come through it; its type does not count.
      { code: IF_EQUAL, value: AF_NETLINK, skipFalse: 1 },
      { code: RETURN, value: ALLOW },
      { code: IF_EQUAL, value: AF_UNIX, skipTrue: 3 },
      { code: IF_EQUAL, value: AF_INET, skipTrue: 2 },
      { code: IF_EQUAL, value: AF_INET6, skipTrue: 1 },
      { code: RETURN, value: ERROR | EAFNOSUPPORT },
      argument(1),
      { code: AND, value: SOCKET_TYPE_MASK },
      ...oneOf([SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET], EAFNOSUPPORT),
    ]),
    { code: RETURN, value: ALLOW },
  ]);
}
