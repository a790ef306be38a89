import assert from "node:assert/strict";
import { normalForm } from "../../src/base/normal_form.ts";

Deno.test("a text has its normal form, and of many marks in a row thirty are kept", () => {
  for (const text of ["e\u0301", "동영상", "a\u0323\u0301", "ﬁlm ＦＩＬＭ", "\u0301", ""]) {
    assert.equal(normalForm(text, "NFC"), text.normalize("NFC"));
    assert.equal(normalForm(text, "NFKC"), text.normalize("NFKC"));
  }
  const [above, below] = ["\u0301", "\u0323"];
  assert.equal(normalForm(`x${above.repeat(40)}y`, "NFC"), `x${above.repeat(30)}y`);
  // The runtime would sort two million marks for hours.
  const marks = `x${above.repeat(1_000_000)}${below.repeat(1_000_000)}`;
  assert.equal(normalForm(marks, "NFC"), `x${above.repeat(30)}`);
  assert.equal(normalForm(`x${`\uff9e${above}`.repeat(500_000)}`, "NFKC").length, 31);
});
