/** The restricted zone of a draft as a form: its rectangle on a frame of the film, and its numbers. */

import { useState } from "preact/hooks";
import type { Policy, Run } from "../../../client/mod.ts";
import { filmOf } from "../../service/film.ts";
import { useMedia } from "../../service/media.ts";
import { ZoneEditor, type ZoneRegion } from "../../ui/zone_editor.tsx";

export type Zone = NonNullable<Policy["parameters"]["restricted_zone"]>;

export const DRAFT_ZONE: Zone = {
  policy_id: "zone",
  policy_version: 1,
  device_id: "camera",
  region: { x: 0.25, y: 0.25, width: 0.5, height: 0.5 },
  enter_motion_score: 0.1,
  exit_motion_score: 0.03,
  enter_after_frames: 2,
  exit_after_frames: 5,
};

export interface PolicyZoneFieldsProps {
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

export function PolicyZoneFields(
  { run, zone, onChange, faults }: PolicyZoneFieldsProps,
) {
  const { region } = zone;
  return (
    <div class="policy-zone">
      <DraftPicture
        run={run}
        region={region}
        onChange={(changed) => onChange({ ...zone, region: changed })}
      />
      <div class="policy-numbers">
        <div class="policy-sides">
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
          <label
            key={field}
            class={field === "device_id" ? "policy-wide" : undefined}
          >
            {label}
            <input
              type={(typeof DRAFT_ZONE[field] === "number" ? "number" : "text") as "text"}
              step="any"
              value={zone[field]}
              aria-invalid={faults[field] === undefined ? undefined : true}
              onChange={({ currentTarget: { value } }) =>
                onChange({
                  ...zone,
                  [field]: typeof DRAFT_ZONE[field] === "number" ? Number(value) : value,
                })}
            />
            {faults[field] !== undefined && <span class="fault">{faults[field]}</span>}
          </label>
        ))}
      </div>
    </div>
  );
}

/** A frame that is not the first: many films begin with black. */
const FRAME_S = 5;
/** Of the picture while its film is not there. */
const USUAL_ASPECT = 16 / 9;

interface DraftPictureProps {
  readonly run: Run;
  readonly region: ZoneRegion;
  readonly onChange: (region: ZoneRegion) => void;
}

/** A frame of the run's film, with the zone over it; without a film the zone alone. */
function DraftPicture({ run, region, onChange }: DraftPictureProps) {
  const film = filmOf(run.source_uri, false);
  const { url } = useMedia("path" in film ? film.path : null);
  const [aspect, setAspect] = useState(USUAL_ASPECT);
  return (
    <ZoneEditor region={region} onChange={onChange} aspect={aspect}>
      {url !== undefined && (
        <video
          src={`${url}#t=${FRAME_S}`}
          muted
          playsInline
          preload="auto"
          tabIndex={-1}
          aria-hidden="true"
          onLoadedMetadata={({ currentTarget: { videoWidth, videoHeight } }) =>
            videoHeight > 0 && setAspect(videoWidth / videoHeight)}
        />
      )}
    </ZoneEditor>
  );
}
