/** Builds `seccomp/*.bpf`, the system-call filters of caged decoders. With `--check` it compares them with a fresh build. */

import { join } from "node:path";
import { filterOf, type Network } from "./seccomp/filter.ts";
import { PROCESSORS } from "./seccomp/syscalls.ts";

const FOLDER = join(import.meta.dirname!, "..", "seccomp");
const NETWORKS: readonly Network[] = ["none", "loopback"];

const isCheck = Deno.args.includes("--check");
const stale: string[] = [];
for (const processor of PROCESSORS) {
  for (const network of NETWORKS) {
    const name = `${processor}-${network}.bpf`;
    const bytes = filterOf(processor, network);
    if (!isCheck) Deno.writeFileSync(join(FOLDER, name), bytes);
    else if (!isEqual(bytes, await Deno.readFile(join(FOLDER, name)).catch(() => null))) stale.push(name);
  }
}
if (stale.length > 0) {
  console.error(`${stale.join(", ")}: not equal to a fresh build, run scripts/build_seccomp.ts`);
  Deno.exit(1);
}

function isEqual(a: Uint8Array, b: Uint8Array | null): boolean {
  return b !== null && a.length === b.length && a.every((byte, index) => byte === b[index]);
}
