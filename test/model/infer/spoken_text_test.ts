import assert from "node:assert/strict";
import { spokenText } from "../../../src/model/infer/spoken_text.ts";

function check(text: string, expected: string): void {
  assert.equal(spokenText(text).trim(), expected, text);
}

Deno.test("thinking is dropped in every form", () => {
  for (
    const thinking of [
      "<think>a draft</think>",
      "<think>\nI must not write <think> twice\n</think>\n\n",
      "a draft without a beginning</think>",
      "<think>a</think>b</think>",
      "<thinking type='x'>a draft</thinking>",
      "<THINK>a draft</THINK>",
      "<thought>a draft</thought>",
      "<seed:think>a draft</seed:think>",
      "[THINK]a draft[/THINK]",
      "◁think▷a draft◁/think▷",
      "<|START_THINKING|>a draft<|END_THINKING|><|START_RESPONSE|>",
      "<|begin_of_thought|>a draft<|end_of_thought|><|begin_of_solution|>",
      "<|channel>thought\na draft<channel|>",
      "<unused94>thought\na draft<unused95>",
      "<|channel|>analysis<|message|>a draft<|end|><|start|>assistant<|channel|>final<|message|>",
      "<|channel|>analysis<|message|>a draft<|end|><|channel|>final <|constrain|>json<|message|>",
      "analysisA draft.assistantfinal",
    ]
  ) check(`${thinking}A dock.`, "A dock.");
  check("A dock.<think>Was that right?</think>", "A dock.");
});

Deno.test("thinking that never ends leaves nothing", () => {
  check("<think>Perhaps a dock", "");
  check("<|channel|>analysis<|message|>Perhaps a dock", "");
  check("<think>a [/THINK] b", "");
});

Deno.test("tokens of the chat format are dropped, and what follows the end of the turn", () => {
  check("A dock.<|im_end|>", "A dock.");
  check("<|im_start|>assistant\nA dock.<|im_end|>\n<|im_start|>user\nAnd now?", "A dock.");
  check("<|begin_of_box|>A dock.<|end_of_box|>", "A dock.");
  check("<think>a</think><answer>A dock.</answer>", "A dock.");
  check("<think>a</think>\n<response>\nA dock.\n</response>", "A dock.");
  check("<reflection>a</reflection>A dock.", "A dock.");
  check("Here is my thought process: a. Here is my response: A dock.", "A dock.");
  check("Here's my thought process: a.", "");
  check("<s>A dock.</s>", "A dock.");
  check("A dock.<end_of_turn>", "A dock.");
  check("A dock.<｜end▁of▁sentence｜>", "A dock.");
});

Deno.test("a text without any of them stays as it is, and is well formed", () => {
  for (
    const text of [
      " A dock.\n",
      "I think </b> is a tag, 1 < 2 |> 3",
      '{"sign": "it says </think> and <|im_end|>"}',
      "analysis of a dock",
      "",
    ]
  ) {
    assert.equal(spokenText(text), text);
  }
  assert.equal(spokenText("a\ud83d"), "a\ufffd");
});

Deno.test("brackets without an end are no JSON, and are kept", () => {
  const brackets = "[".repeat(2 ** 20);
  check(`${brackets}<|im_end|>`, brackets);
});
