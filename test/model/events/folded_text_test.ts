import assert from "node:assert/strict";
import { foldedText } from "../../../src/model/events/folded_text.ts";

Deno.test("spellings of one word are one text", () => {
  for (
    const [folded, ...spellings] of [
      ["strasse", "straße", "STRASSE", "STRAẞE", "Straſſe"],
      ["café in zürich", "CAFÉ in ZÜRICH", "Cafe\u0301 in Zu\u0308rich", "Café\u00a0in\u2003Zürich"],
      ["film", "ﬁlm", "ＦＩＬＭ", "𝐅𝐢𝐥𝐦", "FI\u00adLM", "ﬁ\u200dlm"],
      ["istanbul", "İstanbul", "ISTANBUL", "ıstanbul", "i\u0307stanbul", "I\u0307STANBUL"],
      ["οδοσ", "ΟΔΟΣ", "οδος", "οδοσ"],
      ["ΰ", "Υ\u0308\u0301", "\u1fe3"],
      ["각", "\u1100\u1161\u11a8"],
      ["❤", "❤\ufe0f"],
      ["5 km2", "5 ㎞²"],
      ["it's", "it’s", "itʼs", "it´s", "IT＇S"],
      ["wi-fi", "wi\u2011fi", "Wi–Fi", "wi—fi", "wi−fi", "wi\ufe63fi", "ＷＩ－ＦＩ"],
      ['a "stop" sign', "a “stop” sign", "a „stop“ sign", "a «stop» sign"],
      ["two words", "two\nwords", "two  words", "two\r\n words", "two\u00a0\u2009words"],
      ["👍🏽 done", "👍🏽\ufe0f DONE"],
    ]
  ) {
    for (const spelling of spellings) assert.equal(foldedText(spelling), folded, spelling);
    assert.equal(foldedText(folded!), folded);
  }
});

Deno.test("other words stay other texts", () => {
  const texts = ["cafe", "café", "masse", "maße!", "бег", "бёг", "が", "か", "ss", "s"].map(foldedText);
  assert.equal(new Set(texts).size, texts.length);
});
