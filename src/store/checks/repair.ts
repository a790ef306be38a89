/** Makes a damaged data directory sound: what is damaged is set aside, what is lost is written down, nothing
 * is deleted.
 */

import { join } from "node:path";
import type { World } from "../../base/world.ts";
import { GAPS_FORMAT, raiseFormat, SEALED_NAMES_FORMAT } from "../files/data_format.ts";
import { DirectoryLock } from "../files/directory_lock.ts";
import { findSegments, segmentName, writeAll } from "../timeline/segment.ts";
import { PRINCIPAL_SECRET_FILE } from "../files/principal_secret.ts";
import { readSmallFile } from "../files/small_file.ts";
import { scanSegment } from "../timeline/segment_scan.ts";
import { acceptLosses } from "../timeline/accepted_losses.ts";
import { checkDirectory, type CheckedPlaces, type DirectoryCheck } from "./directory_check.ts";
import { DELIVERY_FILE } from "./file_check.ts";
import { type CheckFinding, Findings } from "./findings.ts";
import { syncFolder } from "../files/folder.ts";
import { SetAside } from "./set_aside.ts";

export interface Repair {
  /** What was done, one sentence each. */
  readonly steps: readonly string[];
  /** Where the damaged files lie, relative to the data directory; null where there are none. */
  readonly setAside: string | null;
  /** The check of the directory as it is after the repair. */
  readonly after: DirectoryCheck;
}

/** Repairs a data directory. Errors: another process owns it. */
export async function repairDirectory(places: CheckedPlaces, world: World): Promise<Repair> {
  const { dataDir } = places;
  using _lock = DirectoryLock.acquire(dataDir);
  const before = await checkDirectory(places, new Findings(Infinity));
  const repair = new Repairing(dataDir, world.now());
  await repair.repair(before);
  return {
    steps: repair.steps,
    setAside: repair.aside.isUsed ? repair.aside.folder : null,
    after: await checkDirectory(places),
  };
}

class Repairing {
  readonly steps: string[] = [];
  readonly aside: SetAside;
  readonly #dataDir: string;
  readonly #lostSeqs: (readonly [number, number])[] = [];
  readonly #lostBlobs: string[] = [];

  constructor(dataDir: string, nowMs: number) {
    this.#dataDir = dataDir;
    this.aside = new SetAside(dataDir, nowMs);
  }

