/** What is wanted of a session that is about to start, as it is typed, and the attach configuration that says
 * so.
 */

import type { AttachConfig, TriggerProgram } from "../../../../client/mod.ts";
import type { ZoneRegion } from "../../../ui/zone_editor.tsx";
import {
  enrichOf,
  type EvidenceBeside,
  explainFaults,
  type ExplainWish,
  filmFaults,
  type FilmWish,
  rangeFault,
  recordOf,
} from "./evidence_wish.ts";
import { promptFault } from "./prompt_field.tsx";
import { FIRST_ZONE, zoneFaults, zoneOf, type ZoneWish } from "./zone_fields.tsx";

/** `zone` is a part of the picture in which lasting motion is an event. */
export type Area = "whole" | "part" | "zone";

/** All numbers are texts, as they are typed. */
export interface ClipWish {
  readonly framesASecond: string;
  readonly seconds: string;
  readonly pauseSeconds: string;
}

/** What the service has made of a source. */
export interface CompiledTrigger {
  readonly source: string;
  readonly program: TriggerProgram;
}

type Sound = NonNullable<AttachConfig["local_audio"]>;

export interface SoundWish {
  readonly profile: NonNullable<Sound["profile"]>;
  readonly engine: NonNullable<Sound["speech_engine"]>;
  readonly minConfidence: string;
}

export interface SessionWish {
  readonly prompt: string;
  readonly area: Area;
  readonly part: ZoneRegion;
  readonly zone: ZoneWish;
  /** Null: single pictures are described, not clips. */
  readonly clips: ClipWish | null;
  /** The source of a trigger program; null: none runs. */
  readonly trigger: string | null;
  /** Of the last source without faults, which may be another one. */
  readonly compiled: CompiledTrigger | null;
  readonly sound: SoundWish | null;
  /** Null: none are kept. */
  readonly films: FilmWish | null;
  /** Null: nothing is explained by an event of its own. */
  readonly explain: ExplainWish | null;
  /** Empty: as the service is configured. */
  readonly tokensASecond: string;
}

export const FIRST_WISH: SessionWish = {
  prompt: "",
  area: "whole",
  part: FIRST_ZONE.region,
  zone: FIRST_ZONE,
  clips: null,
  trigger: null,
  compiled: null,
  sound: null,
  films: null,
  explain: null,
  tokensASecond: "",
};

/** A motion within a clip needs so many frames. */
const CLIP_FRAMES_MIN = 3;
const TOKENS_MAX = 4_294_967_295;

/** The part of the picture that is drawn; null for the whole picture. */
export function regionOf({ area, part, zone }: SessionWish): ZoneRegion | null {
  return area === "whole" ? null : area === "part" ? part : zone.region;
}

/** The change that moves it there. */
export function regionChange({ area, zone }: SessionWish, region: ZoneRegion): Partial<SessionWish> {
  return area === "zone" ? { zone: { ...zone, region } } : { part: region };
}

/** By field; undefined where it is as it should be. */
export function clipFaults({ framesASecond, seconds, pauseSeconds }: ClipWish) {
  return {
    framesASecond: rangeFault(framesASecond, 1, 30),
    seconds: rangeFault(seconds, 0.1, 60) ??
      (Math.floor(Number(framesASecond) * Number(seconds)) < CLIP_FRAMES_MIN
        ? `A clip needs ${CLIP_FRAMES_MIN} frames: make it longer, or take more frames a second.`
        : undefined),
    pauseSeconds: rangeFault(pauseSeconds, 0, 60),
  };
}

export function confidenceFault({ minConfidence }: SoundWish): string | undefined {
  return rangeFault(minConfidence, 0, 1);
}

export function tokensFault(tokens: string): string | undefined {
  if (tokens.trim() === "") return undefined;
  const isWhole = Number.isInteger(Number(tokens)) && Number(tokens) >= 0 && Number(tokens) <= TOKENS_MAX;
  return isWhole ? undefined : "A whole number; 0 for as many as it likes.";
}

/** Whether the session can be asked for; each field says its own fault. */
export function isComplete(wish: SessionWish): boolean {
  const { prompt, area, zone, clips, sound, films, explain, tokensASecond } = wish;
  const faults = [
    promptFault(prompt),
    ...(area === "zone" ? Object.values(zoneFaults(zone)) : []),
    ...(clips ? Object.values(clipFaults(clips)) : []),
    sound ? confidenceFault(sound) : undefined,
    ...(films ? Object.values(filmFaults(films, besideOf(wish))) : []),
    ...(explain ? Object.values(explainFaults(explain, besideOf(wish))) : []),
    tokensFault(tokensASecond),
    hasNoProgram(wish) ? "It has no program." : undefined,
  ];
  return faults.every((fault) => fault === undefined);
}

/** What films and explanations can be of. */
export function besideOf({ area, trigger }: SessionWish): EvidenceBeside {
  return { hasZone: area === "zone", hasTrigger: trigger !== null };
}

/** Whether its trigger has no program: it is being checked, or has faults that are shown beside it. */
export function hasNoProgram(wish: SessionWish): boolean {
  return wish.trigger !== null && programOf(wish) === null;
}

function programOf({ trigger, compiled }: SessionWish): TriggerProgram | null {
  return trigger !== null && compiled?.source === trigger ? compiled.program : null;
}

/** As the service wants it; `device` is the name of the camera in the events of a zone. */
export function attachOf(wish: SessionWish, device: string): AttachConfig {
  const { prompt, area, part, zone, clips, sound, films, explain, tokensASecond } = wish;
  const program = programOf(wish);
  return {
    ...(prompt.trim() !== "" && { prompt: prompt.trim() }),
    ...(area === "part" && { crop: part }),
    ...(area === "zone" && { restricted_zone: zoneOf(zone, device) }),
    ...(clips && {
      clip_mode: {
        target_fps: Number(clips.framesASecond),
        clip_length_seconds: Number(clips.seconds),
        delay_seconds: Number(clips.pauseSeconds),
      },
    }),
    ...(program && { trigger_program: program }),
    ...(sound && {
      local_audio: {
        profile: sound.profile,
        speech_engine: sound.engine,
        min_confidence: Number(sound.minConfidence),
      },
    }),
    ...(films && { record: recordOf(films, besideOf(wish)) }),
    ...(explain && { enrich: enrichOf(explain, besideOf(wish)) }),
    ...(tokensASecond.trim() !== "" && { max_output_tokens_per_second: Number(tokensASecond) }),
  };
}
