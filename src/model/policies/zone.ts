/** The restricted zone of a policy and its rules. See docs/triggers-policies.md#restricted-zone. */

import { utf8Length } from "../../base/bytes.ts";
import type { NormalizedRegion } from "../frames/coordinates.ts";
import type { FieldRules } from "../field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";

export interface RestrictedZone {
  readonly policy_id: string;
  /** From 1. */
  readonly policy_version: number;
  readonly device_id: string;
  /** Fractions of the picture; it becomes the crop that is analyzed. */
  readonly region: NormalizedRegion;
  /** Motion from which a frame counts towards entering. */
  readonly enter_motion_score: number;
  /** Motion up to which a frame counts towards leaving; below `enter_motion_score`. */
  readonly exit_motion_score: number;
  /** Consecutive frames. */
  readonly enter_after_frames: number;
  readonly exit_after_frames: number;
}

export function isSameZone(one: RestrictedZone, other: RestrictedZone): boolean {
  const fields = (zone: RestrictedZone) => {
    const { region: { x, y, width, height }, policy_id, policy_version, device_id } = zone;
    const { enter_motion_score, exit_motion_score, enter_after_frames, exit_after_frames } = zone;
    const rules = [enter_motion_score, exit_motion_score, enter_after_frames, exit_after_frames];
    return [policy_id, policy_version, device_id, x, y, width, height, ...rules];
  };
  const others = fields(other);
  return fields(one).every((value, index) => value === others[index]);
}

/** Adds a fault for every rule that `zone` breaks, on the field below `at`. */
export function checkZone(rules: FieldRules, at: string, zone: RestrictedZone): void {
  checkIdentifier(rules, `${at}.policy_id`, zone.policy_id);
  if (!(zone.policy_version >= 1)) {
    rules.fault(`${at}.policy_version`, `must be at least 1: got ${zone.policy_version}`);
  }
  checkIdentifier(rules, `${at}.device_id`, zone.device_id);
  checkRegion(rules, `${at}.region`, zone.region);
  const { enter_motion_score: enter, exit_motion_score: exit } = zone;
  rules.range(`${at}.enter_motion_score`, enter, UNIT);
  rules.range(`${at}.exit_motion_score`, exit, UNIT);
  if (enter <= exit) {
    rules.fault(`${at}.enter_motion_score`, `must be above exit_motion_score: got ${enter} and ${exit}`);
  }
  rules.range(`${at}.enter_after_frames`, zone.enter_after_frames, LIMITS.policy.zoneFrames);
  rules.range(`${at}.exit_after_frames`, zone.exit_after_frames, LIMITS.policy.zoneFrames);
}

const UNIT = { minimum: 0, maximum: 1 };

function checkIdentifier(rules: FieldRules, field: string, id: string): void {
  const { minimum, maximum } = LIMITS.policy.zoneIdentifierBytes;
  const bytes = utf8Length(id);
  if (bytes < minimum || bytes > maximum) {
    rules.fault(field, `must have ${minimum} to ${maximum} bytes: got ${bytes}`);
  }
  // deno-lint-ignore no-control-regex -- control characters are searched for
  if (/[\x00-\x1f\x7f-\x9f]/.test(id)) rules.fault(field, "must not have control characters");
}

/** A zone must lie inside the picture without tolerance, unlike a crop, because zones are compared exactly. */
function checkRegion(rules: FieldRules, field: string, { x, y, width, height }: NormalizedRegion): void {
  if (!(x >= 0 && y >= 0 && width > 0 && height > 0 && x + width <= 1 && y + height <= 1)) {
    rules.fault(field, `must lie inside [0, 1] with a size above 0: got ${x}, ${y}, ${width}, ${height}`);
  }
}
