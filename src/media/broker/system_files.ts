/** Which files programs need to start: for a linked program the folders of its libraries, as the linker
 * itself names them.
 */

import { dirname, resolve } from "node:path";
import type { World } from "../../base/world.ts";
import { run } from "../process.ts";

/** A folder of libraries: its real path, and the name under which the linker looks for it. */
export interface LibraryFolder {
  readonly from: string;
  readonly at: string;
}

/** What programs need to start. */
export interface SystemFiles {
  readonly folders: readonly LibraryFolder[];
  readonly files: readonly string[];
  /** Real paths of programs, by their paths as they are configured. */
  readonly programs: Readonly<Record<string, string>>;
}

const LINKER_CACHE = "/etc/ld.so.cache";
const DEADLINE_MS = 10_000;
const OUTPUT_BYTES_MAX = 256 * 1024;
/** Most links that lead from one to the next. */
const LINKS_MAX = 16;

/** What the programs need to start. Errors: the reason, for the log. */
export async function systemFilesOf(programs: readonly string[], world: World): Promise<SystemFiles> {
  const reals: Record<string, string> = {};
  const folders = new Set<string>();
  for (const program of programs) reals[program] = await Deno.realPath(program);
  const found = await Promise.all(Object.values(reals).map((real) => librariesOf(real, world)));
  for (const library of new Set(found.flat())) {
    for (const name of await chainOf(library)) folders.add(dirname(name));
  }
  const isInside = (path: string) => [...folders].some((other) => path.startsWith(`${other}/`));
  const outer = [...folders].filter((path) => !isInside(path));
  const isLinked = outer.length > 0;
  return {
    folders: await Promise.all(outer.map(async (at) => ({ from: await Deno.realPath(at), at }))),
    files: isLinked && await exists(LINKER_CACHE) ? [LINKER_CACHE] : [],
    programs: reals,
  };
}

/** The linker and the libraries of a program; none for a program without a linker. */
async function librariesOf(program: string, world: World): Promise<string[]> {
  const linker = await linkerOf(program);
  if (linker === null) return [];
  const { code, stdout, stderr } = await run(linker, ["--list", program], {
    ...{ world, signal: new AbortController().signal, deadlineMs: DEADLINE_MS },
    ...{ maxStdoutBytes: OUTPUT_BYTES_MAX, maxStderrBytes: OUTPUT_BYTES_MAX },
  });
  if (code !== 0) throw new Error(`the libraries of ${program} are not known: ${stderr.trim()}`);
  const lines = new TextDecoder().decode(stdout).split("\n");
  return [linker, ...lines.flatMap((line) => /(?:^\s*|=> )(\/.*) \(0x[0-9a-f]+\)$/.exec(line)?.[1] ?? [])];
}

/**
 * A file of the kernel's program format: where it lists its parts, and the kind of the part that names the
 * linker.
 */
const ELF_64_LITTLE_ENDIAN = [0x7f, 0x45, 0x4c, 0x46, 2, 1];
const PARTS_AT = 0x20;
const PART_BYTES_AT = 0x36;
const PART_COUNT_AT = 0x38;
const LINKER_PART = 3;
const HEAD_BYTES = 64 * 1024;

async function linkerOf(program: string): Promise<string | null> {
  using file = await Deno.open(program);
  const head = await bytesAt(file, 0, HEAD_BYTES);
  if (!ELF_64_LITTLE_ENDIAN.every((byte, index) => head[index] === byte)) {
    throw new Error(`${program} is no program of this system but a script or a link to something else`);
  }
  const view = new DataView(head.buffer);
  const partBytes = view.getUint16(PART_BYTES_AT, true);
  for (let part = 0; part < view.getUint16(PART_COUNT_AT, true); part++) {
    const at = Number(view.getBigUint64(PARTS_AT, true)) + part * partBytes;
    if (view.getUint32(at, true) !== LINKER_PART) continue;
    // Its name stands anywhere in the file: tools that change the name write the new one at the end.
    const length = Math.min(Number(view.getBigUint64(at + 32, true)), HEAD_BYTES);
    const name = await bytesAt(file, Number(view.getBigUint64(at + 8, true)), length);
    return new TextDecoder().decode(name.subarray(0, length - 1));
  }
  return null;
}

async function bytesAt(file: Deno.FsFile, offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length);
  await file.seek(offset, Deno.SeekMode.Start);
  await file.read(bytes);
  return bytes;
}

/** A path and all that it leads to, from link to link. */
async function chainOf(path: string): Promise<string[]> {
  const chain = [path];
  while (chain.length < LINKS_MAX) {
    const last = chain.at(-1)!;
    if (!(await Deno.lstat(last)).isSymlink) return chain;
    chain.push(resolve(dirname(last), await Deno.readLink(last)));
  }
  throw new Error(`${path} leads through more than ${LINKS_MAX} links`);
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch {
    return false;
  }
}
