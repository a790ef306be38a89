/** What the system-call filters answer, on both kinds of processors: their programs are run here as the
 * kernel runs them.
 */

import { deepEqual, equal, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { filterOf, type Network } from "../../scripts/seccomp/filter.ts";
import { serviceFilterOf } from "../../scripts/seccomp/service_filter.ts";
import { starterOf } from "../../scripts/seccomp/starter.ts";
import {
  ALLOWED,
  BY_ARGUMENT,
  numberOf,
  type Processor,
  PROCESSORS,
  REFUSED_TO_SERVICE,
  SERVICE_BY_ARGUMENT,
} from "../../scripts/seccomp/syscalls.ts";

const ARCHITECTURE = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };
const I386 = 0x40000003;
const X32 = 0x40000000;
const ALLOW = "allow";

/** Calls that no decoder may make, with their numbers. */
const REFUSED: Readonly<Record<string, readonly [number, number]>> = {
  ptrace: [101, 117],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  unshare: [272, 97],
  setns: [308, 268],
  clone3: [435, 435],
  execveat: [322, 281],
  kill: [62, 129],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  kexec_load: [246, 104],
  init_module: [175, 105],
  finit_module: [313, 273],
  open_by_handle_at: [304, 265],
  personality: [135, 92],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  bind: [49, 200],
  listen: [50, 201],
  accept4: [288, 242],
  sendmsg: [46, 211],
  memfd_create: [319, 279],
  setuid: [105, 146],
  capset: [126, 91],
  mknodat: [259, 33],
  unlinkat: [263, 35],
  renameat2: [316, 276],
  fchmodat: [268, 53],
  reboot: [169, 142],
  seccomp: [317, 277],
  pidfd_getfd: [438, 438],
  move_mount: [429, 429],
};

/** The answer of a decoder's filter to a call. */
function answer(
  processor: Processor,
  network: Network,
  number: number,
  args: readonly number[] = [],
  architecture = ARCHITECTURE[processor],
): string {
  return answerOf(filterOf(processor, network), number, args, architecture);
}

function answerOf(
  filter: Uint8Array<ArrayBuffer>,
  number: number,
  args: readonly number[],
  architecture: number,
): string {
  const call = new DataView(new ArrayBuffer(64));
  call.setUint32(0, number, true);
  call.setUint32(4, architecture, true);
  args.forEach((value, index) => call.setBigUint64(16 + 8 * index, BigInt(value), true));
  const program = new DataView(filter.buffer);
  let accumulator = 0;
  for (let at = 0; at < program.byteLength / 8; at++) {
    const code = program.getUint16(8 * at, true);
    const value = program.getUint32(8 * at + 4, true);
    const skip = (isTrue: boolean) => at += program.getUint8(8 * at + (isTrue ? 2 : 3));
    switch (code) {
      case 0x20:
        accumulator = call.getUint32(value, true);
        break;
      case 0x54:
        accumulator = (accumulator & value) >>> 0;
        break;
      case 0x15:
        skip(accumulator === value);
        break;
      case 0x25:
        skip(accumulator > value);
        break;
      case 0x35:
        skip(accumulator >= value);
        break;
      case 0x45:
        skip((accumulator & value) !== 0);
        break;
      case 0x06:
        return value === 0x7fff0000 ? ALLOW : value === 0x80000000 ? "kill" : `error ${value & 0xffff}`;
      default:
        throw new Error(`an instruction ${code} that is unknown`);
    }
  }
  throw new Error("the program has no end");
}

