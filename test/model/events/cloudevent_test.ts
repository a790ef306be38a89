import assert from "node:assert/strict";
import { cloudEvent, type LoggedEvent } from "../../../src/model/events/cloudevent.ts";

const EVENT: LoggedEvent = {
  seq: 7,
  runId: "run-5b0d2f0c9a7e4d31b6f1c2a3d4e5f607",
  streamId: "stream-0",
  ptsMs: 1764316800123,
  kind: "stop_requested",
  payload: '{"request_id":"req-0000000000000001"}',
};

Deno.test("the envelope has the documented fields in the documented order", () => {
  assert.equal(
    cloudEvent(EVENT),
    '{"specversion":"1.0","id":"run-5b0d2f0c9a7e4d31b6f1c2a3d4e5f607:7"' +
      ',"source":"/v1/runs/run-5b0d2f0c9a7e4d31b6f1c2a3d4e5f607","type":"dev.service.timeline.stop_requested"' +
      ',"subject":"stream-0","datacontenttype":"application/json","sequence":7,"pts_ms":1764316800123' +
      ',"data":{"request_id":"req-0000000000000001"}}',
  );
});

Deno.test("data is the payload's own text, or a JSON string where that is no JSON", async (t) => {
  const cases: [what: string, payload: string, data: string][] = [
    ["every digit of 2^64-1", '{"h":18446744073709551615}', '{"h":18446744073709551615}'],
    ["a hash above 2^53", '{"h":17361641481138401520}', '{"h":17361641481138401520}'],
    ["spelling and blanks", '{ "a" : 1.0e0, "b":"\\u00e9" }', '{ "a" : 1.0e0, "b":"\\u00e9" }'],
    ["an empty object", "{}", "{}"],
    ["text of every script", '{"d":"é 漢 🎥 \u2028"}', '{"d":"é 漢 🎥 \u2028"}'],
    ["an array", "[1,18446744073709551615]", "[1,18446744073709551615]"],
    ["a number", "18446744073709551615", "18446744073709551615"],
    ["null", "null", "null"],
    ["a string", '"text"', '"text"'],
    ["blanks around an object", " {} ", " {} "],
    ["line breaks between tokens become blanks", '{\r\n"a":1\n}', '{  "a":1 }'],
    ["no text at all", "", '""'],
    ["words", "not JSON", '"not JSON"'],
    ["quotes and backslashes", 'say "a\\b"', '"say \\"a\\\\b\\""'],
    ["a torn object", '{"a":', '"{\\"a\\":"'],
    ["an object and more", '{"a":1} x', '"{\\"a\\":1} x"'],
    ["a raw line break inside a string", '{"a":"1\n2"}', '"{\\"a\\":\\"1\\n2\\"}"'],
    ["NaN is not JSON", "NaN", '"NaN"'],
  ];
  for (const [what, payload, data] of cases) {
    await t.step(what, () => {
      const text = cloudEvent({ ...EVENT, payload });
      assert.ok(text.endsWith(`,"data":${data}}`), text);
      assert.equal(JSON.parse(text).sequence, 7);
      assert.ok(!/[\r\n]/.test(text), "one line, as an SSE data line has to be");
    });
  }
});

Deno.test("names from outside cannot break out of their fields", () => {
  const parsed = JSON.parse(
    cloudEvent({ ...EVENT, streamId: 'cam "1"\n', kind: 'trigger.x","data":1', runId: 'r"' }),
  );
  assert.equal(parsed.subject, 'cam "1"\n');
  assert.equal(parsed.type, 'dev.service.timeline.trigger.x","data":1');
  assert.equal(parsed.id, 'r":7');
  assert.deepEqual(parsed.data, { request_id: "req-0000000000000001" });
});
