/** Follows the steps of a Dockerfile on a folder: what `docker build` does, with mmdebstrap and bubblewrap.
 */

import { dirname, join } from "node:path";
import { type Stage, type Step, variablesOf } from "./dockerfile.ts";

/** What the last stage says of how its image is run. */
export interface Image {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  /** User and group of the processes, as `uid:gid`. */
  readonly user: string;
  readonly volumes: readonly string[];
  readonly ports: readonly string[];
  readonly stopSignal: string;
  readonly entrypoint: readonly string[];
  readonly healthCheck: readonly string[];
}

/**
 * Certificate authorities of this machine, which a step that fetches packages may need where a proxy stands
 * in between.
 */
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";
const AUTHORITIES_INSIDE = "/run/authorities.pem";

export const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };

/** Builds all stages below `folder`; `context` is the folder of the Dockerfile. */
export async function buildImage(stages: readonly Stage[], context: string, folder: string): Promise<Image> {
  const roots = new Map<string, string>();
  let image: Image | undefined;
  for (const [at, stage] of stages.entries()) {
    const root = join(folder, stage.name ?? `stage-${at}`);
    await unpackBase(stage.from, root, folder);
    image = await follow(stage, { root, context, roots });
    if (stage.name) roots.set(stage.name, root);
  }
  return image!;
}

/** Unpacks Debian's `minbase` of the release that the tag names: what the image of that tag is made of. */
async function unpackBase(from: string, root: string, folder: string): Promise<void> {
  const release = /^debian:(\w+)-\d{8}-slim$/.exec(from)?.[1];
  if (!release) throw new Error(`the base must be debian:<release>-<date>-slim, got ${from}`);
  await unpackRelease(release, root, { folder });
}

/** Makes the archive of the release in `folder` unless it is there, and unpacks it. */
export async function unpackRelease(
  release: string,
  root: string,
  { folder, include = [] }: { readonly folder: string; readonly include?: readonly string[] },
): Promise<void> {
  const archive = join(folder, `${release}.tar`);
  const further = include.length === 0 ? [] : [`--include=${include.join(",")}`];
  try {
    Deno.statSync(archive);
  } catch {
    await run(["mmdebstrap", "--quiet", "--variant=minbase", ...further, release, archive]);
  }
  Deno.mkdirSync(root);
  await run(["tar", "-C", root, "--numeric-owner", "-xf", archive, "--exclude=./dev/*"]);
  // As in Debian's images: packages are not kept once they are installed.
  const clean = 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin"; };\n';
  Deno.writeTextFileSync(join(root, "etc/apt/apt.conf.d/docker-clean"), clean);
}

interface Place {
  readonly root: string;
  readonly context: string;
  /** Roots by the name of their stage. */
  readonly roots: ReadonlyMap<string, string>;
}

async function follow({ steps }: Stage, { root, context, roots }: Place): Promise<Image> {
  const image = {
    ...{ root, env: { ...ENVIRONMENT } as Record<string, string>, workingDir: "/", user: "0:0" },
    ...{ volumes: [] as string[], ports: [] as string[], stopSignal: "SIGTERM" },
    ...{ entrypoint: [] as readonly string[], healthCheck: [] as readonly string[] },
  };
  let shell: readonly string[] = ["/bin/sh", "-c"];
  for (const step of steps) {
    console.log(`  ${step.instruction} ${step.text.replace(/\s+/g, " ").slice(0, 110)}`);
    switch (step.instruction) {
      case "RUN":
        await run(inside(image, [...shell, step.text]));
        break;
      case "COPY":
        await copy(step, { root, context, roots }, image.workingDir);
        break;
      case "ENV":
        Object.assign(image.env, variablesOf(step));
        break;
      case "WORKDIR":
        image.workingDir = step.text;
        Deno.mkdirSync(join(root, step.text), { recursive: true });
        break;
      case "SHELL":
        shell = wordsOf(step);
        break;
      case "USER":
        image.user = step.text;
        break;
      case "VOLUME":
        image.volumes.push(step.text);
        break;
      case "EXPOSE":
        image.ports.push(...step.text.split(" "));
        break;
      case "STOPSIGNAL":
        image.stopSignal = step.text;
        break;
      case "ENTRYPOINT":
        image.entrypoint = wordsOf(step);
        break;
      case "HEALTHCHECK":
        image.healthCheck = wordsOf(step);
        break;
      default:
        throw new Error(`Dockerfile:${step.line}: cannot follow ${step.instruction}`);
    }
  }
  return image;
}

