/** What a program in the cage can do, level by level: a perl that was taken over stands where ffmpeg would.
 */

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ALLOWED, numberOf } from "../../../scripts/seccomp/syscalls.ts";
import { limitWords, run, start } from "../../../src/media/process.ts";
import { threadsMax } from "../../../src/media/tool_limits.ts";
import type { FoundCage } from "../../../src/media/broker/cage_probe.ts";
import { type CageLevel, enclosureOf } from "../../../src/media/broker/cage.ts";
import { systemFilesOf } from "../../../src/media/broker/system_files.ts";
import { BUBBLEWRAP, cageOf, FILTER_DIR, forwarderOf, foundCage, NAMESPACES } from "../../support/cages.ts";
import { NEVER, TempFolder, tools, world } from "../../support/media.ts";
import { type Need, needing, programOnPath } from "../../support/needs.ts";
import { childProcesses } from "../../support/own_process.ts";
import { until } from "../../support/until.ts";

const PERL = programOnPath("perl") ?? "";
const PROBE = fileURLToPath(new URL("../../support/cage_probe.pl", import.meta.url));
/** The numbers of the calls in the probe are those of this processor. */
const PROBING: Need = {
  isMet: () => PERL !== "" && Deno.build.arch === "x86_64",
  reason: "no perl on x86_64",
};

/** What the probe may do at no level but without a cage. */
const MACHINE = [
  ...[
    "read /etc/passwd",
    "list /root",
    "list /home",
    "read a secret beside its input",
    "list the folder of its input",
  ],
  ...[
    "write its input",
    "make a file beside its input",
    "make a file in /tmp",
    "make a file in /",
    "run a shell",
  ],
  ...["see processes", "signal a process outside", "connect to the machine"],
];
const CALLS = [
  ...[
    "add a key",
    "ask for keys",
    "ask for limits of a process outside",
    "attach to process 1",
    "change its personality",
    "chroot",
    "enter a namespace",
  ],
  ...[
    "handle page faults",
    "load a BPF program",
    "load a module",
    "make a file of memory",
    "make a network namespace",
  ],
  ...[
    "make a ring for requests",
    "make a user namespace",
    "mount",
    "open by handle",
    "ptrace itself",
    "read other memory",
  ],
  ...["restart into another kernel", "set the clock", "set the host name", "watch performance events"],
];
const SOCKETS = [
  "open a UDP socket",
  "open an IPv6 socket",
  "open a netlink socket",
  "open a packet socket",
  "open a vsock socket",
  "open a kernel crypto socket",
  "open an SCTP socket",
  "listen",
];
const OWN_PROCESS = "start a process of its own";
const ALLOWED_INSIDE = ["read its input", "write its output"];

const PROCESS = fileURLToPath(new URL("../../support/cage_process.ts", import.meta.url));
const ENDLESS = "$| = 1; print 1; sleep 1000";

const NOTHING = { reads: [], writes: [], devices: [], isCaged: true, makesIn: null, usesLoopback: false };

interface Inside {
  readonly done: readonly string[];
  readonly told: Readonly<Record<string, string>>;
  /** What the kernel says of the process, read from outside. */
  readonly status: Readonly<Record<string, string>>;
  readonly descriptors: readonly string[];
  readonly namespaces: readonly string[];
}

