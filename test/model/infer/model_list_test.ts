import assert from "node:assert/strict";
import { hasModel, modelListOf, spellingIn, unknownModelText } from "../../../src/model/infer/model_list.ts";
import { LIMITS } from "../../../src/contract/limits.ts";

const listOf = (...ids: readonly string[]) => modelListOf({ data: ids.map((id) => ({ id })) });

Deno.test("a list is read in the shapes that servers give it", () => {
  const ids = (answer: unknown) => modelListOf(answer)?.ids;
  assert.deepEqual(ids({ object: "list", data: [{ id: "a", object: "model" }, { id: "b" }] }), ["a", "b"]);
  assert.deepEqual(ids({ models: [{ name: "x" }], object: "list", data: [{ id: "/m/a.gguf" }] }), [
    "/m/a.gguf",
  ]);
  assert.deepEqual(ids({ models: [{ model: "a:1" }, { name: "b:1" }] }), ["a:1", "b:1"]);
  assert.deepEqual(ids([{ id: "a" }, "b"]), ["a", "b"]);
  assert.deepEqual(ids({ data: [{ id: "a" }, { id: "a" }] }), ["a"]);
});

Deno.test("an answer without a list does not say that there is none", () => {
  for (
    const answer of [{ object: "list", data: [] }, { data: null }, {}, null, "models", 7, [], { data: "a" }, {
      data: [{}, null, { id: 7 }, { id: "" }, { id: " a" }, { id: "a\u0007" }, { id: "a".repeat(257) }],
    }]
  ) {
    assert.equal(modelListOf(answer), null, JSON.stringify(answer));
    assert.equal(hasModel(modelListOf(answer), "a"), null);
  }
});

Deno.test("a list that was not read whole says what a server has, and not what it has not", () => {
  const max = LIMITS.backend.modelsMax;
  const whole = listOf(...Array.from({ length: max }, (_, at) => `m-${at}`));
  assert.deepEqual([whole!.ids.length, hasModel(whole, "m-1"), hasModel(whole, "other")], [max, true, false]);
  const long = listOf(...Array.from({ length: max + 1 }, (_, at) => `m-${at}`));
  assert.deepEqual([long!.ids.length, hasModel(long, "m-1"), hasModel(long, "m-1000")], [max, true, null]);
  const odd = modelListOf({ data: [{ id: "a" }, { id: 7 }] });
  assert.deepEqual([hasModel(odd, "a"), hasModel(odd, "b")], [true, null]);
});

Deno.test("a model is found in another case, by an alias and without its tag, each as the server spells it", () => {
  const list = listOf(
    "qwen/qwen3-vl-8b-instruct",
    "lfm2.5-vl-1.6b-q4_0.gguf",
    "llava:latest",
    "llava:13b",
    "LLaVA",
  )!;
  assert.equal(spellingIn(list, "Qwen/Qwen3-VL-8B-Instruct"), "qwen/qwen3-vl-8b-instruct");
  assert.equal(spellingIn(list, "LiquidAI/LFM2.5-VL-1.6B"), "lfm2.5-vl-1.6b-q4_0.gguf");
  assert.equal(spellingIn(list, "llava:13B"), "llava:13b");
  assert.equal(spellingIn(list, "llava"), "LLaVA");
  assert.equal(spellingIn(listOf("llava:latest")!, "LLaVA"), "llava:latest");
  assert.equal(spellingIn(list, "llava:7b"), undefined);
  assert.equal(spellingIn(list, "Qwen/Qwen3-VL-4B-Instruct"), undefined);
});

Deno.test("a message names a few models, and how many more there are", () => {
  assert.equal(
    unknownModelText("a", ["b", "c"]),
    "The model server does not know the model a; it has: b, c",
  );
  assert.match(unknownModelText("a", "bcdefghi".split("")), /it has: b, c, d, e, f and 3 more$/);
});
