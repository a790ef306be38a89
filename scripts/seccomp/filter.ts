/** The system-call filter of a caged decoder, as a program for the kernel (classic BPF, see seccomp(2)). */

import { ALLOWED, BY_ARGUMENT, numberOf, type Processor } from "./syscalls.ts";

/** Whether the program may open connections to 127.0.0.1 besides those to Unix sockets. */
export type Network = "none" | "loopback";

/** The kernel's name of each processor (`AUDIT_ARCH_…`). */
const ARCHITECTURE: Record<Processor, number> = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };

/** What the filter answers. */
const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const ERROR = 0x00050000;

const EPERM = 1;
const EINVAL = 22;
const ENOTTY = 25;
const ENOSYS = 38;
const EPROTONOSUPPORT = 93;
const EAFNOSUPPORT = 97;

/** Instructions: load a word of the call's description, compare, mask, return. */
const LOAD = 0x20;
const IF_EQUAL = 0x15;
const IF_GREATER = 0x25;
const IF_AT_LEAST = 0x35;
const IF_ANY_BIT = 0x45;
const AND = 0x54;
const RETURN = 0x06;

/** Where the description (`struct seccomp_data`) has what, in bytes. */
const NUMBER = 0;
const ARCHITECTURE_WORD = 4;
const ARGUMENTS = 16;

const AF_UNIX = 1;
const AF_INET = 2;
const SOCK_STREAM = 1;
const SOCKET_TYPE_MASK = 0xf;
/** The usual one of the family, and TCP: streams of other protocols have code in the kernel that no decoder needs. */
const PROTOCOLS = [0, 6];

/** Of a terminal its settings and its size, of a stream how much there is to read and whether it blocks. */
const IOCTLS = [0x5401, 0x5413, 0x541b, 0x5421];
/** Names of threads; which privileges are left. */
const PRCTLS = [15, 16, 3, 21, 23, 39];

/** In place of a process id: limits of other processes are not its business. */
const ITSELF = 0;

const CLONE_THREAD = 0x00010000;
/** Every flag that makes a namespace. */
const CLONE_NAMESPACES = 0x7e020000;

/** `skipTrue` and `skipFalse` say how many instructions a comparison skips. */
interface Instruction {
  readonly code: number;
  readonly value: number;
  readonly skipTrue?: number;
  readonly skipFalse?: number;
}

/**
 * Refused calls get an error and do not kill: ENOSYS is what an older kernel would say, so libraries newer than the table take
 * their other way, and a decode does not die of a call that nobody needs. A call of another processor's numbering kills, as no
 * decoder makes it.
 *
 * No second process can be made, only threads, and no namespace; glibc takes `clone` where `clone3`, whose flags a filter cannot
 * see, does not exist.
 */
export function filterOf(processor: Processor, network: Network): Uint8Array<ArrayBuffer> {
  const families = network === "none" ? [AF_UNIX] : [AF_UNIX, AF_INET];
  const program: Instruction[] = [
    { code: LOAD, value: ARCHITECTURE_WORD },
    { code: IF_EQUAL, value: ARCHITECTURE[processor], skipTrue: 1 },
    { code: RETURN, value: KILL_PROCESS },
    { code: LOAD, value: NUMBER },
    ...ranges(processor).flatMap(allowRange),
    ...judged("clone", [
      argument(0),
      // Skips the refusal unless it is a thread, or makes a namespace.
      { code: IF_ANY_BIT, value: CLONE_THREAD, skipFalse: 2 },
      { code: IF_ANY_BIT, value: CLONE_NAMESPACES, skipTrue: 1 },
      { code: RETURN, value: ALLOW },
      { code: RETURN, value: ERROR | EPERM },
    ]),
    ...judged("ioctl", [argument(1), ...oneOf(IOCTLS, ENOTTY)]),
    ...judged("prctl", [argument(0), ...oneOf(PRCTLS, EINVAL)]),
    ...judged("prlimit64", [argument(0), ...oneOf([ITSELF], EPERM)]),
    ...judged("socket", [
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

  /** The steps for one call, which end with a return. */
  function judged(name: keyof typeof BY_ARGUMENT, steps: readonly Instruction[]): Instruction[] {
    const number = numberOf(BY_ARGUMENT[name], processor)!;
    return [{ code: IF_EQUAL, value: number, skipFalse: steps.length }, ...steps];
  }
}

/** The low word of an argument: all that are judged here have 32 bits for the kernel. */
function argument(index: number): Instruction {
  return { code: LOAD, value: ARGUMENTS + 8 * index };
}

function oneOf(values: readonly number[], error: number): Instruction[] {
  return [
    ...values.map((value, index) => ({ code: IF_EQUAL, value, skipTrue: values.length - index })),
    { code: RETURN, value: ERROR | error },
    { code: RETURN, value: ALLOW },
  ];
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

/** As the kernel reads it: 8 bytes an instruction (`struct sock_filter`). */
function encoded(program: readonly Instruction[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(8 * program.length);
  const view = new DataView(bytes.buffer);
  program.forEach(({ code, value, skipTrue = 0, skipFalse = 0 }, index) => {
    view.setUint16(8 * index, code, true);
    view.setUint8(8 * index + 2, skipTrue);
    view.setUint8(8 * index + 3, skipFalse);
    view.setUint32(8 * index + 4, value >>> 0, true);
  });
  return bytes;
}