async function probe(level: CageLevel, network: "none" | "machine" | "forwarder" = "none"): Promise<Inside> {
  using folder = new TempFolder();
  const input = folder.file("input's film.mp4", "film\n");
  const output = folder.file("made for it.mp4");
  const secret = folder.file("secret.txt", "secret\n");
  using server = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const cage = await cageOf(level, tools());
  await using forwarder = network === "forwarder" ? forwarderOf(cage, folder.path) : null;
  using passage = await forwarder?.open({ socket: join(folder.path, "m-0.s"), port: 8000 }, NEVER) ?? null;
  const args = [
    "-e",
    Deno.readTextFileSync(PROBE),
    input,
    output,
    secret,
    folder.path,
  ];
  const makesCalls = level !== "off";
  args.push(String((server.addr as Deno.NetAddr).port), String(Deno.pid), makesCalls ? "1" : "");
  const tool = start(PERL, args, {
    ...{ signal: NEVER, hasStdin: true, hasStdout: true, maxStderrBytes: 4000 },
    enclosure: enclosureOf(
      cage,
      PERL,
      {
        reads: [input],
        writes: [output],
        devices: [],
        isCaged: true,
        makesIn: null,
        usesLoopback: network !== "none",
      },
      passage?.words,
    ),
  });
  let text = "";
  const reader = tool.stdout!.pipeThrough(new TextDecoderStream()).getReader();
  while (!text.includes("ready\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the probe ended: ${text} ${(await tool.ended).stderr}`);
    text += value;
  }
  const told = Object.fromEntries(
    text.trim().split("\n").map((line) => line.split(/: ?/) as [string, string]),
  );
  const { pid } = innermost(secret);
  const namespaces = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"].filter((name) =>
    Deno.readLinkSync(`/proc/${pid}/ns/${name}`) !== Deno.readLinkSync(`/proc/self/ns/${name}`)
  );
  const status = Object.fromEntries(
    Deno.readTextFileSync(`/proc/${pid}/status`).trim().split("\n").map((line) =>
      line.split(/:\s*/) as [string, string]
    ),
  );
  const descriptors = [...Deno.readDirSync(`/proc/${pid}/fd`)].map(({ name }) => name)
    .filter((name) => !isInherited(name)).toSorted();
  await tool.stdin!.close();
  await reader.cancel();
  equal((await tool.ended).code, 0);
  equal(Deno.readTextFileSync(output), "x");
  equal(Deno.readTextFileSync(input).startsWith("film\n"), true);
  const done = Object.entries(told).filter(([, value]) => value === "done").map(([name]) => name).toSorted();
  return { done, told, status, descriptors, namespaces };
}

/**
 * Whether this process was started with the descriptor and leaves it open for programs; the service closes
 * them.
 */
function isInherited(descriptor: string): boolean {
  const CLOSE_ON_EXEC = 0o2000000;
  try {
    const [, flags] = /flags:\s*([0-7]+)/.exec(Deno.readTextFileSync(`/proc/self/fdinfo/${descriptor}`))!;
    return Number(descriptor) > 2 && (parseInt(flags!, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false;
  }
}

/** The program itself, which the outer processes have on their command lines too. */
function innermost(text: string) {
  return childProcesses(text).at(-1)!;
}

Deno.test({
  ...needing(PROBING, "without a cage a program does what the user may"),
  async fn() {
    const { done } = await probe("off");
    for (const name of MACHINE) if (!/root|home|\/$/.test(name)) ok(done.includes(name), name);
  },
});

Deno.test({
  ...needing(BUBBLEWRAP, "in bubblewrap a program has its input, its output and nothing else"),
  ignore: !BUBBLEWRAP.isMet() || !PROBING.isMet(),
  async fn() {
    const { done, told, status, descriptors, namespaces } = await probe("bubblewrap");
    deepEqual(done, ["read its input", "write its output"]);
    equal(told.environment, "LC_ALL PWD");
    equal(told.user, "65534");
    equal(status.NoNewPrivs, "1");
    equal(status.Seccomp, "2");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) match(status[set]!, /^0+$/, set);
    deepEqual(descriptors, ["0", "1", "2"]);
    deepEqual(namespaces.filter((name) => name !== "cgroup"), ["ipc", "mnt", "net", "pid", "user", "uts"]);
  },
});

Deno.test({
  ...needing(
    BUBBLEWRAP,
    "in bubblewrap a job on a stream has a network of its own, and TCP sockets, and nothing else is different",
  ),
  ignore: !BUBBLEWRAP.isMet() || !PROBING.isMet(),
  async fn() {
    const { done, namespaces } = await probe("bubblewrap", "forwarder");
    deepEqual(done, ["read its input", "write its output"]);
    deepEqual(namespaces.filter((name) => name !== "cgroup"), ["ipc", "mnt", "net", "pid", "user", "uts"]);
  },
});

Deno.test({
  ...needing(BUBBLEWRAP, "in bubblewrap without a forwarder a job on a stream reaches the machine over TCP"),
  ignore: !BUBBLEWRAP.isMet() || !PROBING.isMet(),
  async fn() {
    const { done, namespaces } = await probe("bubblewrap", "machine");
    deepEqual(done, ["connect to the machine", "read its input", "write its output"]);
    deepEqual(namespaces.filter((name) => name !== "cgroup"), ["ipc", "mnt", "pid", "user", "uts"]);
  },
});

Deno.test({
  ...needing(
    NAMESPACES,
    "in the namespaces of unshare a program has its input, its output and nothing else either",
  ),
  ignore: !NAMESPACES.isMet() || !PROBING.isMet(),
  async fn() {
    const { done, told, status, descriptors, namespaces } = await probe("unshare");
    deepEqual(done, ALLOWED_INSIDE);
    equal(told.environment, "LC_ALL");
    equal(status.NoNewPrivs, "1");
    equal(status.Seccomp, "2");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) match(status[set]!, /^0+$/, set);
    deepEqual(descriptors, ["0", "1", "2"]);
    deepEqual(namespaces, ["ipc", "mnt", "net", "pid", "user", "uts"]);
  },
});

