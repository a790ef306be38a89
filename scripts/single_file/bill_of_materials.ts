/** What a single file is made of, as CycloneDX JSON: the same text for the same parts. */

/** The part of deno.lock that is read here. */
interface Lock {
  readonly npm: Readonly<
    Record<string, { readonly integrity: string; readonly dependencies?: readonly string[] }>
  >;
  readonly specifiers: Readonly<Record<string, string>>;
}

interface Parts {
  readonly name: string;
  readonly version: string;
  readonly runtime: { readonly version: string; readonly target: string; readonly sha256: string };
  readonly lock: Lock;
  /** Packages in the bundle, each as `name@version`. */
  readonly bundled: readonly string[];
  /** Names of packages in deno.json that are in the web pages; what they depend on is listed as well. */
  readonly inFiles: readonly string[];
}

export function billOfMaterials({ name, version, runtime, lock, bundled, inFiles }: Parts): string {
  const packages = new Set(bundled);
  for (const one of inFiles) addWithDependencies(lockedVersion(lock, one), lock, packages);
  const own = { type: "application", "bom-ref": `${name}@${version}`, name, version };
  const components = [
    {
      type: "platform",
      "bom-ref": `deno@${runtime.version}`,
      name: "deno",
      version: runtime.version,
      purl: `pkg:github/denoland/deno@v${runtime.version}`,
      description:
        `The program of ${runtime.target}, of which unused parts are left out; the hash is that of the whole program`,
      hashes: [{ alg: "SHA-256", content: runtime.sha256 }],
    },
    ...[...packages].sort().map((one) => componentOf(one, lock)),
  ];
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: own },
    components,
    dependencies: [{ ref: own["bom-ref"], dependsOn: components.map((one) => one["bom-ref"]) }],
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

/** What the bill says of a package. Errors: the package is not in deno.lock. */
function componentOf(one: string, lock: Lock) {
  const at = one.lastIndexOf("@");
  const [name, version] = [one.slice(0, at), one.slice(at + 1)];
  const entry = entryOf(one, lock);
  const [algorithm, hash] = entry.integrity.split(/-(.*)/s) as [string, string];
  return {
    type: "library",
    "bom-ref": one,
    name,
    version,
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    hashes: [{
      alg: algorithm.replace("sha", "SHA-"),
      content: Uint8Array.fromBase64(hash).toHex(),
    }],
  };
}

/** What the lock says of a package. It adds the versions of peers to a version: `1.0.0_preact@11.2.0`. */
function entryOf(one: string, { npm }: Lock): Lock["npm"][string] {
  const key = Object.keys(npm).find((key) => key === one || key.startsWith(`${one}_`));
  if (key === undefined) throw new Error(`deno.lock has no ${one}`);
  return npm[key]!;
}

/** `name@version` of a package that deno.lock names with or without its version. */
function lockedVersion({ npm, specifiers }: Lock, named: string): string {
  const wanted = named.lastIndexOf("@") > 0 ? [named] : [
    ...Object.keys(specifiers).filter((key) => key.startsWith(`npm:${named}@`)).map((key) => key.slice(4)),
    ...Object.keys(npm).filter((key) => key.startsWith(`${named}@`)),
  ];
  if (wanted[0] === undefined) throw new Error(`deno.lock has no ${named}`);
  return wanted[0].replace(/_.*/, "");
}

function addWithDependencies(one: string, lock: Lock, found: Set<string>): void {
  if (found.has(one)) return;
  found.add(one);
  for (const dependency of entryOf(one, lock).dependencies ?? []) {
    addWithDependencies(lockedVersion(lock, dependency), lock, found);
  }
}
