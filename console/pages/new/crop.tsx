/** A frame of the chosen film, on which the part to be looked at is drawn. */

import { useEffect, useRef, useState } from "preact/hooks";

/** Fractions of the picture, from its upper left corner. */
export interface Crop {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface CropFieldProps {
  /** Null where the browser has no picture of the source: the numbers alone are there. */
  readonly file: File | null;
  readonly crop: Crop | null;
  readonly onChange: (crop: Crop | null) => void;
}

/** A smaller part was drawn by accident. */
const LEAST = 0.02;
/** Many films begin with black. */
const PREVIEW_S = 20;
const SIDES = ["x", "y", "width", "height"] as const;
const WHOLE: Crop = { x: 0, y: 0, width: 1, height: 1 };

export function CropField({ file, crop, onChange }: CropFieldProps) {
  const url = useFileUrl(file);
  const [canPlay, setCanPlay] = useState(true);
  const start = useRef<{ x: number; y: number } | null>(null);
  useEffect(() => setCanPlay(true), [file]);
  const place = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (at: number, from: number, length: number) =>
      Math.min(1, Math.max(0, (at - from) / length));
    return {
      x: share(event.clientX, box.left, box.width),
      y: share(event.clientY, box.top, box.height),
    };
  };
  const drawn = (event: PointerEvent) => start.current && between(start.current, place(event));
  return (
    <fieldset class="crop">
      <legend>Part of the picture</legend>
      {url !== null && canPlay && (
        <div
          class="crop-picture"
          onPointerDown={(event) => {
            event.preventDefault();
            event.currentTarget.setPointerCapture(event.pointerId);
            start.current = place(event);
          }}
          onPointerMove={(event) => {
            const next = drawn(event);
            if (next && next.width >= LEAST && next.height >= LEAST) {
              onChange(next);
            }
          }}
          onPointerUp={() => start.current = null}
        >
          <video
            src={url}
            muted
            playsInline
            preload="auto"
            aria-label="A frame of the film"
            onLoadedMetadata={({ currentTarget }) => {
              currentTarget.currentTime = Math.min(
                PREVIEW_S,
                currentTarget.duration / 3 || 0,
              );
            }}
            onError={() => setCanPlay(false)}
          />
          {crop && (
            <div
              class="crop-box"
              style={{
                left: `${crop.x * 100}%`,
                top: `${crop.y * 100}%`,
                width: `${crop.width * 100}%`,
                height: `${crop.height * 100}%`,
              }}
            />
          )}
        </div>
      )}
      <p class="hint">
        {url !== null && canPlay ? "Draw a rectangle on the picture, or type it" : "Type it"}: per cent of the
        picture, from its upper left corner. Without one the model sees the whole picture.
      </p>
      <div class="row">
        {SIDES.map((side) => (
          <label key={side} class="crop-side">
            {side}
            <input
              type="number"
              min="0"
              max="100"
              step="1"
              value={crop ? String(Math.round(crop[side] * 100)) : ""}
              placeholder={String(WHOLE[side] * 100)}
              onChange={({ currentTarget: { value } }) =>
                onChange(withSide(crop ?? WHOLE, side, Number(value) / 100))}
            />
          </label>
        ))}
        <button
          type="button"
          class="quiet"
          disabled={crop === null}
          onClick={() => onChange(null)}
        >
          Whole picture
        </button>
      </div>
    </fieldset>
  );
}

/** The address of a file of this computer, while it is shown. */
function useFileUrl(file: File | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (file === null) {
      setUrl(null);
      return;
    }
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return url;
}

function between(
  one: { x: number; y: number },
  other: { x: number; y: number },
): Crop {
  return rounded({
    x: Math.min(one.x, other.x),
    y: Math.min(one.y, other.y),
    width: Math.abs(one.x - other.x),
    height: Math.abs(one.y - other.y),
  });
}

/** The other side of the rectangle gives way, so that it stays within the picture. */
function withSide(crop: Crop, side: keyof Crop, value: number): Crop {
  const next = {
    ...crop,
    [side]: Math.min(
      1,
      Math.max(side === "width" || side === "height" ? LEAST : 0, value || 0),
    ),
  };
  const x = Math.min(next.x, 1 - LEAST);
  const y = Math.min(next.y, 1 - LEAST);
  return rounded({
    x,
    y,
    width: Math.min(next.width, 1 - x),
    height: Math.min(next.height, 1 - y),
  });
}

function rounded({ x, y, width, height }: Crop): Crop {
  const short = (share: number) => Math.round(share * 1e4) / 1e4;
  return {
    x: short(x),
    y: short(y),
    width: short(width),
    height: short(height),
  };
}
