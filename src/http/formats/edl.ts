/** Markers as an edit decision list, CMX 3600: the shots with their markers. See docs/api/reading.md#edl. */

import { type Marker, typeWithOrigin } from "../../model/frames/marker.ts";
import { frameAt, timecode, type TimecodeRate, timecodeRate } from "../../model/frames/timecode.ts";
import { onOneTextLine } from "./one_text_line.ts";

/** Where the source shows no rate that timecodes can count: 40 ms a frame. */
const DEFAULT_RATE: TimecodeRate = { nominal: 25, secondMs: 1000 };
/**
 * A shot with so many markers ends at the next one that begins later, so that memory holds no more of them.
 */
const MARKERS_MAX = 1000;

/** The lines before the first event. Readers take no comments there. */
export function edlHead(runId: string): string {
  return lines([`TITLE: ${runId}`, "FCM: NON-DROP FRAME", ""]);
}

interface Shot {
  readonly from: number;
  /** The frame behind it, as far as its markers tell. */
  to: number;
  markers: number;
  readonly comments: string[];
}

/**
 * Writes one shot after the other: each begins with a cut and ends with the next one. Shots do not overlap,
 * and markers, which may, are comments in the shot in which they begin. Source and record times are the same,
 * and the out time is the frame behind the last one, as CMX 3600 has it.
 *
 *     001  AX       V     C        00:00:00:00 00:00:04:00 00:00:00:00 00:00:04:00
 *     * FROM CLIP NAME: bbb120.mp4
 *     * FRAME RATE: 24 (SOURCE)
 *     * LOC: 00:00:00:03 WHITE   freeze
 *     * MARKER: mk-00000002 exact 0.58275
 *     * PTS MS: 125 1250
 */
export class EdlShots {
  readonly #rate: TimecodeRate;
  readonly #rateLine: string;
  readonly #clip: string;
  #shot: Shot | null = null;
  #written = 0;

  /** `fps` is the rate of the run's sources; null where it is unknown. `clip` is the name of the film. */
  constructor(fps: number | null, clip: string) {
    const rate = timecodeRate(fps);
    this.#rate = rate ?? DEFAULT_RATE;
    const { nominal, secondMs } = this.#rate;
    const ratio = secondMs === 1000 ? String(nominal) : `${nominal * 1000}/${secondMs}`;
    this.#rateLine = `* FRAME RATE: ${ratio} (${rate === null ? "DEFAULT" : "SOURCE"})`;
    this.#clip = onOneTextLine(clip);
  }

  /**
   * Takes the next marker, none of which begins before the one before it. Gives the shots that are complete.
   */
  add(marker: Marker & { readonly session_id?: string }): string {
    const rate = this.#rate;
    const from = frameAt(marker.start_pts_ms, rate), to = frameAt(marker.end_pts_ms, rate) + 1;
    // A model says of a whole stretch that there is a cut: no shot begins there.
    const isCut = marker.event_type === "scene_cut" && marker.origin === undefined;
    const colour = marker.origin === undefined ? "WHITE " : "GREEN ";
    const comments = [
      `* LOC: ${timecode(from, rate)} ${colour}  ${onOneTextLine(typeWithOrigin(marker))}`,
      `* MARKER: ${marker.marker_id} ${marker.status} ${marker.confidence}`,
      `* PTS MS: ${marker.start_pts_ms} ${marker.end_pts_ms}`,
    ];
    const shot = this.#shot;
    if (shot && (from <= shot.from || !isCut && shot.markers < MARKERS_MAX)) {
      shot.to = Math.max(shot.to, to);
      shot.markers++;
      shot.comments.push(...comments);
      return "";
    }
    this.#shot = { from, to: Math.max(to, shot?.to ?? 0), markers: 1, comments };
    if (shot) return this.#write(shot, from);
    // Before the first cut of a film is a shot too; a live session may have begun at any time.
    const hasFirst = isCut && from > 0 && marker.session_id === undefined;
    return hasFirst ? this.#write({ from: 0, to: from, markers: 0, comments: [] }, from) : "";
  }

  /** The last shot, which ends with the last of the markers. */
  end(): string {
    return this.#shot ? this.#write(this.#shot, this.#shot.to) : "";
  }

  #write({ from, comments }: Shot, until: number): string {
    const times = `${timecode(from, this.#rate)} ${timecode(until, this.#rate)}`;
    const number = String(++this.#written).padStart(3, "0");
    return lines([
      `${number}  AX       V     C        ${times} ${times}`,
      `* FROM CLIP NAME: ${this.#clip}`,
      ...(this.#written === 1 ? [this.#rateLine] : []),
      ...comments,
    ]);
  }
}

function lines(texts: readonly string[]): string {
  return `${texts.join("\r\n")}\r\n`;
}
