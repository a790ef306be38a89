/** Programs of the kernel's packet filter (classic BPF), of which a system-call filter is one: see
 * seccomp(2).
 */

import type { Processor } from "./syscalls.ts";

/** The kernel's name of each processor (`AUDIT_ARCH_…`). */
export const ARCHITECTURE: Record<Processor, number> = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };

/** What a filter answers; the number of an error is added to the third one. */
export const ALLOW = 0x7fff0000;
export const KILL_PROCESS = 0x80000000;
export const ERROR = 0x00050000;

export const EPERM = 1;
export const EINVAL = 22;
export const ENOTTY = 25;
export const ENOSYS = 38;
export const EPROTONOSUPPORT = 93;
export const EAFNOSUPPORT = 97;

/** Instructions: load a word of the call's description, compare, mask, return. */
export const LOAD = 0x20;
export const IF_EQUAL = 0x15;
export const IF_GREATER = 0x25;
export const IF_AT_LEAST = 0x35;
export const IF_ANY_BIT = 0x45;
export const AND = 0x54;
export const RETURN = 0x06;

/**
 * Place of the call's number in the description of the call (`struct seccomp_data`), in bytes.
 * ARCHITECTURE_WORD is that of the processor, ARGUMENTS that of the first argument.
 */
export const NUMBER = 0;
export const ARCHITECTURE_WORD = 4;
const ARGUMENTS = 16;

export const AF_UNIX = 1;
export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
export const SOCK_SEQPACKET = 5;
export const SOCKET_TYPE_MASK = 0xf;

/** `skipTrue` and `skipFalse` say how many instructions a comparison skips. */
export interface Instruction {
  readonly code: number;
  readonly value: number;
  readonly skipTrue?: number;
  readonly skipFalse?: number;
}

/** Loads the low word of an argument: all that filters judge here have 32 bits for the kernel. */
export function argument(index: number): Instruction {
  return { code: LOAD, value: ARGUMENTS + 8 * index };
}

/** Ends the filter: the loaded word is allowed where it is one of the values, and else an error. */
export function oneOf(values: readonly number[], error: number): Instruction[] {
  return [
    ...values.map((value, index) => ({ code: IF_EQUAL, value, skipTrue: values.length - index })),
    { code: RETURN, value: ERROR | error },
    { code: RETURN, value: ALLOW },
  ];
}

/** Ends the filter: the loaded word is an error where it is one of the values, and else allowed. */
export function noneOf(values: readonly number[], error: number): Instruction[] {
  return [
    ...values.map((value, index) => ({ code: IF_EQUAL, value, skipTrue: values.length - index })),
    { code: RETURN, value: ALLOW },
    { code: RETURN, value: ERROR | error },
  ];
}

/**
 * Takes the steps, which end with a return, for one call; the number of the call is loaded before and after.
 */
export function judged(number: number, steps: readonly Instruction[]): Instruction[] {
  return [{ code: IF_EQUAL, value: number, skipFalse: steps.length }, ...steps];
}

/** Writes the program as the kernel reads it: 8 bytes an instruction (`struct sock_filter`). */
export function encoded(program: readonly Instruction[]): Uint8Array<ArrayBuffer> {
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
