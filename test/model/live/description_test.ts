import assert from "node:assert/strict";
import { truncatedUtf8 } from "../../../src/base/bytes.ts";
import { Descriptions, isAnotherState, wordOverlap } from "../../../src/model/live/description.ts";

const CUT = { trigger: "scene_cut", confidence: 0.58 };

Deno.test("words in common are counted as written, each once, up to 128 of a text", () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`);
  const check = (one: string, other: string, overlap: number) => {
    assert.equal(wordOverlap(one, other), overlap, `${one} | ${other}`);
    assert.equal(wordOverlap(other, one), overlap, `${other} | ${one}`);
  };
  check("", "", 1);
  check(" \n\t", "", 1);
  check("", "a", 0);
  check("a", "a", 1);
  check("a b", "b a", 1);
  check("a a a b", "a b", 1);
  check("a b", "a c", 1 / 3);
  check("a b c", "a b d", 0.5);
  check("Dock empty", "dock empty", 1 / 3);
  check("dock.", "dock", 0);
  check("  a\tb\n", "a b", 1);
  check("a\u00a0b", "a b", 1);
  check(many(200).join(" "), many(128).join(" "), 1);
  check([...many(128), "x"].join(" "), [...many(128), "y"].join(" "), 1);
});

Deno.test("the state is another when fewer than half of the words are in both", () => {
  assert.equal(isAnotherState("a b c", "a b d"), false);
  assert.equal(isAnotherState("a b c d", "a b e f"), true);
  assert.equal(isAnotherState("a", ""), true);
});

Deno.test("a transition has both states, why the frame was chosen and the confidence", () => {
  const said = new Descriptions();
  assert.equal(said.previous, null);
  assert.deepEqual(said.next(10, "empty dock", CUT), { isRepeated: false, transition: null });
  assert.deepEqual(said.previous, { ptsMs: 10, text: "empty dock" });
  const { isRepeated, transition } = said.next(20, "forklift in dock", CUT);
  assert.equal(isRepeated, false);
  assert.equal(
    transition,
    '{"from_state":"empty dock","to_state":"forklift in dock","trigger":"scene_cut","confidence":0.58}',
  );
  assert.deepEqual(said.previous, { ptsMs: 20, text: "forklift in dock" });
});

Deno.test("the same text again is a repetition and no transition, another wording of it neither", () => {
  const said = new Descriptions();
  const check = (text: string, isRepeated: boolean, isTransition: boolean) => {
    const step = said.next(0, text, CUT);
    assert.deepEqual([step.isRepeated, step.transition !== null], [isRepeated, isTransition], text);
  };
  check("a man at a desk", false, false);
  check("a man at a desk", true, false);
  check("a man at the desk", false, false);
  check("", false, false);
  check("  \n", false, false);
  check("a man at the desk", true, false);
  check("two cars", false, true);
  check("a man at the desk", false, true);
});

Deno.test("200 bytes of a long description are repeated, but all of it is compared", () => {
  const said = new Descriptions();
  const long = "é".repeat(150) + " and a word ".repeat(20);
  said.next(0, long, CUT);
  assert.equal(said.previous!.text, "é".repeat(100));
  assert.deepEqual(said.next(1, `${long}!`, CUT), { isRepeated: false, transition: null });
  const { transition } = said.next(2, "x", CUT);
  assert.equal(JSON.parse(transition!).from_state, "é".repeat(100));
});

Deno.test("a text is cut between characters and never inside one", () => {
  const check = (text: string, bytesMax: number, expected: string) =>
    assert.equal(truncatedUtf8(text, bytesMax), expected, `${text} ${bytesMax}`);
  check("", 3, "");
  check("abc", 3, "abc");
  check("abcd", 3, "abc");
  check("aéb", 2, "a");
  check("aéb", 3, "aé");
  check("a😀b", 4, "a");
  check("a😀b", 5, "a😀");
  check("漢字", 5, "漢");
  check("abc", 0, "");
});