Deno.test({
  ...needing(NAMESPACES, "in the namespaces of unshare a job on a stream has a network of its own"),
  ignore: !NAMESPACES.isMet() || !PROBING.isMet(),
  async fn() {
    const { done, status, namespaces } = await probe("unshare", "forwarder");
    deepEqual(done, ALLOWED_INSIDE);
    match(status.CapEff!, /^0+$/);
    deepEqual(namespaces, ["ipc", "mnt", "net", "pid", "user", "uts"]);
  },
});

Deno.test({
  ...needing(
    PROBING,
    "with limits only a program starts no other, reaches no network and makes no call that the filter refuses",
  ),
  async fn() {
    const { done, status } = await probe("limits");
    const ofFiles = MACHINE.filter((name) => /^(read|list|write|make a file|run|see)/.test(name));
    deepEqual(done.filter((name) => ![...ALLOWED_INSIDE, ...ofFiles].includes(name)), []);
    equal(status.Seccomp, "2");
    const { done: withStream } = await probe("limits", "machine");
    deepEqual(withStream.filter((name) => !done.includes(name)), ["connect to the machine"]);
  },
});

Deno.test({
  ...needing(
    PROBING,
    "with limits only a program gets no new privileges, and root's are given up but for reading files",
  ),
  async fn() {
    const { status } = await probe("limits");
    equal(status.NoNewPrivs, "1");
    const DAC_OVERRIDE = 1n << 1n;
    equal(BigInt(`0x${status.CapEff}`) & ~DAC_OVERRIDE, 0n);
  },
});

Deno.test("every call of the probe is in a list of this test", () => {
  const names = [...Deno.readTextFileSync(PROBE).matchAll(/(?:told\(|^ {2})"([^"$]+)"/gm)].map(([, name]) =>
    name!
  );
  const known = [
    ...MACHINE,
    ...CALLS,
    ...SOCKETS,
    ...ALLOWED_INSIDE,
    OWN_PROCESS,
  ];
  deepEqual(names.toSorted(), known.toSorted());
});

