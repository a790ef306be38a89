import assert from "node:assert/strict";
import { parseExactJson } from "../../src/model/exact_json.ts";

Deno.test("a whole number that a double cannot hold is a bigint, wherever it is; all else is unchanged", () => {
  const check = (text: string, expected: unknown) => assert.deepEqual(parseExactJson(text), expected, text);
  check("9007199254740991", 9007199254740991);
  check("9007199254740992", 9007199254740992n);
  check("-9007199254740993", -9007199254740993n);
  check("[18446744073709551615]", [18446744073709551615n]);
  check('{"a":0.5,"b":[1,{"c":18446744073709551615}]}', { a: 0.5, b: [1, { c: 18446744073709551615n }] });
  check("[0.1234567890123456789,18446744073709551615]", [0.12345678901234568, 18446744073709551615n]);
  check("0.1234567890123456789", 0.12345678901234568);
  check("12345678901234567890.5", 12345678901234567000);
  check("1.8446744073709551615e19", 18446744073709552000);
  check("1e400", Infinity);
  check('"18446744073709551615"', "18446744073709551615");
  check('[".18446744073709551615",18446744073709551615]', [".18446744073709551615", 18446744073709551615n]);
  assert.throws(() => parseExactJson("01234567890123456789"), SyntaxError);
});

Deno.test("whatever stands around a long integer, it is read as JSON.parse reads it, but for its digits", () => {
  const refused = [
    ...["{18446744073709551615:1}", '{18446744073709551615 :"a"}', "[--18446744073709551615]"],
    ...["[18446744073709551615", '["a"18446744073709551615]', "[18446744073709551615x]"],
    ...[
      "[+18446744073709551615]",
      "[.18446744073709551615]",
      "[18446744073709551615.]",
      "[18446744073709551615e]",
    ],
    ...['["18446744073709551615]', "x18446744073709551615", "[1 18446744073709551615]"],
  ];
  for (const text of refused) {
    assert.throws(() => parseExactJson(text), (error: SyntaxError) => {
      assert.throws(() => JSON.parse(text), { message: error.message });
      return error instanceof SyntaxError;
    }, text);
  }
  const escaped = String.raw`{"a\":"\\",18446744073709551615:"b"}`;
  assert.throws(() => parseExactJson(escaped), SyntaxError);
  const check = (text: string, expected: unknown) => assert.deepEqual(parseExactJson(text), expected, text);
  check(String.raw`["\"18446744073709551615\\",18446744073709551615]`, [
    '"18446744073709551615\\',
    18446744073709551615n,
  ]);
  check("[1e0000000000000000000001,18446744073709551615]", [10, 18446744073709551615n]);
  check("[-0.18446744073709551615e-1, -18446744073709551615 ]", [
    -0.018446744073709551,
    -18446744073709551615n,
  ]);
  check(`[${"9".repeat(41)},${"9".repeat(40)}]`, [1e41, BigInt("9".repeat(40))]);
  const own = parseExactJson('{"__proto__":{"a":18446744073709551615}}') as object;
  assert.deepEqual(Object.keys(own), ["__proto__"]);
});
