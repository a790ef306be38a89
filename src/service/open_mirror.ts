/** Opens the mirror: its cursor on the disk, and the connection to its database. Loaded only where there is
 * one.
 */

import type { Metrics } from "../contract/metrics.ts";
import type { World } from "../base/world.ts";
import { Mirror } from "../flow/system/mirror.ts";
import { mirrorTarget, placeOf } from "../model/mirror/target.ts";
import { MirrorDatabase } from "../remote/mirror_database.ts";
import { MirrorCursor } from "../store/mirror_cursor.ts";
import type { Timeline } from "../store/timeline/timeline.ts";

export interface OpenMirrorOptions {
  /** SERVICE_MIRROR_URL. */
  readonly url: string;
  /** SERVICE_MIRROR_MODULE. */
  readonly schema: string;
  readonly roots: readonly string[];
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly world: World;
  readonly metrics: Metrics;
}

export function openMirror(
  opening: AsyncDisposableStack,
  { url, schema, roots, timeline, dataDir, world, metrics }: OpenMirrorOptions,
): Mirror {
  const target = mirrorTarget(url);
  const cursor = MirrorCursor.open({ dataDir, place: placeOf(target, schema), world });
  const connect = (signal: AbortSignal) => MirrorDatabase.open({ target, schema, roots }, signal);
  return opening.use(new Mirror({ timeline, cursor, connect, world, metrics }));
}