for (const level of ["bubblewrap", "unshare", "limits"] as const) {
  const need = level === "bubblewrap" ? BUBBLEWRAP : level === "unshare" ? NAMESPACES : PROBING;
  Deno.test({
    ...needing(need, `${level}: a kill of the outer process ends everything inside`),
    ignore: !need.isMet() || PERL === "",
    async fn() {
      const cage = await cageOf(level, tools());
      const tool = start(PERL, ["-e", ENDLESS, "endless"], {
        ...{ signal: NEVER, hasStdout: true, maxStderrBytes: 1000 },
        enclosure: enclosureOf(cage, PERL, NOTHING),
      });
      const reader = tool.stdout!.getReader();
      await reader.read();
      const inside = childProcesses("endless").map(({ pid }) => pid);
      ok(inside.length >= (level === "limits" ? 1 : 2));
      tool.kill("out_of_time");
      await reader.cancel();
      equal((await tool.ended).end, "out_of_time");
      await until("they are gone", () => inside.every((pid) => !isRunning(pid)));
    },
  });

  Deno.test({
    ...needing(need, `${level}: a kill while the cage is being built leaves nothing`),
    ignore: !need.isMet() || PERL === "",
    async fn() {
      const cage = await cageOf(level, tools());
      for (let round = 0; round < 30; round++) {
        const tool = start(PERL, ["-e", ENDLESS, `early ${level}`], {
          ...{ signal: NEVER, hasStdout: true, maxStderrBytes: 1000 },
          enclosure: enclosureOf(cage, PERL, NOTHING),
        });
        // From the first process to the last, and some time in between.
        for (let look = 0; look < round % 10; look++) childProcesses(`early ${level}`);
        tool.kill("killed");
        await tool.stdout!.cancel();
        await tool.ended;
        await until("they are gone", () => !hasRunning(`early ${level}`));
      }
    },
  });

  Deno.test({
    ...needing(need, `${level}: a kill of the service ends everything inside`),
    ignore: !need.isMet() || PERL === "",
    async fn() {
      const service = new Deno.Command(Deno.execPath(), {
        args: [
          "run",
          "-A",
          "--no-check",
          "--quiet",
          PROCESS,
          "hold",
          level,
          PERL,
          "-e",
          ENDLESS,
          `of ${level}`,
        ],
        stdout: "piped",
      }).spawn();
      const reader = service.stdout.getReader();
      await reader.read();
      const inside = childProcesses(`of ${level}`, service.pid).map(({ pid }) => pid);
      ok(inside.length > 0);
      service.kill("SIGKILL");
      await reader.cancel();
      await service.status;
      await until("they are gone", () => inside.every((pid) => !isRunning(pid)));
    },
  });

  Deno.test({
    ...needing(need, `${level}: what ends a program is told as without a cage`),
    ignore: !need.isMet() || PERL === "",
    async fn() {
      using folder = new TempFolder();
      const cage = await cageOf(level, tools());
      const end = async (script: string, name: string) => {
        const file = folder.file(name);
        const { end, code } = await run(PERL, ["-e", script, file], {
          ...{
            world: world(),
            signal: NEVER,
            deadlineMs: 60_000,
            maxStdoutBytes: 1000,
            maxStderrBytes: 1000,
          },
          limits: {
            prlimit: tools().prlimit,
            cpuSeconds: 1,
            memory: { stackBytes: 2 ** 23, dataBytes: 2 ** 32, addressSpaceBytes: 2 ** 32 },
            fileBytes: 1000,
          },
          enclosure: enclosureOf(cage, PERL, { ...NOTHING, writes: [file] }),
        });
        return `${end} ${code}`;
      };
      equal(await end("exit 3", "a"), "exited 3");
      const signal = numberOf(ALLOWED.tgkill, Deno.build.arch);
      equal(await end(`syscall(${signal}, $$ + 0, $$ + 0, 11)`, "b"), "killed 139");
      equal(await end(`syscall(${signal}, $$ + 0, $$ + 0, 9)`, "c"), "killed 137");
      equal(await end("1 while 1", "d"), "out_of_cpu 152");
      equal(await end(`open F, ">", $ARGV[0]; syswrite F, "x" x 600 for 1 .. 3`, "e"), "out_of_space 153");
      equal(Deno.statSync(join(folder.path, "e")).size, 1000);
    },
  });
}

/** Whether a process with this text runs, also one that has lost its parents. */
function hasRunning(text: string): boolean {
  return [...Deno.readDirSync("/proc")].some(({ name }) => {
    if (!/^\d+$/.test(name) || !isRunning(Number(name))) return false;
    try {
      return Deno.readTextFileSync(`/proc/${name}/cmdline`).includes(text);
    } catch {
      return false;
    }
  });
}

function isRunning(pid: number): boolean {
  try {
    return !Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ").at(-1)!.startsWith("Z");
  } catch {
    return false;
  }
}

Deno.test("the strongest level that is installed and works is taken, and each that is not has its reason", async () => {
  const all = tools();
  const none = await foundCage(all, { absent: ["bwrap", "unshare", "setpriv"] });
  const starter = (network: string) => join(FILTER_DIR, `${Deno.build.arch}-${network}.starter`);
  deepEqual(none, {
    cage: {
      ...{ level: "limits", setpriv: [] },
      starters: { none: starter("none"), loopback: starter("loopback") },
    },
    misses: ["bubblewrap: it is not installed", "unshare: unshare, setpriv not installed"],
    streamsMiss: null,
    filterMiss: null,
  });
  deepEqual(await foundCage(all, { mode: "off" }), {
    ...{ cage: { level: "off" }, misses: [], streamsMiss: null, filterMiss: null },
  });
  using folder = new TempFolder();
  const script = folder.script("ffmpeg", `exec ${all.ffmpeg} "$@"`);
  const { cage, misses } = await foundCage({ ...all, ffmpeg: script });
  equal(cage.level, "limits");
  for (const miss of misses) match(miss, /ffmpeg is no program of this system but a script/);
  equal(misses.length, 2);
});

