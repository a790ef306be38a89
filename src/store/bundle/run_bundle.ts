/** Writes the evidence bundle of a run: a folder with its events, markers, pictures, clips and sound, and a
 * signed manifest.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { World } from "../../base/world.ts";
import { cloudEvent } from "../../model/events/cloudevent.ts";
import { mayNameBlobs, namedBlobs } from "../../model/events/blob_references.ts";
import { isMediaRemoved, NONE_REMOVED, withRemoved } from "../../model/files/media_kind.ts";
import { MEDIA_REMOVED } from "../../model/runs/run.ts";
import { blobPath } from "../media/blobs.ts";
import { writeAll } from "../timeline/segment.ts";
import { BUNDLE_VERIFIER } from "./bundle_verifier.ts";
import { InstanceKey } from "./instance_key.ts";
import { findRun, readRun } from "./run_events.ts";

export interface BundleOptions {
  readonly dataDir: string;
  readonly runId: string;
  /** The folder for the bundle, which is empty. */
  readonly target: string;
  readonly world: World;
}

/** A blob that an event names and that cannot be handed out. */
export interface MissingBlob {
  readonly sha256: string;
  readonly media_type: string;
  /** The sequence number of the event that names the blob first. */
  readonly seq: number;
  readonly reason: "not there" | "other bytes";
}

/** A blob that an event names and that retention removed from the run before its events. */
export type RemovedBlob = Omit<MissingBlob, "reason">;

/** What the signature covers, byte for byte. See docs/backup.md#export. */
export interface BundleManifest {
  readonly format: typeof BUNDLE_FORMAT;
  readonly made_at: string;
  readonly key_id: string;
  readonly run_id: string;
  readonly events: number;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly markers: number;
  readonly missing: readonly MissingBlob[];
  /** Blobs that were removed on purpose, as a `media_removed` among the events says. */
  readonly removed: readonly RemovedBlob[];
  /**
   * Numbers between its first and its last event that damage took from the log: whose events they were is not
   * known.
   */
  readonly lost_seqs: readonly (readonly [from: number, to: number])[];
  /** All other files of the bundle, by path: not the manifest and its signature. */
  readonly files: readonly BundleFile[];
}

export interface BundleFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export const BUNDLE_FORMAT = "evidence-bundle-1";
const COPY_BYTES = 1024 * 1024;
/** The folder of a blob in the bundle, by its extension. */
const FOLDERS: Readonly<Record<string, string>> = { jpg: "pictures", mp4: "clips", wav: "sound" };

/**
 * All but the signature's and the manifest's time follows from the log, so two bundles of the same run have
 * the same files. The signature comes last: a bundle that was broken off has none. Errors: there is no such
 * run, or the target is not empty.
 */
