/** Where the measures of the newest frame are written. */

/** In the order of MEASURES in src/media/detection/faults/artifact_measures.ts. */
export const ARTIFACT_MEASURES: usize = memory.data(38 * 4, 16);

export function put(index: i32, value: f32): void {
  store<f32>(ARTIFACT_MEASURES + (index << 2), value);
}

export function measureAt(index: i32): f32 {
  return load<f32>(ARTIFACT_MEASURES + (index << 2));
}
