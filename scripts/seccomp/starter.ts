/**
 * The starter of a caged program: a program of a few hundred bytes that sets a system-call filter for itself
 * and becomes the program that its arguments name. bubblewrap sets the filter itself; this one is for cages
 * without bubblewrap.
 */

import { filterOf, type Network } from "./filter.ts";
import type { Processor } from "./syscalls.ts";

/**
 * The machine code of each processor, an instruction a line. In the words of C:
 *
 *     if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && seccomp(SECCOMP_SET_MODE_FILTER, 0, data) == 0)
 *       execve(argv[1], argv + 1, environ);
 *     write(2, message, sizeof message);
 *     exit_group(126);
 *
 * `data`, just behind the code, is the kernel's `struct sock_fprog`, and `message` follows it.
 */
const CODE: Readonly<Record<Processor, string>> = {
  x86_64: `
    48 89 e3              mov   rbx, rsp          the stack: argc, argv[0], argv[1] …, 0, environ
    bf 26 00 00 00        mov   edi, 38           PR_SET_NO_NEW_PRIVS
    be 01 00 00 00        mov   esi, 1
    31 d2                 xor   edx, edx
    45 31 d2              xor   r10d, r10d
    45 31 c0              xor   r8d, r8d
    b8 9d 00 00 00        mov   eax, 157          prctl
    0f 05                 syscall
    85 c0                 test  eax, eax
    75 30                 jne   failed
    bf 01 00 00 00        mov   edi, 1            SECCOMP_SET_MODE_FILTER
    31 f6                 xor   esi, esi
    48 8d 15 46 00 00 00  lea   rdx, [data]
    b8 3d 01 00 00        mov   eax, 317          seccomp
    0f 05                 syscall
    85 c0                 test  eax, eax
    75 17                 jne   failed
    48 8b 7b 10           mov   rdi, [rbx+16]     argv[1]
    48 8d 73 10           lea   rsi, [rbx+16]     argv + 1
    48 8b 03              mov   rax, [rbx]
    48 8d 54 c3 10        lea   rdx, [rbx+rax*8+16]
    b8 3b 00 00 00        mov   eax, 59           execve
    0f 05                 syscall
    bf 02 00 00 00        mov   edi, 2            failed:
    48 8d 35 28 00 00 00  lea   rsi, [message]
    ba 47 00 00 00        mov   edx, 71           its length
    b8 01 00 00 00        mov   eax, 1            write
    0f 05                 syscall
    bf 7e 00 00 00        mov   edi, 126
    b8 e7 00 00 00        mov   eax, 231          exit_group
    0f 05                 syscall`,
  aarch64: `
    f3 03 00 91           mov   x19, sp           the stack: argc, argv[0], argv[1] …, 0, environ
    c0 04 80 d2           mov   x0, 38            PR_SET_NO_NEW_PRIVS
    21 00 80 d2           mov   x1, 1
    02 00 80 d2           mov   x2, 0
    03 00 80 d2           mov   x3, 0
    04 00 80 d2           mov   x4, 0
    e8 14 80 d2           mov   x8, 167           prctl
    01 00 00 d4           svc   0
    a0 01 00 35           cbnz  w0, failed
    20 00 80 d2           mov   x0, 1             SECCOMP_SET_MODE_FILTER
    01 00 80 d2           mov   x1, 0
    42 02 00 10           adr   x2, data
    a8 22 80 d2           mov   x8, 277           seccomp
    01 00 00 d4           svc   0
    e0 00 00 35           cbnz  w0, failed
    60 0a 40 f9           ldr   x0, [x19, 16]     argv[1]
    61 42 00 91           add   x1, x19, 16       argv + 1
    62 02 40 f9           ldr   x2, [x19]
    22 0c 02 8b           add   x2, x1, x2, lsl 3
    a8 1b 80 d2           mov   x8, 221           execve
    01 00 00 d4           svc   0
    40 00 80 d2           mov   x0, 2             failed:
    61 01 00 10           adr   x1, message
    e2 08 80 d2           mov   x2, 71            its length
    08 08 80 d2           mov   x8, 64            write
    01 00 00 d4           svc   0
    c0 0f 80 d2           mov   x0, 126
    c8 0b 80 d2           mov   x8, 94            exit_group
    01 00 00 d4           svc   0`,
};