/**
 * Follows a COPY step. Files of the context are those that git knows, so that nothing of this machine gets
 * in.
 */
async function copy(
  { text, line }: Step,
  { root, context, roots }: Place,
  workingDir: string,
): Promise<void> {
  const [, stage, paths] = /^(?:--from=(\S+)\s+)?(.+)$/.exec(text)!;
  const words = paths!.split(/\s+/);
  const target = words.pop()!;
  const to = join(root, target.startsWith("/") ? "" : workingDir, target);
  for (const source of words) {
    const isInto = target.endsWith("/");
    if (stage !== undefined) {
      const from = join(roots.get(stage) ?? "", source);
      Deno.mkdirSync(isInto ? to : dirname(to), { recursive: true });
      await run(["cp", "-a", "-T", from, isInto ? join(to, source.split("/").at(-1)!) : to]);
      continue;
    }
    if (await copyFiles(context, source, to, isInto) === 0) {
      throw new Error(`Dockerfile:${line}: nothing to copy: ${source}`);
    }
  }
}

/**
 * Copies a file, or what is below a folder (`.` for everything), as far as git knows it. Returns how many
 * files.
 */
export async function copyFiles(
  context: string,
  source: string,
  to: string,
  isInto = false,
): Promise<number> {
  const known = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = await output(["git", "-C", context, ...known, "--", source]);
  const files = listed.split("\0").filter((file) => file !== "");
  for (const file of files) {
    const below = source === "." ? file : file.slice(source.length + 1);
    const inner = file === source ? (isInto ? source.split("/").at(-1)! : "") : below;
    const path = join(to, inner);
    Deno.mkdirSync(dirname(path), { recursive: true });
    await run(["cp", "-p", "--no-preserve=ownership", join(context, file), path]);
  }
  return files.length;
}

/** Puts further packages of Debian into a built image. */
export async function installInto(image: Image, packages: readonly string[]): Promise<void> {
  const install = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  await run(inside(image, ["/bin/sh", "-c", install]));
}

/** The command line of a build step. */
export function inside(
  { root, env, workingDir }: Pick<Image, "root" | "env" | "workingDir">,
  command: readonly string[],
): string[] {
  const certificates = {
    ...{ NODE_EXTRA_CA_CERTS: AUTHORITIES_INSIDE, npm_config_cafile: AUTHORITIES_INSIDE },
    ...{ DENO_CERT: AUTHORITIES_INSIDE, PIP_CERT: AUTHORITIES_INSIDE },
  };
  return [
    ...[
      "bwrap",
      "--bind",
      root,
      "/",
      "--dev",
      "/dev",
      "--proc",
      "/proc",
      "--tmpfs",
      "/run",
      "--perms",
      "1777",
      "--tmpfs",
      "/dev/shm",
      "--cap-add",
      "ALL",
    ],
    ...["--ro-bind", AUTHORITIES, AUTHORITIES_INSIDE, "--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"],
    ...["--clearenv", "--chdir", workingDir, "--die-with-parent"],
    ...Object.entries({ ...certificates, ...env, DEBIAN_FRONTEND: "noninteractive" })
      .flatMap(([name, value]) => ["--setenv", name, value]),
    ...command,
  ];
}

function wordsOf({ words, text, line }: Step): readonly string[] {
  if (words === null) throw new Error(`Dockerfile:${line}: must be a JSON list: ${text}`);
  return words;
}

/** Runs a command; throws with what it said where it fails. */
export async function run(command: readonly string[]): Promise<void> {
  await output(command);
}

async function output([program, ...args]: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program!, { args }).output();
  const text = new TextDecoder().decode(stdout);
  if (!success) {
    throw new Error(
      `${program} failed:\n${text.slice(-2000)}\n${new TextDecoder().decode(stderr).slice(-4000)}`,
    );
  }
  return text;
}
