/** Coordinates `service.image.v1`: which rectangle of a picture was analyzed. See docs/frames.md#coordinates.
 */

import { refuse } from "../../contract/refusal.ts";

export const COORDINATE_SCHEMA = "service.image.v1";

/** The size of a picture or of a part of it, in pixels. */
export interface Extent {
  readonly width: number;
  readonly height: number;
}

export function isSameExtent(one: Extent, other: Extent): boolean {
  return one.width === other.width && one.height === other.height;
}

/** A rectangle, origin at the top left. Normalized, all four lie in [0,1]. */
export interface Region {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A region in fractions of the picture, [0,1]. */
export type NormalizedRegion = Region;

/** What the picture of a frame was: the value of `coordinates` in rows and events. */
export interface ImageCoordinates {
  /** Decoded extent, as displayed, before crop or resize. */
  readonly source_extent: Extent;
  /** The caller's crop as given. */
  readonly requested_region: NormalizedRegion;
  /** The even-aligned rectangle of source pixels that was used. */
  readonly resolved_region: Region;
  /** Size of the rectangle that the deterministic filter inspected. */
  readonly analysis_extent: Extent;
}

/** The whole picture. */
export const FULL_REGION: NormalizedRegion = { x: 0, y: 0, width: 1, height: 1 };

/** The coordinates of an uncropped picture, as every ingest reports. */
export function fullFrame(width: number, height: number): ImageCoordinates {
  return croppedFrame({ width, height }, FULL_REGION);
}

/**
 * The coordinates of a crop in which `cropFault` finds no fault. Width, height and offsets are each floor(dim
 * * fraction / 2) * 2, so 0.5 of 1058 pixels is 528. Refuses (422 `source_uri`) a crop that resolves to less
 * than 2x2 pixels.
 */
export function croppedFrame(source: Extent, requested: NormalizedRegion): ImageCoordinates {
  const x = evenPart(source.width, requested.x);
  const y = evenPart(source.height, requested.y);
  // The sum of two fractions may exceed 1 by SUM_TOLERANCE; the pixels must stay inside the picture.
  const width = Math.min(evenPart(source.width, requested.width), evenPart(source.width - x, 1));
  const height = Math.min(evenPart(source.height, requested.height), evenPart(source.height - y, 1));
  if (width < 2 || height < 2) {
    throw refuse.invalid(
      "source_uri",
      `the analysed region must be at least 2x2 pixels: got ${width}x${height} of ${source.width}x${source.height}`,
    );
  }
  return {
    source_extent: { width: source.width, height: source.height },
    requested_region: { x: requested.x, y: requested.y, width: requested.width, height: requested.height },
    resolved_region: { x, y, width, height },
    analysis_extent: { width, height },
  };
}

/** How far x + width and y + height may exceed 1: a caller may have computed them in single precision. */
const SUM_TOLERANCE = 1e-4;

/** What is wrong with a requested crop, or null. */
export function cropFault(region: NormalizedRegion): string | null {
  const { x, y, width, height } = region;
  if (![x, y, width, height].every(Number.isFinite)) return "must have finite x, y, width and height";
  if (x < 0 || x > 1 || y < 0 || y > 1) return `x and y must lie in [0, 1]: got ${x}, ${y}`;
  if (width <= 0 || height <= 0) return `width and height must be above 0: got ${width}, ${height}`;
  if (x + width > 1 + SUM_TOLERANCE) return `x + width must not pass 1: got ${x + width}`;
  if (y + height > 1 + SUM_TOLERANCE) return `y + height must not pass 1: got ${y + height}`;
  return null;
}

function evenPart(dimension: number, fraction: number): number {
  return Math.floor(dimension * fraction / 2) * 2;
}
