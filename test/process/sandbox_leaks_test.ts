/** What a Worker of the service finds beside its permissions: each thing is tried from inside, or taken away,
 * and nothing is new.
 */

import { deepEqual, equal, ok } from "node:assert/strict";
import { builtinModules } from "node:module";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { KEPT_DENO, KEPT_GLOBALS, KEPT_NAVIGATOR, namesOf } from "../../src/base/worker_scope.ts";
import { TempFolder } from "../support/media.ts";
import type { LeaksOrder } from "../support/leaks_worker.ts";
import type { Probe } from "../support/probe_worker.ts";
import { PROJECT_ROOT } from "../support/service.ts";
import {
  NODE_MODULES,
  type Scope,
  TAKEN_DENO,
  TAKEN_GLOBALS,
  TAKEN_NAVIGATOR,
} from "../support/worker_names.ts";

/**
 * Whether each place may use the network: as `process/sandbox.ts` gives permissions to the service, and
 * as a decode Worker has them.
 */
const PERMISSIONS = { service: true, decode: false };
const SYSTEM = ["ca", "networkInterfaces", "cpus", "statfs"] as const;
const LIST = new URL("../../fixtures/worker_node_names.json", import.meta.url);

function workerOf<T>(
  entry: string,
  folder: string,
  net: boolean,
): { answer: (order: unknown) => Promise<T> } & Disposable {
  const worker = new Worker(new URL(`../support/${entry}`, import.meta.url), {
    type: "module",
    deno: {
      permissions: {
        ...{ read: [folder, join(PROJECT_ROOT, "src")], write: [folder], net, run: false, env: false },
        ...{ sys: net ? [...SYSTEM] : false, ffi: false, import: false },
      },
    },
  });
  return {
    answer: (order) =>
      new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => {
          event.preventDefault();
          reject(new Error(event.message));
        };
        worker.postMessage(order);
      }),
    [Symbol.dispose]: () => worker.terminate(),
  };
}

/** Says which names are new: somebody has to look at them, and to put each into a table. */
function sameNames(what: string, found: readonly string[], known: readonly string[]): void {
  const [now, before] = [new Set(found), new Set(known)];
  const differences = {
    [`${what}, new, to be looked at`]: [...now].filter((name) => !before.has(name)),
    [`${what}, no longer there`]: [...before].filter((name) => !now.has(name)),
  };
  deepEqual(differences, Object.fromEntries(Object.keys(differences).map((key) => [key, []])));
}

for (const [name, net] of Object.entries(PERMISSIONS)) {
  Deno.test(`${name}: what the permissions of a Worker do not hold is taken away`, async () => {
    using folder = new TempFolder();
    const own = join(folder.path, "own");
    Deno.mkdirSync(own);
    const abstract = `\0sandbox-leaks-${crypto.randomUUID()}`;
    let reached = 0;
    const server = createServer((socket) => {
      reached++;
      socket.destroy();
    });
    server.listen({ path: abstract });
    await once(server, "listening");
    const datagrams = Deno.listenDatagram({ transport: "unixpacket", path: `${abstract}-datagrams` });
    const received = datagrams.receive().then(() => reached++, () => {});
    const order: LeaksOrder = { folder: own, abstract, abstractDatagrams: `${abstract}-datagrams` };
    let probes: Record<string, Probe>;
    {
      using worker = workerOf<Record<string, Probe>>("leaks_worker.ts", own, net);
      probes = await worker.answer(order);
    }
    server.close();
    await once(server, "close");
    datagrams.close();
    await received;
    ok(Object.keys(probes).length >= 45);
    for (const [attempt, { outcome, detail }] of Object.entries(probes)) {
      const wanted = attempt.startsWith("gone: ") ? /^gone$/ : /^NotCapable$/;
      ok(
        wanted.test(outcome) || /Requires \w+ access/.test(detail ?? ""),
        `${attempt}: ${outcome} ${detail}`,
      );
    }
    equal(reached, 0);
    deepEqual(
      [...Deno.readDirSync(own)].map(({ name }) => name).filter((name) => /link|heap|db/.test(name)),
      [],
    );
  });
}

Deno.test("every global name, every member of Deno and of navigator is kept for a reason or taken away", async () => {
  using folder = new TempFolder();
  using bare = workerOf<Scope>("names_worker.ts", folder.path, true);
  const there = await bare.answer({ isBare: true });
  using own = workerOf<Scope>("names_worker.ts", folder.path, true);
  const left = await own.answer({ isBare: false });
  const tables = {
    globals: [KEPT_GLOBALS, TAKEN_GLOBALS],
    deno: [KEPT_DENO, TAKEN_DENO],
    navigator: [KEPT_NAVIGATOR, TAKEN_NAVIGATOR],
  } as const;
  for (const [part, [kept, taken]] of Object.entries(tables) as [keyof typeof tables, typeof tables.deno][]) {
    const known = [...namesOf(kept), ...namesOf(taken)];
    equal(new Set(known).size, known.length, `${part}: a name stands twice`);
    sameNames(part, there[part], known);
    sameNames(`${part} of a Worker of the service`, left[part], namesOf(kept));
  }
});

Deno.test("every module of Node is harmless for a reason, and has no new members", async () => {
  sameNames("modules of Node", builtinModules, namesOf(NODE_MODULES));
  using folder = new TempFolder();
  using worker = workerOf<Scope>("names_worker.ts", folder.path, true);
  const { node } = await worker.answer({ isBare: false });
  if (Deno.env.get("WORKER_NAMES") === "write") {
    Deno.writeTextFileSync(LIST, `${JSON.stringify(node, null, 1)}\n`);
  }
  const known = JSON.parse(Deno.readTextFileSync(LIST)) as Scope["node"];
  const lines = (of: Scope["node"]) =>
    Object.entries(of).flatMap(([module, names]) => names.map((name) => `${module} ${name}`));
  sameNames("members of Node's modules", lines(node), lines(known));
});

Deno.test("whatever starts the service lets no module be fetched while it runs", async () => {
  const starts: Record<string, RegExp> = {
    "scripts/serve": /^exec "\$DENO" run .*--cached-only /m,
    "scripts/serve_dev.ts": /"run",\s[^]*?"--cached-only",\s/,
    "scripts/single_file/start.sh": /^exec .* run .*--no-remote --no-npm --cached-only /m,
    "Dockerfile": /^ENTRYPOINT .*"--cached-only"/m,
    "deploy/systemd/video-analysis.service": /^ExecStart=.* --cached-only /m,
  };
  for (const [path, line] of Object.entries(starts)) {
    ok(line.test(Deno.readTextFileSync(join(PROJECT_ROOT, path))), path);
  }
  using folder = new TempFolder();
  const script = folder.file(
    "fetches.mjs",
    'try { await import(["npm:is-odd", "3.0.1"].join("@")); console.log("fetched") } catch (error) { console.log(error.message) }',
  );
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--cached-only", "--no-config", "--allow-all", script],
    env: { DENO_DIR: join(folder.path, "cache"), NO_COLOR: "1" },
  }).output();
  ok(/--cached-only is specified/.test(new TextDecoder().decode(stdout)), new TextDecoder().decode(stdout));
});
