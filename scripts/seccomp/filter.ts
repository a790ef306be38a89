/** The system-call filter of a caged decoder, as a program for the kernel (classic BPF, see seccomp(2)). */

import {
  AF_INET,
  AF_UNIX,
  ALLOW,
  AND,
  ARCHITECTURE,
  ARCHITECTURE_WORD,
  argument,
  EAFNOSUPPORT,
  EINVAL,
  encoded,
  ENOSYS,
  ENOTTY,
  EPERM,
  EPROTONOSUPPORT,
  ERROR,
  IF_ANY_BIT,
  IF_AT_LEAST,
  IF_EQUAL,
  IF_GREATER,
  type Instruction,
  judged,
  KILL_PROCESS,
  LOAD,
  NUMBER,
  oneOf,
  RETURN,
  SOCK_STREAM,
  SOCKET_TYPE_MASK,
} from "./bpf.ts";
import { ALLOWED, BY_ARGUMENT, numberOf, type Processor } from "./syscalls.ts";

/** Whether the program may open connections to 127.0.0.1 besides those to Unix sockets. */
export type Network = "none" | "loopback";

/**
 * Protocols of sockets: the usual one of the family, and TCP. Streams of other protocols have code in the
 * kernel that no decoder needs.
 */
const PROTOCOLS = [0, 6];

/**
 * Requests to `ioctl`: the settings and the size of a terminal; how much there is to read of a stream, and
 * whether it blocks.
 */
const IOCTLS = [0x5401, 0x5413, 0x541b, 0x5421];
/** Requests to `prctl`: names of threads, and which privileges are left. */
const PRCTLS = [15, 16, 3, 21, 23, 39];

/** What stands in place of a process id: limits of other processes are not its business. */
const ITSELF = 0;

const CLONE_THREAD = 0x00010000;
/** Every flag that makes a namespace. */
const CLONE_NAMESPACES = 0x7e020000;

/**
 * Refused calls get an error and do not kill: ENOSYS is what an older kernel would say, so libraries newer
 * than the table take their other way, and a decode does not die of a call that nobody needs. A call of
 * another processor's numbering kills, as no decoder makes it.
 *
 * No second process can be made, only threads, and no namespace; glibc takes `clone` where `clone3`, whose
 * flags a filter cannot see, does not exist.
 */
export function filterOf(processor: Processor, network: Network): Uint8Array<ArrayBuffer> {
  const families = network === "none" ? [AF_UNIX] : [AF_UNIX, AF_INET];
  const program: Instruction[] = [
    { code: LOAD, value: ARCHITECTURE_WORD },
    { code: IF_EQUAL, value: ARCHITECTURE[processor], skipTrue: 1 },
    { code: RETURN, value: KILL_PROCESS },
    { code: LOAD, value: NUMBER },
    ...ranges(processor).flatMap(allowRange),
    ...judgedCall("clone", [
      argument(0),
      // Skips the refusal unless it is a thread, or makes a namespace.
      { code: IF_ANY_BIT, value: CLONE_THREAD, skipFalse: 2 },
      { code: IF_ANY_BIT, value: CLONE_NAMESPACES, skipTrue: 1 },
      { code: RETURN, value: ALLOW },
      { code: RETURN, value: ERROR | EPERM },
    ]),
    ...judgedCall("ioctl", [argument(1), ...oneOf(IOCTLS, ENOTTY)]),
    ...judgedCall("prctl", [argument(0), ...oneOf(PRCTLS, EINVAL)]),
    ...judgedCall("prlimit64", [argument(0), ...oneOf([ITSELF], EPERM)]),
    ...judgedCall("socket", [
      argument(1),
      { code: AND, value: SOCKET_TYPE_MASK },
      { code: IF_EQUAL, value: SOCK_STREAM, skipTrue: 1 },
      { code: RETURN, value: ERROR | EAFNOSUPPORT },
      argument(2),
      ...PROTOCOLS.map((value, index) => ({ code: IF_EQUAL, value, skipTrue: PROTOCOLS.length - index })),
      { code: RETURN, value: ERROR | EPROTONOSUPPORT },
      argument(0),
      ...oneOf(families, EAFNOSUPPORT),
    ]),
    { code: RETURN, value: ERROR | ENOSYS },
  ];
  return encoded(program);

  function judgedCall(name: keyof typeof BY_ARGUMENT, steps: readonly Instruction[]): Instruction[] {
    return judged(numberOf(BY_ARGUMENT[name], processor)!, steps);
  }
}

interface Range {
  readonly first: number;
  readonly last: number;
}

/** The numbers of the allowed calls, neighbours together. */
function ranges(processor: Processor): Range[] {
  const numbers = Object.values(ALLOWED).map((row) => numberOf(row, processor)).filter((number) =>
    number !== null
  );
  const found: Range[] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const open = found.at(-1);
    if (open?.last === number - 1) found[found.length - 1] = { first: open.first, last: number };
    else found.push({ first: number, last: number });
  }
  return found;
}

function allowRange({ first, last }: Range): Instruction[] {
  const allow = { code: RETURN, value: ALLOW };
  if (first === last) return [{ code: IF_EQUAL, value: first, skipFalse: 1 }, allow];
  return [
    { code: IF_AT_LEAST, value: first, skipFalse: 2 },
    { code: IF_GREATER, value: last, skipTrue: 1 },
    allow,
  ];
}
