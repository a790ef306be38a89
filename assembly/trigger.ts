/** The interpreter of trigger programs: one call evaluates one sample or a block of samples. Allocates
 * nothing.
 */

/*
 * The caller writes a program that was validated, so nothing is checked here: jumps go forward, the stack has
 * at most 16 values, and there are at most 16 slots. See docs/triggers-policies.md#trigger-semantics.
 *
 *   PROGRAM  64 rows  | code i32 | operand i32 | amount i32 or f32 | 0 |
 *   STATE    16 slots | true frames in a row i32 | previous input i32 | last time f64, NaN for never |
 *   STACK    16 f32, grows upwards
 *
 * Each of the three instructions with a slot uses its own field of the slot, so different ones may share a
 * slot. An instruction that a jump skips keeps its state.
 *
 * A block of samples has a time and a row of values for each sample. A row has as many values as `begin` was
 * told; NaN is a missing signal. The result of each sample is one byte of FLAGS: 1 the program fired, 2 a
 * load had no value.
 *
 *   PTS_MS f64 | VALUES f32 x columns | FLAGS u8
 *
 * Values are f32. A value is true if it is finite and not zero. Instructions write 1 for true and 0 for
 * false.
 */

export const INSTRUCTIONS: i32 = 64;
export const COLUMNS: i32 = 64;
export const BLOCK_ROWS: i32 = 10_000;
export const PROGRAM: usize = memory.data(64 * 16, 16);
export const PTS_MS: usize = memory.data(10_000 * 8, 16);
export const VALUES: usize = memory.data(10_000 * 64 * 4, 16);
export const FLAGS: usize = memory.data(10_000, 16);

const STATE: usize = memory.data(16 * 16, 16);
const STACK: usize = memory.data(16 * 4, 16);

/** Codes of src/model/triggers/program_table.ts. */
const LOAD: i32 = 1;
const CONSTANT: i32 = 2;
const GREATER_THAN: i32 = 3;
const GREATER_OR_EQUAL: i32 = 4;
const LESS_THAN: i32 = 5;
const LESS_OR_EQUAL: i32 = 6;
const EQUAL: i32 = 7;
const AND: i32 = 8;
const OR: i32 = 9;
const NOT: i32 = 10;
const SUSTAIN_FRAMES: i32 = 11;
const RISING_EDGE: i32 = 12;
const COOLDOWN_MS: i32 = 13;
const JUMP_IF_FALSE: i32 = 14;
const FIRE: i32 = 15;

const FIRED: i32 = 1;
const MISSING_SIGNAL: i32 = 2;

/** The count stops here, because no sustain instruction needs more, and a live stream may last for years. */
const SUSTAIN_FRAMES_MAX: i32 = 10_000;

let rowBytes: usize = 0;

/** Resets the state. From now on rows have `columns` values. */
export function begin(columns: i32): void {
  rowBytes = <usize> columns << 2;
  for (let slot: usize = 0; slot < 16; slot++) {
    const state = STATE + (slot << 4);
    store<i64>(state, 0);
    store<f64>(state, f64.NaN, 8);
  }
}

/** Evaluates one sample, whose values are in the first row; returns its flags. */
export function step(ptsMs: f64): i32 {
  return evaluate(VALUES, ptsMs);
}

/** Evaluates the first `rows` samples of the block. */
export function run(rows: i32): void {
  let values = VALUES;
  for (let row: usize = 0; row < <usize> rows; row++) {
    store<u8>(FLAGS + row, evaluate(values, load<f64>(PTS_MS + (row << 3))));
    values += rowBytes;
  }
}

function evaluate(values: usize, ptsMs: f64): i32 {
  let flags: i32 = 0;
  let at = PROGRAM;
  let top = STACK;
  while (true) {
    switch (load<i32>(at)) {
      case LOAD: {
        const value = load<f32>(values + (<usize> load<i32>(at, 4) << 2));
        if (value != value) flags |= MISSING_SIGNAL;
        store<f32>(top, value);
        top += 4;
        break;
      }
      case CONSTANT:
        store<f32>(top, load<f32>(at, 8));
        top += 4;
        break;
      case GREATER_THAN:
        top -= 4;
        leave(top - 4, load<f32>(top - 4) > load<f32>(top));
        break;
      case GREATER_OR_EQUAL:
        top -= 4;
        leave(top - 4, load<f32>(top - 4) >= load<f32>(top));
        break;
      case LESS_THAN:
        top -= 4;
        leave(top - 4, load<f32>(top - 4) < load<f32>(top));
        break;
      case LESS_OR_EQUAL:
        top -= 4;
        leave(top - 4, load<f32>(top - 4) <= load<f32>(top));
        break;
      case EQUAL:
        top -= 4;
        leave(top - 4, load<f32>(top - 4) == load<f32>(top));
        break;
      case AND:
        top -= 4;
        leave(top - 4, isTrue(load<f32>(top - 4)) & isTrue(load<f32>(top)));
        break;
      case OR:
        top -= 4;
        leave(top - 4, isTrue(load<f32>(top - 4)) | isTrue(load<f32>(top)));
        break;
      case NOT:
        leave(top - 4, !isTrue(load<f32>(top - 4)));
        break;
      case SUSTAIN_FRAMES:
        leave(top - 4, sustained(stateAt(at), isTrue(load<f32>(top - 4)), load<i32>(at, 8)));
        break;
      case RISING_EDGE:
        leave(top - 4, hasRisen(stateAt(at), isTrue(load<f32>(top - 4))));
        break;
      case COOLDOWN_MS:
        leave(top - 4, isTrue(load<f32>(top - 4)) && isCool(stateAt(at), ptsMs, load<i32>(at, 8)));
        break;
      case JUMP_IF_FALSE:
        top -= 4;
        if (!isTrue(load<f32>(top))) {
          at = PROGRAM + (<usize> load<i32>(at, 4) << 4);
          continue;
        }
        break;
      case FIRE:
        return flags | FIRED;
      default:
        return flags;
    }
    at += 16;
  }
}

function isTrue(value: f32): bool {
  return (value != 0) & (abs<f32>(value) < f32.POSITIVE_INFINITY);
}

function leave(place: usize, isTrue: bool): void {
  store<f32>(place, <f32> <i32> isTrue);
}

/** Address of the slot of the instruction at `at`. */

function stateAt(at: usize): usize {
  return STATE + (<usize> load<i32>(at, 4) << 4);
}

function sustained(state: usize, input: bool, frames: i32): bool {
  const inARow = input ? min<i32>(load<i32>(state) + 1, SUSTAIN_FRAMES_MAX) : 0;
  store<i32>(state, inARow);
  return inARow >= frames;
}

function hasRisen(state: usize, input: bool): bool {
  const before = load<i32>(state, 4);
  store<i32>(state, input, 4);
  return input & !before;
}

/**
 * True when there was no last time or it is at least `durationMs` ago; then `ptsMs` becomes the last time.
 */

function isCool(state: usize, ptsMs: f64, durationMs: i32): bool {
  const last = load<f64>(state, 8);
  if (ptsMs - last < <f64> durationMs) return false;
  store<f64>(state, ptsMs, 8);
  return true;
}
