/** A small data directory with events, blobs, an upload and a delivery, for tests of the tools that work on
 * it.
 */

import { join } from "node:path";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { type BlobRef, Blobs } from "../../src/store/media/blobs.ts";
import { Timeline, type TimelineOptions } from "../../src/store/timeline/timeline.ts";
import { DeliveryLog } from "../../src/store/webhook_deliveries.ts";
import { TempFolder } from "./media.ts";
import { created, event, RUN } from "./timeline.ts";

export const world = realWorld(quietLog());

export class DataDirectory implements Disposable {
  readonly #folder = new TempFolder();
  readonly dataDir = join(this.#folder.path, "data");
  readonly uploadRoot = join(this.dataDir, "uploads");
  readonly blobs: BlobRef[] = [];

  static async make(): Promise<DataDirectory> {
    const made = new DataDirectory();
    await made.write();
    return made;
  }

  get places() {
    return { dataDir: this.dataDir, uploadRoot: this.uploadRoot };
  }

  get segments(): string[] {
    return [...Deno.readDirSync(join(this.dataDir, "timeline"))].map(({ name }) => name)
      .filter((name) => name.endsWith(".wal")).sort().map((name) => `timeline/${name}`);
  }

  open(options: Partial<TimelineOptions> = {}): Promise<Timeline> {
    return Timeline.open({ dataDir: this.dataDir, world, sync: "none", segmentBytes: 2000, ...options });
  }

  /** Ten markers, a picture and a clip that events name, one delivery, one upload. */
  async write(): Promise<void> {
    await using timeline = await this.open();
    timeline.commit(() => [created()]);
    for (let number = 1; number <= 10; number++) {
      timeline.commit(() => [event("marker_emitted", marker(number))]);
    }
    const blobs = Blobs.open(this.dataDir, world);
    const picture = await blobs.put(new TextEncoder().encode("a picture"), "jpeg");
    const clip = await blobs.put(new TextEncoder().encode("a clip"), "mp4");
    this.blobs.push(picture, clip);
    timeline.commit(() => [event("keyframe_stored", {
      frame_index: 1,
      ...{ image_ref: picture.ref, image_media_type: picture.mediaType },
      ...{ image_bytes: picture.sizeBytes, image_sha256: picture.sha256 },
    })]);
    timeline.commit(() => [event("multimodal_moment", {
      evidence: {
        ...{ media_ref: clip.ref, media_type: clip.mediaType },
        ...{ media_bytes: clip.sizeBytes, media_sha256: clip.sha256 },
      },
    })]);
    const deliveries = DeliveryLog.open({ dataDir: this.dataDir, world });
    deliveries.append(RUN, { webhook_id: "wh_1", seq: 2, state: "delivered", attempts: 1 } as never);
    await deliveries.close();
    Deno.mkdirSync(this.uploadRoot, { mode: 0o700, recursive: true });
    Deno.writeTextFileSync(join(this.uploadRoot, "public__film.mp4"), "an upload");
  }

  path(name: string): string {
    return join(this.dataDir, name);
  }

  /** Replaces the bytes of a file. */
  edit(name: string, change: (bytes: Uint8Array) => Uint8Array): void {
    Deno.writeFileSync(this.path(name), change(Deno.readFileSync(this.path(name))));
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

function marker(number: number) {
  return {
    marker_id: `mk-${number.toString(16).padStart(8, "0")}`,
    ...{ run_id: RUN, stream_id: "stream-0", event_type: "scene_cut", status: "exact" },
    ...{ start_frame: 100 - number, end_frame: 100 - number, confidence: 0.5 },
  };
}

/** The byte in the middle of the n-th line, from 0, has another value. */
export function flipInLine(line: number): (bytes: Uint8Array) => Uint8Array {
  return (bytes) => {
    const changed = bytes.slice();
    let start = 0;
    for (let passed = 0; passed < line; passed++) start = bytes.indexOf(0x0a, start) + 1;
    changed[start + 60]! ^= 1;
    return changed;
  };
}
