/**
 * Builds `seccomp/*.bpf`, the system-call filters of caged decoders and of the service, and
 * `seccomp/*.starter`, the programs that set them where no bubblewrap does. With `--check` it compares them
 * with a fresh build.
 */

import { join } from "node:path";
import { filterOf, type Network } from "./seccomp/filter.ts";
import { serviceFilterOf } from "./seccomp/service_filter.ts";
import { starterOf } from "./seccomp/starter.ts";
import { PROCESSORS } from "./seccomp/syscalls.ts";

const FOLDER = join(import.meta.dirname!, "..", "seccomp");
const NETWORKS: readonly Network[] = ["none", "loopback"];
const DATA_MODE = 0o644;
const PROGRAM_MODE = 0o755;

const isCheck = Deno.args.includes("--check");
const stale: string[] = [];
for (const processor of PROCESSORS) {
  for (const network of NETWORKS) {
    const name = `${processor}-${network}`;
    put(`${name}.bpf`, filterOf(processor, network), DATA_MODE);
    put(`${name}.starter`, starterOf(processor, network), PROGRAM_MODE);
  }
  put(`${processor}-service.bpf`, serviceFilterOf(processor), DATA_MODE);
}
if (stale.length > 0) {
  console.error(`${stale.join(", ")}: not equal to a fresh build, run scripts/build_seccomp.ts`);
  Deno.exit(1);
}

function put(name: string, bytes: Uint8Array<ArrayBuffer>, mode: number): void {
  const path = join(FOLDER, name);
  if (isCheck) {
    if (!isEqual(bytes, mode, path)) stale.push(name);
    return;
  }
  Deno.writeFileSync(path, bytes);
  Deno.chmodSync(path, mode);
}

/** Whether the file is there, with these bytes, and may be executed where it is a program. */
function isEqual(bytes: Uint8Array, mode: number, path: string): boolean {
  try {
    const found = Deno.readFileSync(path);
    return found.length === bytes.length && bytes.every((byte, index) => byte === found[index]) &&
      (Deno.statSync(path).mode! & 0o111) === (mode & 0o111);
  } catch {
    return false;
  }
}
