/** Sources to begin with. */

export interface TriggerExample {
  readonly name: string;
  /** What it fires on. */
  readonly about: string;
  readonly source: string;
}

export const TRIGGER_EXAMPLES: readonly TriggerExample[] = [
  {
    name: "Motion that lasts",
    about: "fires where something moves for three frames in a row, then not again for two seconds",
    source: `# Something moves for three frames in a row.
trigger motion-lasts version 1
when motion_score >= 0.06 for 3 frames
edge rising
cooldown 2000ms
emit motion_started
capture keyframe
notify webhook
end
`,
  },
  {
    name: "A new picture",
    about: "fires where a frame is unlike the sixteen before it",
    source: `# The picture is unlike what was seen before.
trigger new-picture version 1
when novelty_score >= 0.3
edge rising
emit picture_changed
capture keyframe
end
`,
  },
  {
    name: "A sudden change",
    about: "fires where picture, light and motion change at once",
    source: `# All at once: much motion, and a high confidence of the context pass.
trigger sudden-change version 1
when motion_score >= 0.3
and confidence >= 0.25
edge rising
cooldown 1000ms
emit sudden_change
capture clip 2000ms 3000ms
notify webhook
end
`,
  },
];