Deno.test("a bubblewrap that may make no namespaces is not taken, and its own words are the reason", async () => {
  using folder = new TempFolder();
  const bwrap = folder.script("bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1");
  const unshare = folder.script(
    "unshare",
    "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1",
  );
  const { cage, misses } = await foundCage(tools(), { replaced: { bwrap, unshare } });
  equal(cage.level, "limits");
  match(misses[0]!, /^bubblewrap: .* does not start in it: bwrap: No permissions to create new namespace$/);
  match(misses[1]!, /^unshare: .* does not start in it: unshare: unshare failed: Operation not permitted$/);
});

Deno.test({
  ...needing(
    NAMESPACES,
    "root that may make no namespaces, as in a container, gets the limits, and hears why",
  ),
  async fn() {
    const found = `${Deno.execPath()} run -A --no-check --quiet ${PROCESS} find`;
    const { stdout } = await new Deno.Command("unshare", {
      args: [
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        `echo 0 > /proc/sys/user/max_user_namespaces; exec ${found}`,
      ],
    }).output();
    const { cage, misses } = JSON.parse(new TextDecoder().decode(stdout)) as FoundCage;
    equal(cage.level, "limits");
    ok(cage.level === "limits" && cage.setpriv.includes("--no-new-privs"));
    deepEqual(misses.map((miss) => miss.split(":")[0]), ["bubblewrap", "unshare"]);
    for (const miss of misses.slice(1)) match(miss, /does not start in it: .*No space left on device/);
  },
});

for (const level of ["unshare", "limits"] as const) {
  Deno.test({
    ...needing(
      NAMESPACES,
      `${level}: where no starter works the programs run without a filter, and the reason is told`,
    ),
    async fn() {
      using folder = new TempFolder();
      for (const network of ["none", "loopback"]) {
        folder.script(`${Deno.build.arch}-${network}.starter`, "echo 'no filter here' >&2; exit 126");
      }
      const absent = level === "unshare" ? ["bwrap"] : ["bwrap", "unshare"];
      const { cage, filterMiss } = await foundCage(tools(), { absent, filterDir: folder.path });
      equal(cage.level, level);
      equal((cage as { starters: unknown }).starters, null);
      match(filterMiss!, /does not start in it: .*(no filter here|starter|not found)/);
      const missing = await foundCage(tools(), { absent, filterDir: join(folder.path, "none") });
      equal(missing.cage.level, level);
      match(missing.filterMiss!, /does not start in it|No such file/);
    },
  });
}

const FORKS = `my $made = 0; while ($made < 5000) { my $pid = fork; last unless defined $pid;
  if ($pid == 0) { sleep 1000 } $made++ } print $made; kill 9, -1`;
const ANOTHER_USER: Need = {
  isMet: () => PERL !== "" && NAMESPACES.isMet() && Deno.uid() === 0,
  reason: "only root can start a program as another user",
};

Deno.test({
  ...needing(
    ANOTHER_USER,
    "unshare: even without a filter a program of a user other than root has a bound of processes",
  ),
  async fn() {
    const { cage } = await foundCage(tools(), { absent: ["bwrap"], filterDir: "/nonexistent" });
    const memory = { stackBytes: 2 ** 23, dataBytes: 2 ** 32, addressSpaceBytes: 2 ** 32 };
    const limits = limitWords({ prlimit: tools().prlimit, cpuSeconds: 60, memory });
    const words = enclosureOf(cage, PERL, NOTHING).commandLine(limits, ["-e", FORKS]);
    const user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    const { stdout, stderr } = await new Deno.Command("setpriv", {
      ...{ args: [...user, ...words], stdin: "null", cwd: "/" },
    }).output();
    const made = Number(new TextDecoder().decode(stdout));
    ok(made > 0 && made < threadsMax(), `${made} ${new TextDecoder().decode(stderr)}`);
  },
});

Deno.test("a program needs the folders of its libraries, and a static one its file only", async () => {
  const { folders, files, programs } = await systemFilesOf([tools().ffmpeg], world());
  deepEqual(programs, { [tools().ffmpeg]: Deno.realPathSync(tools().ffmpeg) });
  for (const { from, at } of folders) {
    equal(Deno.realPathSync(at), from);
    match(at, /lib|alternatives/);
  }
  deepEqual(files.filter((path) => path !== "/etc/ld.so.cache"), []);
});