export function writeBundle({ dataDir, runId, target, world }: BundleOptions): BundleManifest {
  const run = findRun(dataDir, runId);
  const key = InstanceKey.open(dataDir);
  Deno.mkdirSync(target, { recursive: true, mode: 0o700 });
  if (!Deno.readDirSync(target)[Symbol.iterator]().next().done) throw new Error(`${target} is not empty`);
  const bundle = new BundleFolder(target);
  const named = new Map<string, RemovedBlob & { readonly last_seq: number }>();
  let removedMedia = NONE_REMOVED;
  const markers: string[] = [];
  let [events, firstSeq, lastSeq] = [0, 0, 0];
  bundle.write("events.jsonl", (write) =>
    readRun(dataDir, run, (event) => {
      events += 1;
      firstSeq ||= event.seq;
      lastSeq = event.seq;
      write(`${cloudEvent(event)}\n`);
      if (event.kind === "marker_emitted") markers.push(event.payload);
      if (event.kind === MEDIA_REMOVED) removedMedia = withRemoved(removedMedia, JSON.parse(event.payload));
      if (!mayNameBlobs(event.kind)) return;
      for (const { sha256, mediaType } of namedBlobs(event.kind, JSON.parse(event.payload))) {
        const path = blobPath(mediaType, sha256);
        const { seq } = named.get(path ?? "") ?? event;
        if (path) named.set(path, { sha256, media_type: mediaType, seq, last_seq: event.seq });
      }
    }));
  bundle.write("markers.json", (write) => write(`{"markers":[\n${inOrder(markers).join(",\n")}\n]}\n`));
  const missing: MissingBlob[] = [];
  const removed: RemovedBlob[] = [];
  for (const [path, { last_seq, ...blob }] of named) {
    if (isMediaRemoved(removedMedia, blob.media_type, last_seq)) {
      removed.push(blob);
      continue;
    }
    const extension = path.slice(path.lastIndexOf(".") + 1);
    const reason = bundle.copy(
      join(dataDir, path),
      `${FOLDERS[extension]}/${blob.sha256}.${extension}`,
      blob.sha256,
    );
    if (reason !== null) missing.push({ ...blob, reason });
  }
  bundle.write("public-key.pem", (write) => write(key.publicKey));
  bundle.write("verify.mjs", (write) => write(BUNDLE_VERIFIER));
  const sums = bundle.files.map(({ path, sha256 }) => `${sha256}  ${path}\n`);
  bundle.write("SHA256SUMS", (write) => write(sums.join("")));
  const manifest: BundleManifest = {
    ...{ format: BUNDLE_FORMAT, made_at: new Date(world.now()).toISOString(), key_id: key.keyId },
    ...{ run_id: runId, events, first_seq: firstSeq, last_seq: lastSeq, markers: markers.length },
    missing,
    removed,
    lost_seqs: run.lost.filter(([from, to]) => from > firstSeq && to < lastSeq),
    files: bundle.files,
  };
  const text = new TextEncoder().encode(`${JSON.stringify(manifest, null, 2)}\n`);
  bundle.write("manifest.json", (write) => write(text));
  bundle.write("manifest.sig", (write) => write(key.sign(text)));
  return manifest;
}

class BundleFolder {
  readonly #target: string;
  readonly #files: BundleFile[] = [];

  constructor(target: string) {
    this.#target = target;
  }

  /** The files that were written, by path. */
  get files(): readonly BundleFile[] {
    return this.#files.toSorted((left, right) => left.path < right.path ? -1 : 1);
  }

  /** Writes a file; `fill` gets the function that appends to it. */
  write(path: string, fill: (write: (content: string | Uint8Array) => void) => void): void {
    const hash = createHash("sha256");
    const encoder = new TextEncoder();
    let bytes = 0;
    using file = Deno.openSync(join(this.#target, path), { createNew: true, write: true, mode: 0o600 });
    fill((content) => {
      const piece = typeof content === "string" ? encoder.encode(content) : content;
      hash.update(piece);
      bytes += piece.length;
      writeAll(file, piece);
    });
    file.syncSync();
    this.#files.push({ path, bytes, sha256: hash.digest("hex") });
  }

  /** Copies a blob: null where the copy has the hash; else there is no copy, and the result is why. */
  copy(from: string, path: string, sha256: string): MissingBlob["reason"] | null {
    const buffer = new Uint8Array(COPY_BYTES);
    try {
      using source = Deno.openSync(from, { read: true });
      Deno.mkdirSync(join(this.#target, path, ".."), { recursive: true, mode: 0o700 });
      this.write(path, (write) => {
        for (let read = source.readSync(buffer); read; read = source.readSync(buffer)) {
          write(buffer.subarray(0, read));
        }
      });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return "not there";
      throw error;
    }
    if (this.#files.at(-1)!.sha256 === sha256) return null;
    this.#files.pop();
    Deno.removeSync(join(this.#target, path));
    return "other bytes";
  }
}

/**
 * The markers in the order in which the API lists them: by start_frame, end_frame and marker_id; equal ones
 * as they were written.
 */
function inOrder(markers: readonly string[]): string[] {
  return markers
    .map((text) => ({ text, marker: JSON.parse(text) as Record<string, number | string> }))
    .sort(({ marker: left }, { marker: right }) => {
      for (const field of ["start_frame", "end_frame", "marker_id"]) {
        if (left[field]! < right[field]!) return -1;
        if (left[field]! > right[field]!) return 1;
      }
      return 0;
    })
    .map(({ text }) => text);
}
