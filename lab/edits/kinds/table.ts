/** The kinds of edited video, and which codecs and styles suit each. */

import type { Codec } from "../files/codecs.ts";
import type { DamageWay } from "../files/damage.ts";
import type { Edit } from "../edit.ts";
import type { StyleChoice } from "../pictures/style.ts";
import { lowLight, noise, oldFilm, pan, passing, shake, whip } from "./camera.ts";
import { conversation, fast, hard, inserts, similar } from "./cuts.ts";
import { colours, darkObject, patterns, screen, slides } from "./drawn.ts";
import { blocks, bursts, chroma, disorder, fields, flicker, foreign, slices, smear } from "./faults.ts";
import { explosion, flash, lamp, strobe } from "./light.ts";
import { boxed, insets, titles } from "./overlays.ts";
import { black, freeze, repeat, surveillance } from "./time.ts";
import { dissolve, fade, slide, wipe } from "./transitions.ts";

export interface Kind {
  /** Shows the frames of one video and notes its truth. */
  readonly make: (edit: Edit) => Promise<void>;
  readonly styles: StyleChoice;
  /** How many videos of this kind there are beside the others; 1 unless given. */
  readonly share?: number;
  /** The codecs that suit the kind; any unless given. */
  readonly codecs?: readonly Codec[];
  /** What is done to the file after it was encoded. */
  readonly damage?: DamageWay;
  /** Whether frames may be left out, so that those that stay are not evenly spaced. */
  readonly uneven?: boolean;
}

const DAMAGED_CODECS: readonly Codec[] = ["h264", "hevc", "mpeg2", "mpeg4", "vp8"];

export const KINDS: Readonly<Record<string, Kind>> = {
  hard: { make: hard, styles: "all", share: 2, uneven: true },
  fast: { make: fast, styles: "all", share: 1.5 },
  inserts: { make: inserts, styles: "all", share: 1.5 },
  similar: { make: similar, styles: "all", share: 1.5, uneven: true },
  conversation: { make: conversation, styles: "all", share: 1.5, uneven: true },
  dissolve: { make: dissolve, styles: "all", share: 1.5, uneven: true },
  fade: { make: fade, styles: "grade" },
  wipe: { make: wipe, styles: "all" },
  slide: { make: slide, styles: "all" },
  flash: { make: flash, styles: "all", share: 1.5 },
  strobe: { make: strobe, styles: "all", share: 0.7 },
  explosion: { make: explosion, styles: "all", share: 0.7 },
  lamp: { make: lamp, styles: "all" },
  freeze: { make: freeze, styles: "all", share: 1.5 },
  black: { make: black, styles: "grade", share: 1.5 },
  repeat: { make: repeat, styles: "all", share: 1.5 },
  surveillance: { make: surveillance, styles: "grade", share: 0.7, uneven: true },
  shake: { make: shake, styles: "all", uneven: true },
  pan: { make: pan, styles: "all" },
  whip: { make: whip, styles: "all" },
  passing: { make: passing, styles: "all" },
  noise: { make: noise, styles: "none", uneven: true },
  low_light: { make: lowLight, styles: "none" },
  old_film: { make: oldFilm, styles: "none" },
  boxed: { make: boxed, styles: "grade" },
  titles: { make: titles, styles: "grade" },
  insets: { make: insets, styles: "grade", share: 0.7 },
  screen: { make: screen, styles: "none" },
  slides: { make: slides, styles: "none" },
  colours: { make: colours, styles: "none", share: 1.5 },
  dark_object: { make: darkObject, styles: "none" },
  patterns: { make: patterns, styles: "none", share: 0.7 },
  flicker: { make: flicker, styles: "grade", share: 0.8 },
  foreign: { make: foreign, styles: "grade", share: 0.8 },
  disorder: { make: disorder, styles: "grade", share: 0.8 },
  blocks: { make: blocks, styles: "grade", share: 1.2 },
  smear: { make: smear, styles: "grade", share: 0.8 },
  slices: { make: slices, styles: "grade", share: 0.8 },
  fields: { make: fields, styles: "grade", share: 0.8 },
  chroma: { make: chroma, styles: "grade", share: 0.8 },
  damaged_bytes: { make: hard, styles: "grade", share: 2, damage: "bytes", codecs: DAMAGED_CODECS },
  lost_packets: { make: hard, styles: "grade", share: 2, damage: "packets", codecs: DAMAGED_CODECS },
  bursts: { make: bursts, styles: "grade", share: 0.8 },
};
