import assert from "node:assert/strict";
import { serverWords, waitMsIn } from "../../../src/remote/models/server_words.ts";

function check(body: string, expected: string | null, secrets: readonly string[] = []): void {
  assert.equal(serverWords(new TextEncoder().encode(body), secrets), expected, body);
}

Deno.test("the message of a server is found in each form that servers give it", () => {
  for (
    const body of [
      "no room",
      '"no room"',
      '\ufeff{"error": "no room"}',
      '{"error": {"message": "no room", "code": 400}}',
      '[{"error": {"message": "no room"}}]',
      '{"detail": [{"loc": ["body"], "msg": "no room"}]}',
      '{"detail": {"error": {"message": "no room"}}}',
      '{"errors": [{"message": "no room"}]}',
      '{"error": true, "reason": "no room"}',
      '{"error": "", "message": "no room"}',
      '{"error": {"code": 3}, "msg": "no room"}',
      '{"fault": {"faultstring": "no room"}}',
      '{"title": "Problem", "detail": "no room", "status": 400}',
      '{"error": {"message": "{\\"error\\": {\\"message\\": \\"no room\\"}}"}}',
      'data: {"error": {"message": "no room"}}\n\ndata: [DONE]',
      'event: error\ndata: {"error": "no room"}\n\n',
      "<html><style>p{}</style><p>no&nbsp;room</p>",
      "\x1b[31mno\x1b[0m\n  room",
    ]
  ) check(body, "no room");
  check(
    '{"error": {"message": "Provider failed", "metadata": {"raw": "no room"}}}',
    "Provider failed: no room",
  );
  check('{"a": 1}', '{"a": 1}');
  check("x".repeat(1000), `${"x".repeat(299)}…`);
  check(" \n", null);
});

Deno.test("secrets in the message of a server are hidden", () => {
  const secret = 'a+b/"c==';
  for (const spelling of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
    check(`the id ${spelling} is wrong`, "the id *** is wrong", [secret]);
  }
  for (
    const [said, hidden] of [
      ["api_key=hunter2", "api_key=***"],
      ['"x-api-key": "hunter2"', '"x-api-key": "***"'],
      ["Authorization: Token abc", "Authorization: Token ***"],
      ["Bearer abc.def", "Bearer ***"],
      ["password=hunter2 for me", "password=*** for me"],
      ["key 'b0f0a7ce-1111-2222-3333-444455556666' is invalid", "key '***' is invalid"],
      ["eyJhbGciOiJI.eyJzdWIi.abc-d", "***"],
      ["AKIAIOSFODNN7EXAMPLE and nvapi-abcdef12345", "*** and ***"],
      ["http://me:secret@host/x?token=1", "http://***@host/x?token=***"],
    ]
  ) check(said!, hidden!);
  for (
    const plain of [
      "The model `Qwen/Qwen3-VL-4B-Instruct` does not exist.",
      "max_tokens=4096 is over the token limit 131072",
      "missing key in the request",
    ]
  ) check(plain, plain);
});

Deno.test("a wait is read from the words of a server", () => {
  const rows: [string, number | null][] = [
    ['{"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "11.5s"}]}', 11_500],
    ['{"retry_after": 3}', 3_000],
    ['{"retry_after_ms": "250"}', 250],
    ['{"error": "loading", "estimated_time": 20.5}', 20_500],
    ["Rate limit reached. Please try again in 7.66s.", 7_660],
    ["Please retry in 1m2.5s", 62_500],
    ["Please try again in 20ms", 20],
    ["try again in 1h0m1s", 3_601_000],
    ["Please retry after 11 seconds", 11_000],
    ["retry after 999999999 s", 86_400_000],
    ["try again later", null],
    ["try again in May", null],
  ];
  for (const [text, expected] of rows) assert.equal(waitMsIn(text), expected, text);
});
