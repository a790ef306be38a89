/** The restricted zone of a draft as a form: its rectangle on a frame of the film, and its numbers. */

import { useRef } from "preact/hooks";
import type { Policy, Run } from "../../../client/mod.ts";
import { filmOf } from "../../service/film.ts";
import { useMedia } from "../../service/media.ts";

export type Zone = NonNullable<Policy["parameters"]["restricted_zone"]>;

export const FIRST_ZONE: Zone = {
  policy_id: "zone",
  policy_version: 1,
  device_id: "camera",
  region: { x: 0.25, y: 0.25, width: 0.5, height: 0.5 },
  enter_motion_score: 0.1,
  exit_motion_score: 0.03,
  enter_after_frames: 2,
  exit_after_frames: 5,
};

export interface ZoneFieldsProps {
  readonly run: Run;
  readonly zone: Zone;
  readonly onChange: (zone: Zone) => void;
  /** Of the fields that the service has refused, by name. */
  readonly faults: Readonly<Record<string, string>>;
}

const NAMES = [
  { field: "policy_id", label: "Name of the zone" },
  { field: "policy_version", label: "Its version" },
  { field: "device_id", label: "Device" },
  { field: "enter_motion_score", label: "Entered from this motion on" },
  { field: "enter_after_frames", label: "for so many frames" },
  { field: "exit_motion_score", label: "Left from this motion down" },
  { field: "exit_after_frames", label: "for so many frames" },
] as const;

const SIDES = [
  { side: "x", label: "left, %" },
  { side: "y", label: "top, %" },
  { side: "width", label: "width, %" },
  { side: "height", label: "height, %" },
] as const;

export function ZoneFields({ run, zone, onChange, faults }: ZoneFieldsProps) {
  const { region } = zone;
  return (
    <div class="zone-fields">
      <ZonePicture
        run={run}
        region={region}
        onDraw={(drawn) => onChange({ ...zone, region: drawn })}
      />
      <div class="zone-numbers">
        <div class="zone-sides">
          {SIDES.map(({ side, label }) => (
            <label key={side}>
              {label}
              <input
                type="number"
                min="0"
                max="100"
                step="0.1"
                value={Math.round(region[side] * 1000) / 10}
                aria-invalid={faults.region === undefined ? undefined : true}
                onChange={({ currentTarget: { value } }) =>
                  onChange({
                    ...zone,
                    region: { ...region, [side]: Number(value) / 100 },
                  })}
              />
            </label>
          ))}
        </div>
        {faults.region !== undefined && <p class="fault">The rectangle {faults.region}</p>}
        {NAMES.map(({ field, label }) => (
          <label key={field} class={field === "device_id" ? "zone-wide" : undefined}>
            {label}
            <input
              type={(typeof FIRST_ZONE[field] === "number" ? "number" : "text") as "text"}
              step="any"
              value={zone[field]}
              aria-invalid={faults[field] === undefined ? undefined : true}
              onChange={({ currentTarget: { value } }) =>
                onChange({
                  ...zone,
                  [field]: typeof FIRST_ZONE[field] === "number" ? Number(value) : value,
                })}
            />
            {faults[field] !== undefined && <span class="fault">{faults[field]}</span>}
          </label>
        ))}
      </div>
    </div>
  );
}

type ZoneRegion = Zone["region"];
type Point = { readonly x: number; readonly y: number };

interface ZonePictureProps {
  readonly run: Run;
  readonly region: ZoneRegion;
  readonly onDraw: (region: ZoneRegion) => void;
}

/** A frame that is not the first: many films begin with black. */
const FRAME_S = 5;
/** A smaller rectangle was drawn by accident. */
const LEAST_SIDE = 0.02;

/** Without a film it is an empty picture of 16 by 9. */
function ZonePicture({ run, region, onDraw }: ZonePictureProps) {
  const film = filmOf(run.source_uri, false);
  const { url } = useMedia("path" in film ? film.path : null);
  const start = useRef<Point | null>(null);
  const draw = (event: PointerEvent) => {
    if (!start.current) return;
    const drawn = between(start.current, pointOf(event));
    if (drawn.width >= LEAST_SIDE && drawn.height >= LEAST_SIDE) onDraw(drawn);
  };
  return (
    <div
      class="zone-picture"
      title="Draw the zone, or type its numbers"
      onPointerDown={(event) => {
        event.preventDefault();
        (document.activeElement as HTMLElement | null)?.blur(); // a number that is being typed counts
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = pointOf(event);
      }}
      onPointerMove={draw}
      onPointerUp={() => start.current = null}
    >
      {url !== undefined && (
        <video
          src={`${url}#t=${FRAME_S}`}
          muted
          playsInline
          preload="auto"
          tabIndex={-1}
          aria-hidden="true"
        />
      )}
      <div
        class="zone-box"
        style={{
          left: `${region.x * 100}%`,
          top: `${region.y * 100}%`,
          width: `${region.width * 100}%`,
          height: `${region.height * 100}%`,
        }}
      />
    </div>
  );
}

function pointOf(event: PointerEvent): Point {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const share = (at: number, from: number, length: number) => Math.min(1, Math.max(0, (at - from) / length));
  return {
    x: share(event.clientX, box.left, box.width),
    y: share(event.clientY, box.top, box.height),
  };
}

/** In thousandths, and never beyond the edge. */
function between(one: Point, other: Point): ZoneRegion {
  const side = (from: number, to: number) => {
    const start = Math.round(Math.min(from, to) * 1000);
    return [
      start / 1000,
      (Math.round(Math.max(from, to) * 1000) - start) / 1000,
    ] as const;
  };
  const [x, width] = side(one.x, other.x);
  const [y, height] = side(one.y, other.y);
  return { x, y, width, height };
}