/** What the starter writes where it fails. The length of the text stands in the code. */
const MESSAGE = "the system-call filter cannot be set, or the program cannot be started\n";

/** ELF's name of each processor. */
const MACHINE: Readonly<Record<Processor, number>> = { x86_64: 62, aarch64: 183 };
/** Where the file lies in memory; a multiple of the largest pages that 64-bit ARM has. */
const ADDRESS = 0x400000;
const PAGE_BYTES = 0x10000;
const HEADER_BYTES = 64;
const PART_BYTES = 56;
const PART_COUNT = 2;
/** Bytes of a `struct sock_fprog`: the number of instructions, and where they are. */
const DATA_BYTES = 16;
const INSTRUCTION_BYTES = 8;

/** The whole file, which the kernel can start. */
export function starterOf(processor: Processor, network: Network): Uint8Array<ArrayBuffer> {
  const code = codeOf(processor);
  const message = new TextEncoder().encode(MESSAGE);
  const filter = filterOf(processor, network);
  const codeAt = HEADER_BYTES + PART_COUNT * PART_BYTES;
  const dataAt = codeAt + code.length;
  const messageAt = dataAt + DATA_BYTES;
  const filterAt = messageAt + message.length;
  const file = new Uint8Array(filterAt + filter.length);
  file.set(code, codeAt);
  file.set(message, messageAt);
  file.set(filter, filterAt);
  const view = new DataView(file.buffer);
  writeHeader(view, MACHINE[processor], ADDRESS + codeAt);
  // The whole file, to be read and executed; and a stack that cannot be executed.
  writePart(view, 0, { kind: 1, flags: 5, address: ADDRESS, bytes: file.length });
  writePart(view, 1, { kind: 0x6474e551, flags: 6, address: 0, bytes: 0 });
  view.setUint16(dataAt, filter.length / INSTRUCTION_BYTES, true);
  view.setBigUint64(dataAt + 8, BigInt(ADDRESS + filterAt), true);
  return file;
}

/** The bytes before the words of each line. */
function codeOf(processor: Processor): Uint8Array {
  const bytes = CODE[processor].trim().split("\n").flatMap((line) =>
    /^(?:[0-9a-f]{2} )+/.exec(line.trim())![0].trim().split(" ")
  );
  return Uint8Array.from(bytes, (byte) => parseInt(byte, 16));
}

/** Writes the header of the file, an `Elf64_Ehdr` of a program without sections. */
function writeHeader(view: DataView, machine: number, entry: number): void {
  // The sign of the format, 64 bits, little endian, version 1.
  [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1].forEach((byte, at) => view.setUint8(at, byte));
  view.setUint16(16, 2, true); // a program with fixed addresses
  view.setUint16(18, machine, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(24, BigInt(entry), true);
  view.setBigUint64(32, BigInt(HEADER_BYTES), true);
  view.setUint16(52, HEADER_BYTES, true);
  view.setUint16(54, PART_BYTES, true);
  view.setUint16(56, PART_COUNT, true);
}

interface Part {
  readonly kind: number;
  readonly flags: number;
  readonly address: number;
  readonly bytes: number;
}

/** Writes a part of the file, an `Elf64_Phdr` of one that begins with the file. */
function writePart(view: DataView, index: number, { kind, flags, address, bytes }: Part): void {
  const at = HEADER_BYTES + index * PART_BYTES;
  view.setUint32(at, kind, true);
  view.setUint32(at + 4, flags, true);
  view.setBigUint64(at + 16, BigInt(address), true);
  view.setBigUint64(at + 24, BigInt(address), true);
  view.setBigUint64(at + 32, BigInt(bytes), true);
  view.setBigUint64(at + 40, BigInt(bytes), true);
  view.setBigUint64(at + 48, BigInt(PAGE_BYTES), true);
}