for (const processor of PROCESSORS) {
  const column = PROCESSORS.indexOf(processor);

  Deno.test(`${processor}: exactly the calls of the table are allowed`, () => {
    const numbers = new Set(Object.values(ALLOWED).map((row) => numberOf(row, processor)));
    const judged = new Set(Object.values(BY_ARGUMENT).map((row) => numberOf(row, processor)));
    for (let number = 0; number < 1024; number++) {
      if (judged.has(number)) continue;
      equal(answer(processor, "none", number), numbers.has(number) ? ALLOW : "error 38", String(number));
    }
    for (const [name, row] of Object.entries(REFUSED)) {
      equal(answer(processor, "loopback", row[column]!), "error 38", name);
    }
  });

  Deno.test(`${processor}: calls with the numbers of another processor kill`, () => {
    const read = ALLOWED.read[column]!;
    equal(answer(processor, "none", read, [], I386), "kill");
    equal(answer(processor, "none", read, [], ARCHITECTURE[PROCESSORS[1 - column]!]), "kill");
    equal(answer(processor, "none", X32 + read), "error 38");
  });

  Deno.test(`${processor}: threads can be made, processes and namespaces cannot`, () => {
    const clone = BY_ARGUMENT.clone[column]!;
    const THREAD = 0x3d0f00;
    const SIGCHLD = 17;
    equal(answer(processor, "none", clone, [THREAD]), ALLOW);
    equal(answer(processor, "none", clone, [SIGCHLD]), "error 1");
    for (
      const namespace of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]
    ) {
      equal(answer(processor, "none", clone, [THREAD | namespace]), "error 1");
    }
  });

  Deno.test(`${processor}: Unix sockets always, TCP with a relay only, nothing else`, () => {
    const socket = BY_ARGUMENT.socket[column]!;
    const STREAM = 1;
    const CLOSE_ON_EXEC = 0o2000000;
    const families = (network: Network) =>
      Array.from({ length: 46 }, (_, family) => family)
        .filter((family) => answer(processor, network, socket, [family, STREAM | CLOSE_ON_EXEC]) === ALLOW);
    deepEqual(families("none"), [1]);
    deepEqual(families("loopback"), [1, 2]);
    for (const type of [2, 3, 4, 5]) equal(answer(processor, "loopback", socket, [2, type]), "error 97");
    const protocols = Array.from({ length: 300 }, (_, protocol) => protocol)
      .filter((protocol) => answer(processor, "loopback", socket, [2, STREAM, protocol]) === ALLOW);
    deepEqual(protocols, [0, 6]);
  });

  Deno.test(`${processor}: nothing is put into a terminal, and no attribute of the process is changed but its name`, () => {
    const ioctl = BY_ARGUMENT.ioctl[column]!;
    const TERMINAL_INPUT = 0x5412;
    equal(answer(processor, "none", ioctl, [0, TERMINAL_INPUT]), "error 25");
    equal(answer(processor, "none", ioctl, [0, 0x5401]), ALLOW);
    const limits = BY_ARGUMENT.prlimit64[column]!;
    equal(answer(processor, "none", limits, [0]), ALLOW);
    equal(answer(processor, "none", limits, [1]), "error 1");
    const prctl = BY_ARGUMENT.prctl[column]!;
    equal(answer(processor, "none", prctl, [15]), ALLOW);
    for (const option of [1, 4, 8, 22, 24, 28, 35, 38, 47]) {
      equal(answer(processor, "none", prctl, [option]), "error 22");
    }
  });

  Deno.test(`${processor}: the service may do what it and a cage need, and not what leads to other processes and the kernel`, () => {
    const filter = serviceFilterOf(processor);
    const of = (number: number, args: readonly number[] = [], architecture = ARCHITECTURE[processor]) =>
      answerOf(filter, number, args, architecture);
    const refused = new Set(Object.values(REFUSED_TO_SERVICE).map((row) => numberOf(row, processor)));
    const judged = new Set(Object.values(SERVICE_BY_ARGUMENT).map((row) => numberOf(row, processor)));
    for (let number = 0; number < 1024; number++) {
      if (!judged.has(number)) equal(of(number), refused.has(number) ? "error 1" : ALLOW, String(number));
    }
    for (const name of ["ptrace", "keyctl", "bpf", "io_uring_setup", "pidfd_getfd", "process_vm_writev"]) {
      equal(of(REFUSED[name]![column]!), "error 1", name);
    }
    for (
      const name of [
        "mount",
        "umount2",
        "pivot_root",
        "unshare",
        "setns",
        "clone3",
        "kill",
        "bind",
        "seccomp",
      ]
    ) {
      equal(of(REFUSED[name]![column]!), ALLOW, name);
    }
    const read = ALLOWED.read[column]!;
    equal(of(read, [], I386), "error 38");
    equal(of(X32 + read), "error 38");

    const socket = SERVICE_BY_ARGUMENT.socket[column]!;
    const [STREAM, RAW, CLOSE_ON_EXEC] = [1, 3, 0o2000000];
    const families = Array.from({ length: 46 }, (_, family) => family)
      .filter((family) => of(socket, [family, STREAM | CLOSE_ON_EXEC]) === ALLOW);
    deepEqual(families, [1, 2, 10, 16]);
    deepEqual([1, 2, 10, 16].filter((family) => of(socket, [family, RAW]) === ALLOW), [16]);
    for (const type of [2, 5]) equal(of(socket, [2, type | CLOSE_ON_EXEC]), ALLOW);

    const ioctl = SERVICE_BY_ARGUMENT.ioctl[column]!;
    for (const typing of [0x5412, 0x541c]) equal(of(ioctl, [0, typing]), "error 1");
    equal(of(ioctl, [0, 0x5401]), ALLOW);

    const mknodat = SERVICE_BY_ARGUMENT.mknodat[column]!;
    const [PIPE, SOCKET, FILE, CHARACTERS, BLOCKS] = [0x1000, 0xc000, 0x8000, 0x2000, 0x6000];
    for (const kind of [PIPE, SOCKET, FILE]) equal(of(mknodat, [0, 0, kind | 0o600]), ALLOW);
    for (const kind of [CHARACTERS, BLOCKS]) equal(of(mknodat, [0, 0, kind | 0o600]), "error 1");
  });

  Deno.test(`${processor}-service.bpf is the fresh build`, () => {
    const path = fileURLToPath(new URL(`../../seccomp/${processor}-service.bpf`, import.meta.url));
    deepEqual(Deno.readFileSync(path), serviceFilterOf(processor));
  });

  for (const network of ["none", "loopback"] as const) {
    Deno.test(`${processor}-${network}.bpf is the fresh build, within the length that the kernel takes`, () => {
      const built = filterOf(processor, network);
      ok(built.length / 8 <= 4096);
      const path = fileURLToPath(new URL(`../../seccomp/${processor}-${network}.bpf`, import.meta.url));
      deepEqual(Deno.readFileSync(path), built);
    });

    Deno.test(`${processor}-${network}.starter is the fresh build, and ends with the filter`, () => {
      const built = starterOf(processor, network);
      const path = fileURLToPath(new URL(`../../seccomp/${processor}-${network}.starter`, import.meta.url));
      deepEqual(Deno.readFileSync(path), built);
      equal(Deno.statSync(path).mode! & 0o111, 0o111);
      const filter = filterOf(processor, network);
      deepEqual(built.subarray(-filter.length), filter);
    });
  }
}

Deno.test("a starter sets the filter, keeps arguments and environment, and says when it cannot", async () => {
  const starter = fileURLToPath(new URL(`../../seccomp/${Deno.build.arch}-none.starter`, import.meta.url));
  const started = async (args: string[]) => {
    const options = { args, clearEnv: true, env: { A: "b" }, stdin: "null" } as const;
    const { code, stdout, stderr } = await new Deno.Command(starter, options).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    return { code, out, err };
  };
  const { out } = await started(["/usr/bin/grep", "-hE", "^(Seccomp|NoNewPrivs):", "/proc/self/status"]);
  deepEqual(out!.trim().split("\n"), ["NoNewPrivs:\t1", "Seccomp:\t2"]);
  deepEqual(await started(["/usr/bin/env"]), { code: 0, out: "A=b\n", err: "" });
  const REASON = "the system-call filter cannot be set, or the program cannot be started\n";
  for (const args of [[], ["/nonexistent"]]) {
    deepEqual(await started(args), { code: 126, out: "", err: REASON });
  }
});
