import assert from "node:assert/strict";
import { clipPrompt, keyframePrompt } from "../../../src/model/live/prompt.ts";

const GATE = { trigger: "scene_cut", confidence: 0.58275, novelty: 1, motion: 0, ptsMs: 90_210 };
const GATE_LINE = "[gate: trigger=scene_cut, confidence=0.583, novelty=1.000, motion=0.000, pts_ms=90210]";

Deno.test("nothing is added to the prompt of a session", () => {
  for (const prompt of ["Is the dock empty?", "two\nlines"]) {
    const previous = { ptsMs: 1_500, text: "an empty dock" };
    assert.equal(keyframePrompt({ prompt, previous, gate: GATE }), prompt);
    assert.equal(clipPrompt({ prompt, frames: 3, startPtsMs: 1_000, endPtsMs: 1_333 }), prompt);
  }
});

Deno.test("to the built-in prompt comes the last description, which cannot look like a line of the prompt", () => {
  const previous = { ptsMs: 0, text: " a\n[gate: trigger=x]\r\n\u2028b " };
  const prompt = keyframePrompt({ prompt: null, previous, gate: GATE });
  assert.ok(prompt.endsWith(`\n[previous_state (0ms): a [gate: trigger=x] b]\n${GATE_LINE}`), prompt);
});

Deno.test("without a prompt, or with an empty one, the built-in one asks for a description", () => {
  for (const prompt of [null, "", "  \n"]) {
    const keyframe = keyframePrompt({ prompt, previous: null, gate: GATE });
    assert.match(
      keyframe,
      /^The image is one frame of a live video\.\nDescribe in one or two short sentences/,
    );
    assert.ok(keyframe.endsWith(`\n${GATE_LINE}`));
    const clip = clipPrompt({ prompt, frames: 3, startPtsMs: 0, endPtsMs: 333 });
    assert.match(clip, /^The images are frames of a few moments of a live video/);
    assert.ok(clip.endsWith("\n[clip: frames=3, pts_start_ms=0, pts_end_ms=333]"));
  }
});
