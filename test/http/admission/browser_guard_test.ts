import assert from "node:assert/strict";
import { startService, type TestService } from "../../support/service.ts";

const OPEN = { SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: "" };

/** The status of a request with exactly these headers, and how many runs there are afterwards. */
async function create(test: TestService, headers: Record<string, string>): Promise<number> {
  const { hostname, port, host } = new URL(test.url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const all = {
    host,
    "content-type": "application/json",
    "content-length": "2",
    connection: "close",
    ...headers,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  await connection.write(new TextEncoder().encode(`POST /v1/runs HTTP/1.1\r\n${head}\r\n{}`));
  const answer = await new Response(connection.readable).text();
  return Number(/^HTTP\/1.1 (\d+)/.exec(answer)![1]);
}

async function runs(test: TestService): Promise<number> {
  return (await test.call("GET", "/v1/runs", undefined, null)).json.length;
}

Deno.test("in open mode pages of others and names of others are refused before anything is done", async () => {
  await using test = await startService({
    ...OPEN,
    SERVICE_CORS_ALLOWED_ORIGINS: "https://console.example",
    SERVICE_ALLOWED_HOSTS: "Video.Internal.,other.internal",
  });
  const { host, port } = new URL(test.url);
  const refused: [number, Record<string, string>][] = [
    [403, { origin: "https://evil.example" }],
    [403, { origin: "null" }],
    [403, { origin: `http://localhost:${Number(port) + 1}` }],
    [403, { "sec-fetch-site": "cross-site" }],
    [403, { origin: `http://${host}`, "sec-fetch-site": "cross-site" }],
    [421, { host: "evil.example" }],
    [421, { host: `evil.example:${port}`, origin: `http://evil.example:${port}` }],
    [421, { host: "localhost.evil.example" }],
    [421, { host: "xlocalhost" }],
    [421, { host: "127.0.0.1.evil.example" }],
  ];
  for (const [status, headers] of refused) {
    assert.equal(await create(test, headers), status, JSON.stringify(headers));
  }
  assert.equal(await runs(test), 0);
  const admitted: Record<string, string>[] = [
    {},
    { origin: `http://${host}`, "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "none" },
    // A listed origin is by nature another site.
    { origin: "https://console.example", "sec-fetch-site": "cross-site" },
    { host: `localhost:${port}`, origin: `http://localhost:${port}` },
    { host: `[::1]:${port}` },
  ];
  for (const [index, headers] of admitted.entries()) {
    assert.equal(await create(test, headers), index < 5 ? 200 : 409, JSON.stringify(headers));
  }
  assert.equal(
    await create(test, { host: "video.internal:8080" }),
    409,
    "the limit of active runs is reached",
  );
});

Deno.test("with keys the key is the proof, and hosts and origins are not looked at", async () => {
  await using test = await startService();
  const status = await create(test, {
    host: "evil.example",
    origin: "https://evil.example",
    "x-api-key": "key-of-a",
  });
  assert.equal(status, 200);
});

Deno.test("a webhook that is refused does not repeat the password of its URL", async () => {
  await using test = await startService({ SERVICE_WEBHOOK_SECRET: "0123456789abcdef0123456789abcdef" });
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  for (
    const url of [
      "https://user:hunter2@example.com/",
      "ftp://user:hunter2@example.com/",
      "https:\\user:hunter2@example.com",
      "user:hunter2@example.com",
      `https://user:hunter2@example.com/${"x".repeat(3000)}`,
    ]
  ) {
    const { status, text } = await test.call("POST", `/v1/runs/${run_id}/webhooks`, { url });
    assert.equal(status, 422, url);
    assert.doesNotMatch(text, /hunter2/);
  }
  for (
    const source_uri of [
      "ftp://user:hunter2@x/y.mp4",
      "https://user:hunter2@127.0.0.1/y.mp4",
      "rtsp://user:hunter2@x/",
    ]
  ) {
    const { status, text } = await test.call("POST", `/v1/runs/${run_id}/ingest`, { source_uri });
    assert.equal(status, 422, source_uri);
    assert.doesNotMatch(text, /hunter2/);
  }
});
