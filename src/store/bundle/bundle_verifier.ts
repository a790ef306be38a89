/** The text of the program in an evidence bundle that verifies it: for node or deno, and nothing else. */

export const BUNDLE_VERIFIER =
  `// Verifies this evidence bundle: the signature of its manifest, then every file against the manifest.
//
//   node verify.mjs --key PUBLIC_KEY.pem            the key that the operator of the instance gave you by another way
//   deno run --allow-read verify.mjs --key PUBLIC_KEY.pem
//
// Without --key it takes the public key of the bundle: that shows that nothing was changed since, and not who made it.
// Whoever changed a bundle could have changed this program, too: use a copy that you trust, with the bundle's folder as its argument.

import { createHash, createPublicKey, verify } from "node:crypto";
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import process from "node:process";

const OWN = ["manifest.json", "manifest.sig"];

class Refused extends Error {}

function main(args) {
  const keyAt = args.indexOf("--key");
  const keyFile = keyAt < 0 ? null : args[keyAt + 1];
  const rest = keyAt < 0 ? args : args.filter((_, at) => at !== keyAt && at !== keyAt + 1);
  if (rest.length > 1 || keyFile === undefined) {
    console.error("usage: verify.mjs [--key PUBLIC_KEY.pem] [FOLDER]");
    return 2;
  }
  const folder = rest[0] ?? dirname(fileURLToPath(import.meta.url));
  try {
    const manifest = verified(folder, keyFile ?? join(folder, "public-key.pem"));
    console.log(
      "whole: " + manifest.events + " events of " + manifest.run_id + " (" + manifest.first_seq + " to " + manifest.last_seq +
        "), " + manifest.markers + " markers, " + manifest.files.length + " files, made " + manifest.made_at,
    );
    for (const { sha256, seq, reason } of manifest.missing) {
      console.log("not in it when it was made: " + sha256 + ", named by event " + seq + ": " + reason);
    }
    for (const [from, to] of manifest.lost_seqs) {
      console.log("lost in the log when it was made: events " + from + " to " + to + ", of this run or of others");
    }
    console.log("signed by key " + manifest.key_id);
    if (keyFile === null) console.log("this is the key in the bundle: compare it with the one of the instance, or give --key");
    return 0;
  } catch (error) {
    console.error("REFUSED: " + error.message);
    return 1;
  }
}

function verified(folder, keyFile) {
  const manifestBytes = readFileSync(join(folder, "manifest.json"));
  const signature = readFileSync(join(folder, "manifest.sig"));
  const key = createPublicKey(pemIn(readFileSync(keyFile, "utf8")));
  if (key.asymmetricKeyType !== "ed25519") throw new Refused("the key is no Ed25519 key");
  if (!verify(null, manifestBytes, key, signature)) throw new Refused("the signature does not fit the manifest and the key");
  const manifest = JSON.parse(manifestBytes.toString());
  if (manifest.format !== "evidence-bundle-1") throw new Refused("its format is " + manifest.format);
  const keyId = createHash("sha256").update(key.export({ type: "spki", format: "der" })).digest("hex");
  if (manifest.key_id !== keyId) throw new Refused("the manifest names another key");
  const listed = new Map(manifest.files.map((file) => [file.path, file]));
  for (const path of filesBelow(folder, "")) {
    if (!listed.has(path) && !OWN.includes(path)) throw new Refused(path + " is not in the manifest");
  }
  for (const [path, { bytes, sha256 }] of listed) {
    if (path.startsWith("/") || path.split("/").includes("..")) throw new Refused("a path leads out of the bundle: " + path);
    const found = hashOf(join(folder, path));
    if (found === null) throw new Refused(path + " is missing");
    if (found.bytes !== bytes || found.sha256 !== sha256) throw new Refused(path + " was changed");
  }
  return manifest;
}

// The output of "service public-key" has a line with the id of the key behind it, with which Deno takes it for no PEM.
function pemIn(text) {
  return /-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/.exec(text)?.[0] ?? text;
}

function* filesBelow(folder, below) {
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : below + "/" + entry.name;
    if (entry.isDirectory()) yield* filesBelow(folder, path);
    else yield path;
  }
}

function hashOf(path) {
  let file;
  try {
    if (!lstatSync(path).isFile()) return null;
    file = openSync(path, "r");
  } catch {
    return null;
  }
  try {
    const hash = createHash("sha256");
    const buffer = new Uint8Array(1024 * 1024);
    let bytes = 0;
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer)) {
      hash.update(buffer.subarray(0, read));
      bytes += read;
    }
    return { bytes, sha256: hash.digest("hex") };
  } finally {
    closeSync(file);
  }
}

process.exit(main(process.argv.slice(2)));
`;
