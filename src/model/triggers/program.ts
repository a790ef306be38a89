/** The shape of a trigger program in JSON: signals, instructions, the program. See
 * docs/triggers-policies.md#trigger-program.
 */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { IDENTIFIER } from "../trigger_identifier.ts";
import { named } from "../schemas/named_shapes.ts";

/** Signals without parameters. */
export const SCALAR_KINDS = [
  "motion_score",
  "novelty_score",
  "confidence",
  "model_uncertainty",
  "teacher_disagreement",
  "speech_confidence",
  "audio_novelty_score",
  "cognition_gate_score",
] as const;

/** Signals between two named objects. */
export const PAIR_KINDS = ["minimum_distance_mm", "time_to_collision_ms"] as const;

/** The comparisons by their names: `==` of the source is `equal`, and so on. */
export const COMPARISONS = {
  ">": "greater_than",
  ">=": "greater_or_equal",
  "<": "less_than",
  "<=": "less_or_equal",
  "==": "equal",
} as const;

export type Comparison = typeof COMPARISONS[keyof typeof COMPARISONS];

export const CAPTURE_KINDS = ["keyframe", "clip"] as const;
export const CHANNELS = ["webhook", "local_output"] as const;
const ACTIONS: readonly string[] = ["emit", "capture", "notify"];

export const ISA_VERSION = 1;

/** The smallest number that rounds to infinity as a 32-bit float. */
const F32_END = 2 ** 128 - 2 ** 103;

/**
 * Any whole number. The shapes check types and fields only. The rules about values are checked by
 * `validate.ts`, which reports them on the field `program`; `meta` puts the bounds into the published schema.
 */
const whole = z.int().nonnegative();

const slot = whole.meta({ maximum: LIMITS.trigger.stateSlotsMax - 1 });

/** A label or zone of a signal: what the caller's detector calls it. */
const name = z.string().max(LIMITS.name.bytesMax);

/** A signal. An absent zone is the same as null and means any zone. */
export const signal = named(
  "TriggerSignal",
  z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.enum(SCALAR_KINDS) }),
    z.strictObject({ kind: z.literal("object_count"), label: name, zone: name.nullish() }),
    z.strictObject({ kind: z.enum(PAIR_KINDS), left: name, right: name }),
    z.strictObject({ kind: z.literal("dwell_ms"), label: name, zone: name }),
    z.strictObject({ kind: z.literal("audio_event_confidence"), label: name }),
  ], { error: "must be a signal: an object whose kind is one of the known ones" }),
);

const instruction = z.discriminatedUnion("op", [
  z.strictObject({ op: z.literal("load"), signal }),
  z.strictObject({
    op: z.literal("constant"),
    value: z.number().meta({ exclusiveMinimum: -F32_END, exclusiveMaximum: F32_END }),
  }),
  z.strictObject({ op: z.enum([...Object.values(COMPARISONS), "and", "or", "not", "halt"]) }),
  z.strictObject({
    op: z.literal("sustain_frames"),
    slot,
    frames: whole.meta({ ...LIMITS.trigger.sustainFrames }),
  }),
  z.strictObject({ op: z.literal("rising_edge"), slot }),
  z.strictObject({
    op: z.literal("cooldown_ms"),
    slot,
    duration_ms: whole.meta({ maximum: LIMITS.trigger.cooldownMsMax }),
  }),
  z.strictObject({
    op: z.literal("jump_if_false"),
    target: whole.meta({ minimum: 1, maximum: LIMITS.trigger.instructions.maximum - 1 }),
  }),
  z.strictObject({ op: z.literal("emit"), event_type: z.string().meta({ pattern: IDENTIFIER.source }) }),
  z.strictObject({
    op: z.literal("capture"),
    kind: z.enum(CAPTURE_KINDS),
    before_ms: whole.meta({ maximum: LIMITS.trigger.captureMsMax }),
    after_ms: whole.meta({ maximum: LIMITS.trigger.captureMsMax }),
  }),
  z.strictObject({ op: z.literal("notify"), channel: z.enum(CHANNELS) }),
], { error: "must be an instruction: an object whose op is one of the known ones" });

/** The most instructions that are looked at. */
export const INSTRUCTIONS_READ_MAX = 2 * LIMITS.trigger.instructions.maximum;

/**
 * The beginning of a list that is far too long, which is enough to show that it is: its items must not be
 * looked at one by one.
 */
function shortEnough(given: unknown): unknown {
  return Array.isArray(given) ? given.slice(0, INSTRUCTIONS_READ_MAX) : given;
}

/** A program. Closed at every level. A value of this shape may still break the rules of `validate.ts`. */
export const triggerProgram = z.strictObject({
  isa_version: whole.meta({ minimum: ISA_VERSION, const: ISA_VERSION }),
  program_id: z.string().meta({ pattern: IDENTIFIER.source }),
  version: whole.meta({ minimum: 1 }),
  instructions: z.preprocess(
    shortEnough,
    z.array(instruction).meta({
      minItems: LIMITS.trigger.instructions.minimum,
      maxItems: LIMITS.trigger.instructions.maximum,
    }),
  ),
});

export type ScalarKind = typeof SCALAR_KINDS[number];
export type Signal = z.infer<typeof signal>;
export type Instruction = z.infer<typeof instruction>;
export type TriggerProgram = z.infer<typeof triggerProgram>;

/** An instruction that is executed when the program fires; an evaluation reports it. */
export type Action = Extract<Instruction, { op: "emit" | "capture" | "notify" }>;

export function isAction(instruction: Instruction): instruction is Action {
  return ACTIONS.includes(instruction.op);
}

/** Whether both name the same measurement. */
export function isSameSignal(left: Signal, right: Signal): boolean {
  if (left.kind !== right.kind) return false;
  const [a, b] = [left, right] as [
    Partial<Record<string, string | null>>,
    Partial<Record<string, string | null>>,
  ];
  return a.label === b.label && (a.zone ?? null) === (b.zone ?? null) && a.left === b.left &&
    a.right === b.right;
}

/** Whether `value` is a finite number when it is rounded to 32 bits, as the interpreter keeps it. */
export function isFiniteF32(value: number): boolean {
  return Number.isFinite(Math.fround(value));
}
