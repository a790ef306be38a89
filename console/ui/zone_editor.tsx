/** A part of the picture, drawn over it: corners are dragged, or moved with the arrow keys; the numbers can
 * be typed, too.
 */

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import "./zone_editor.css";

/** Fractions of the picture, from its upper left corner. */
export interface ZoneRegion {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface ZoneEditorProps {
  /** Null for none: the picture alone is shown. */
  readonly region: ZoneRegion | null;
  readonly onChange: (region: ZoneRegion) => void;
  /** What the part is called; a zone unless told. */
  readonly name?: string;
  /** Width over height of the picture. */
  readonly aspect: number;
  /** The picture. */
  readonly children: ComponentChildren;
}

/** A smaller zone has too few pixels to measure motion in. */
const LEAST = 0.05;
const STEP = 0.01;
const LARGE_STEP = 0.05;

/** Which sides of the zone a corner moves: the left or the right one, the upper or the lower one. */
const CORNERS = [
  { name: "Upper left", isRight: false, isLower: false },
  { name: "Upper right", isRight: true, isLower: false },
  { name: "Lower left", isRight: false, isLower: true },
  { name: "Lower right", isRight: true, isLower: true },
] as const;
type Corner = typeof CORNERS[number];

const DIRECTIONS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function ZoneEditor(
  { region, onChange, name = "zone", aspect, children }: ZoneEditorProps,
) {
  const picture = useRef<HTMLDivElement>(null);
  return (
    <div
      ref={picture}
      class="zone-picture"
      style={{ aspectRatio: String(aspect) }}
    >
      {children}
      {region && (
        <>
          <ZoneBox region={region} name={name} />
          <Body name={name} region={region} picture={picture} onChange={onChange} />
          {CORNERS.map((corner) => (
            <CornerHandle
              key={corner.name}
              corner={corner}
              name={name}
              region={region}
              picture={picture}
              onChange={onChange}
            />
          ))}
        </>
      )}
    </div>
  );
}

/** The zone over a picture, without handles. */
export function ZoneBox(
  { region, name }: { region: ZoneRegion; name: string },
) {
  return (
    <div class="zone-box" style={styleOf(region)} aria-hidden="true">
      <span>▲ {name}</span>
    </div>
  );
}

interface HandleProps {
  readonly name: string;
  readonly region: ZoneRegion;
  readonly picture: { current: HTMLDivElement | null };
  readonly onChange: (region: ZoneRegion) => void;
}

/** The whole zone is moved. */
function Body({ name, region, picture, onChange }: HandleProps) {
  const move = (x: number, y: number) => onChange(moved(region, x, y));
  const start = useRef<{ x: number; y: number; region: ZoneRegion } | null>(
    null,
  );
  return (
    <button
      type="button"
      class="zone-body"
      style={styleOf(region)}
      aria-label={`The ${name}, ${placeText(region.x, region.y)}; arrow keys move it`}
      onKeyDown={(event) => onArrow(event, move)}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { ...pointIn(picture.current!, event), region };
      }}
      onPointerMove={(event) => {
        if (!start.current) return;
        const { x, y } = pointIn(picture.current!, event);
        onChange(
          moved(start.current.region, x - start.current.x, y - start.current.y),
        );
      }}
      onPointerUp={() => start.current = null}
      onPointerCancel={() => start.current = null}
    />
  );
}

function CornerHandle(
  { corner, name, region, picture, onChange }: HandleProps & { corner: Corner },
) {
  const { name: place, isRight, isLower } = corner;
  const x = region.x + (isRight ? region.width : 0);
  const y = region.y + (isLower ? region.height : 0);
  const isDragged = useRef(false);
  const put = (to: { x: number; y: number }) => onChange(withCorner(region, corner, to));
  return (
    <button
      type="button"
      class="zone-corner"
      style={{
        left: `${x * 100}%`,
        top: `${y * 100}%`,
        cursor: isRight === isLower ? "nwse-resize" : "nesw-resize",
      }}
      aria-label={`${place} corner of the ${name}, ${placeText(x, y)}; arrow keys move it`}
      onKeyDown={(event) => onArrow(event, (byX, byY) => put({ x: x + byX, y: y + byY }))}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        isDragged.current = true;
      }}
      onPointerMove={(event) => isDragged.current && put(pointIn(picture.current!, event))}
      onPointerUp={() => isDragged.current = false}
      onPointerCancel={() => isDragged.current = false}
    />
  );
}

/** Calls `move` with how far an arrow key moves something; with shift it is five times as far. */
function onArrow(
  event: KeyboardEvent,
  move: (x: number, y: number) => void,
): void {
  const direction = DIRECTIONS[event.key];
  if (!direction) return;
  event.preventDefault();
  event.stopPropagation();
  const step = event.shiftKey ? LARGE_STEP : STEP;
  move(direction[0] * step, direction[1] * step);
}

function pointIn(
  picture: HTMLElement,
  event: PointerEvent,
): { x: number; y: number } {
  const { left, top, width, height } = picture.getBoundingClientRect();
  return {
    x: (event.clientX - left) / width,
    y: (event.clientY - top) / height,
  };
}

function moved(
  { x, y, width, height }: ZoneRegion,
  byX: number,
  byY: number,
): ZoneRegion {
  return rounded({
    x: between(0, x + byX, 1 - width),
    y: between(0, y + byY, 1 - height),
    width,
    height,
  });
}

/** The opposite corner stays. */
function withCorner(
  { x, y, width, height }: ZoneRegion,
  { isRight, isLower }: Corner,
  to: { x: number; y: number },
): ZoneRegion {
  const [right, bottom] = [x + width, y + height];
  const left = isRight ? x : between(0, to.x, right - LEAST);
  const top = isLower ? y : between(0, to.y, bottom - LEAST);
  const newRight = isRight ? between(x + LEAST, to.x, 1) : right;
  const newBottom = isLower ? between(y + LEAST, to.y, 1) : bottom;
  return rounded({
    x: left,
    y: top,
    width: newRight - left,
    height: newBottom - top,
  });
}

function between(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** Thousandths of the picture; inside of it. */
function rounded({ x, y, width, height }: ZoneRegion): ZoneRegion {
  const round = (share: number) => Math.round(share * 1000) / 1000;
  const [left, top] = [round(x), round(y)];
  return {
    x: left,
    y: top,
    width: round(Math.min(width, 1 - left)),
    height: round(Math.min(height, 1 - top)),
  };
}

function styleOf({ x, y, width, height }: ZoneRegion) {
  return {
    left: `${x * 100}%`,
    top: `${y * 100}%`,
    width: `${width * 100}%`,
    height: `${height * 100}%`,
  };
}

function placeText(x: number, y: number): string {
  return `${Math.round(x * 100)} % from the left, ${Math.round(y * 100)} % from the top`;
}
