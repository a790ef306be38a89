/** The zone of a session that is about to start: its place, and how much motion enters and leaves it. */

import type { AttachConfig } from "../../../../client/mod.ts";
import { TextField } from "../../../ui/field.tsx";
import type { ZoneRegion } from "../../../ui/zone_editor.tsx";

export interface ZoneWish {
  readonly region: ZoneRegion;
  /** Texts, as they are typed. */
  readonly enterScore: string;
  readonly exitScore: string;
  readonly enterFrames: string;
  readonly exitFrames: string;
}

export const FIRST_ZONE: ZoneWish = {
  region: { x: 0.25, y: 0.25, width: 0.5, height: 0.5 },
  enterScore: "0.2",
  exitScore: "0.1",
  enterFrames: "3",
  exitFrames: "15",
};

const FRAMES_MAX = 300;
const SIDES = [
  { side: "x", text: "Left" },
  { side: "y", text: "Top" },
  { side: "width", text: "Width" },
  { side: "height", text: "Height" },
] as const;
type Side = typeof SIDES[number]["side"];
/** What the events of the zone are called; the person sees them under the run alone. */
const POLICY_ID = "console-zone";
const DEVICE_BYTES_MAX = 128;

/** The zone as the service wants it. */
export function zoneOf(
  wish: ZoneWish,
  device: string,
): NonNullable<AttachConfig["restricted_zone"]> {
  return {
    policy_id: POLICY_ID,
    policy_version: 1,
    device_id: deviceId(device),
    region: wish.region,
    enter_motion_score: Number(wish.enterScore),
    exit_motion_score: Number(wish.exitScore),
    enter_after_frames: Number(wish.enterFrames),
    exit_after_frames: Number(wish.exitFrames),
  };
}

/** By field; undefined where it is as it should be. */
export function zoneFaults(
  { enterScore, exitScore, enterFrames, exitFrames }: ZoneWish,
) {
  const frames = (text: string) =>
    Number.isInteger(Number(text)) && Number(text) >= 1 &&
      Number(text) <= FRAMES_MAX
      ? undefined
      : `A whole number from 1 to ${FRAMES_MAX}.`;
  const score = (text: string) =>
    text.trim() !== "" && Number(text) >= 0 && Number(text) <= 1 ? undefined : "A number from 0 to 1.";
  return {
    enterScore: score(enterScore) ??
      (Number(enterScore) > Number(exitScore) ? undefined : "It must be above the score that leaves."),
    exitScore: score(exitScore),
    enterFrames: frames(enterFrames),
    exitFrames: frames(exitFrames),
  };
}

interface ZoneFieldsProps {
  readonly wish: ZoneWish;
  readonly onChange: (wish: ZoneWish) => void;
}

export function ZoneFields({ wish, onChange }: ZoneFieldsProps) {
  const faults = zoneFaults(wish);
  const set = (name: Exclude<keyof ZoneWish, "region">) => (value: string) =>
    onChange({ ...wish, [name]: value });
  return (
    <fieldset class="zone-fields">
      <legend>Zone</legend>
      <p class="hint">
        Drag it, or move its corners with the arrow keys. Only the zone is measured, stored and described;
        lasting motion in it writes an event.
      </p>
      <RegionSides region={wish.region} onChange={(region) => onChange({ ...wish, region })} />
      <details>
        <summary>How much motion enters and leaves it</summary>
        <div class="columns">
          <TextField
            label="Motion that enters"
            type="number"
            hint="0 to 1; the plot shows it live"
            value={wish.enterScore}
            onInput={set("enterScore")}
            fault={faults.enterScore}
          />
          <TextField
            label="for frames in a row"
            type="number"
            value={wish.enterFrames}
            onInput={set("enterFrames")}
            fault={faults.enterFrames}
          />
          <TextField
            label="Motion that leaves"
            type="number"
            hint="At most this, for a while"
            value={wish.exitScore}
            onInput={set("exitScore")}
            fault={faults.exitScore}
          />
          <TextField
            label="for frames in a row, to leave"
            type="number"
            value={wish.exitFrames}
            onInput={set("exitFrames")}
            fault={faults.exitFrames}
          />
        </div>
      </details>
    </fieldset>
  );
}

export interface RegionSidesProps {
  readonly region: ZoneRegion;
  readonly onChange: (region: ZoneRegion) => void;
}

/** The four numbers of a part of the picture. */
export function RegionSides({ region, onChange }: RegionSidesProps) {
  return (
    <div class="zone-sides">
      {SIDES.map(({ side, text }) => (
        <label key={side}>
          {text} %
          <input
            type="number"
            min="0"
            max="100"
            value={Math.round(region[side] * 1000) / 10}
            onChange={({ currentTarget: { value } }) => onChange(withSide(region, side, Number(value) / 100))}
          />
        </label>
      ))}
    </div>
  );
}

/** Stays inside the picture, with a size. */
function withSide(
  region: ZoneRegion,
  side: Side,
  value: number,
): ZoneRegion {
  const least = 0.05;
  const next = { ...region, [side]: Math.min(1, Math.max(0, value || 0)) };
  const x = Math.min(next.x, 1 - least);
  const y = Math.min(next.y, 1 - least);
  return {
    x,
    y,
    width: Math.min(Math.max(next.width, least), 1 - x),
    height: Math.min(Math.max(next.height, least), 1 - y),
  };
}

/** Without control characters, and not too long. */
function deviceId(name: string): string {
  // deno-lint-ignore no-control-regex -- these are what is not allowed
  const clean = name.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").trim() ||
    "camera";
  const bytes = new TextEncoder().encode(clean).slice(0, DEVICE_BYTES_MAX);
  return new TextDecoder().decode(bytes).replace(/\ufffd+$/, "");
}