  async repair({ findings, log }: DirectoryCheck): Promise<void> {
    const all = [...findings.damage, ...findings.notes];
    const inSegments = all.filter(({ kind, path }) =>
      (kind === "damaged_bytes" || kind === "torn_write") && path.startsWith("timeline/")
    );
    // Before anything of the log changes, as that is what tells a later check that the losses are known.
    this.#accept(findings.damage);
    if (inSegments.length > 0) this.#rewriteSegments(inSegments);
    const lacksEnd = findings.damage.some(({ seqs }) => seqs !== undefined && seqs[1] > log.lastSeq);
    if (lacksEnd) {
      this.#reserveNumbers(Math.max(log.nextSeq, ...findings.damage.map(({ seqs }) => (seqs?.[1] ?? 0) + 1)));
    }
    const isSnapshotUsable = inSegments.length === 0 && !lacksEnd &&
      findings.counts.unusable_snapshot === undefined;
    if (!isSnapshotUsable) this.#moveIfThere("timeline/snapshot", "the next start makes it again");
    if (
      all.some(({ kind, path }) =>
        path === DELIVERY_FILE && (kind === "damaged_deliveries" || kind === "torn_write")
      )
    ) {
      this.#rewrite(DELIVERY_FILE, 0, Infinity);
    }
    for (const finding of findings.damage) await this.#repairFile(finding);
    if (this.#lostSeqs.length > 0) this.#setUnnamedAside(findings.notes);
    if (this.aside.isUsed) {
      this.aside.write("report.json", `${JSON.stringify({ steps: this.steps, findings: all }, null, 2)}\n`);
    }
  }

  #accept(damage: readonly CheckFinding[]): void {
    for (const { kind, path, seqs } of damage) {
      if (kind === "missing_blob" || kind === "damaged_blob") this.#lostBlobs.push(path);
      else if (seqs !== undefined) this.#lostSeqs.push(seqs);
    }
    if (this.#lostSeqs.length + this.#lostBlobs.length === 0) return;
    acceptLosses(this.#dataDir, { events: this.#lostSeqs, blobs: this.#lostBlobs });
    const events = this.#lostSeqs.reduce((sum, [from, to]) => sum + to - from + 1, 0);
    this.steps.push(
      `wrote down as lost: ${events} events, ${this.#lostBlobs.length} blobs (accepted-losses.json)`,
    );
  }

  /** Leaves the sound records of each damaged segment in it; a commit that was cut off goes as a whole. */
  #rewriteSegments(damaged: readonly CheckFinding[]): void {
    const directory = join(this.#dataDir, "timeline");
    let lastSeq = 0;
    for (const { name, sizeBytes, unreadable } of findSegments(directory)) {
      if (unreadable !== "") continue;
      const own = damaged.filter(({ path }) => path === `timeline/${name}`);
      const cutFrom = own.find(({ kind }) => kind === "torn_write")?.offset ?? Infinity;
      if (own.length > 0) {
        lastSeq = this.#rewrite(`timeline/${name}`, lastSeq, cutFrom);
        continue;
      }
      using file = Deno.openSync(join(directory, name), { read: true });
      scanSegment(file, sizeBytes, 0, lastSeq, { record: (_, { seq }) => lastSeq = seq, damage: () => {} });
    }
  }

  /** Writes a segment again without what is damaged. Returns the number of the last record. */
  #rewrite(path: string, afterSeq: number, cutFrom: number): number {
    const full = join(this.#dataDir, path);
    let [lastSeq, records] = [afterSeq, 0];
    {
      using from = Deno.openSync(full, { read: true });
      using to = Deno.openSync(`${full}.repaired`, {
        create: true,
        truncate: true,
        write: true,
        mode: 0o600,
      });
      scanSegment(from, from.statSync().size, 0, afterSeq, {
        record: (bytes, { seq, payloadEnd, sizeBytes }, offset) => {
          if (offset >= cutFrom) return;
          writeAll(to, bytes.subarray(payloadEnd - sizeBytes + 1, payloadEnd));
          writeAll(to, LINE_BREAK);
          lastSeq = seq;
          records += 1;
        },
        damage: () => {},
      });
      to.syncSync();
    }
    this.aside.keep(path);
    Deno.renameSync(`${full}.repaired`, full);
    syncFolder(join(full, ".."));
    this.steps.push(`set ${path} aside, and put its ${records} sound records in its place`);
    return lastSeq;
  }

  /** Makes an empty segment whose name keeps the numbers of lost events from being given to others. */
  #reserveNumbers(nextSeq: number): void {
    const name = segmentName(nextSeq, 0);
    const path = join(this.#dataDir, "timeline", name);
    Deno.openSync(path, { create: true, append: true, mode: 0o600 }).close();
    syncFolder(join(path, ".."));
    this.steps.push(`began the segment timeline/${name}, so that the numbers before it are not used again`);
  }

  async #repairFile({ kind, path, text }: CheckFinding): Promise<void> {
    const isMoved = ["damaged_blob", "damaged_answer", "damaged_recording", "damaged_format"].includes(kind);
    if (isMoved) {
      this.#moveIfThere(path, text);
      if (kind === "damaged_format") await this.#raiseFormat();
    } else if (kind === "unreadable_file") {
      if (isRegularFile(join(this.#dataDir, path))) this.steps.push(`left ${path} as it is: ${text}`);
      else this.#moveIfThere(path, "it is no regular file");
    }
  }

  /**
   * Sets the format to the highest that the directory may have had: earlier versions might not know what the
   * log has.
   */
  async #raiseFormat(): Promise<void> {
    const isSealed = readSmallFile(this.#dataDir, PRINCIPAL_SECRET_FILE) !== undefined;
    await raiseFormat(this.#dataDir, isSealed ? SEALED_NAMES_FORMAT : GAPS_FORMAT);
  }

  /**
   * Sets blobs aside that no event names: the next retention would remove them. A lost event may have named
   * such a blob, and may come back from a backup.
   */
  #setUnnamedAside(notes: readonly CheckFinding[]): void {
    const moved = notes.filter(({ kind, path }) => kind === "unreferenced_blob" && this.#isMoved(path));
    if (moved.length > 0) {
      this.steps.push(`set ${moved.length} blobs aside that no event names: lost ones may have`);
    }
  }

  #moveIfThere(path: string, why: string): void {
    if (this.#isMoved(path)) this.steps.push(`set ${path} aside: ${why}`);
  }

  /** Moves the file aside; false where it is not there, as it may have been moved for another finding. */
  #isMoved(path: string): boolean {
    try {
      this.aside.move(path);
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }
}

const LINE_BREAK = new Uint8Array([0x0a]);

function isRegularFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return true; // whoever may look at it decides
  }
}
