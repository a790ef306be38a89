import assert from "node:assert/strict";
import { acceptsGzip, compressed } from "../../src/http/answers/compress.ts";
import { CompressibleResponse } from "../../src/http/answers/reply.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { KEY_A, KEY_B, newRun, startService, type TestService } from "../support/service.ts";

const PAGE = "https://console.example.com";

function preflight(test: TestService, origin: string | null, path = "/v1/runs") {
  return test.send(path, {
    method: "OPTIONS",
    headers: { "access-control-request-method": "POST", ...(origin !== null && { origin }) },
  });
}

Deno.test("a preflight of a listed origin is allowed without a key, any other is not", async () => {
  await using test = await startService({ SERVICE_CORS_ALLOWED_ORIGINS: `${PAGE},http://localhost:5173` });
  const allowed = await preflight(test, PAGE);
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get("access-control-allow-origin"), PAGE);
  assert.equal(allowed.headers.get("vary"), "origin");
  assert.equal(allowed.headers.get("access-control-allow-methods"), "GET,POST,PATCH,DELETE,OPTIONS");
  assert.equal(
    allowed.headers.get("access-control-allow-headers"),
    "content-type,x-api-key,authorization,x-tenant-id,x-attach-config,last-event-id,if-match,etag,idempotency-key",
  );
  assert.equal(allowed.headers.get("access-control-max-age"), "600");

  for (
    const origin of ["https://evil.example.com", `${PAGE}.evil.com`, "http://console.example.com", "null"]
  ) {
    const refused = await preflight(test, origin);
    assert.equal(refused.status, 403, origin);
    assert.equal(refused.json.error.code, "cors_forbidden");
    assert.equal(refused.headers.get("access-control-allow-origin"), null);
  }
  const nameless = await preflight(test, null);
  assert.deepEqual([nameless.status, nameless.json.error.code], [400, "validation_error"]);
});

Deno.test("without listed origins every preflight is refused, and no answer carries CORS headers", async () => {
  await using test = await startService();
  assert.equal((await preflight(test, PAGE)).status, 403);
  const { headers } = await test.send("/v1/health", { headers: { origin: PAGE } });
  assert.equal(headers.get("access-control-allow-origin"), null);
});

Deno.test("actual answers to a listed origin can be read by it, refusals too; others are served without", async () => {
  await using test = await startService({ SERVICE_CORS_ALLOWED_ORIGINS: PAGE });
  const paths = ["/v1/health", "/v1/runs", "/v1/nothing", "/v1/runs/x"];
  for (const path of paths) {
    for (const key of [KEY_A, "wrong"]) {
      const { headers } = await test.send(path, { headers: { origin: PAGE, "x-api-key": key } });
      assert.equal(headers.get("access-control-allow-origin"), PAGE, path);
      assert.equal(
        headers.get("access-control-expose-headers"),
        "location,x-service-run-id,link,etag,accept-post,access-control-allow-methods,idempotency-replayed,retry-after",
      );
      assert.match(headers.get("vary") ?? "", /origin/);
    }
  }
  const other = await test.send("/v1/runs", {
    headers: { origin: "https://other.example.com", "x-api-key": KEY_A },
  });
  assert.equal(other.status, 200);
  assert.equal(other.headers.get("access-control-allow-origin"), null);
});

Deno.test("in open mode a star admits every origin", async () => {
  await using test = await startService({
    SERVICE_REQUIRE_API_KEY: "false",
    SERVICE_API_KEYS: "",
    SERVICE_CORS_ALLOWED_ORIGINS: "*",
  });
  const { status, headers } = await preflight(test, "https://anyone.example.com");
  assert.equal(status, 204);
  assert.equal(headers.get("access-control-allow-origin"), "*");
  assert.equal(headers.get("vary"), null);
});

Deno.test("an OPTIONS request that is no preflight is an ordinary request with the wrong method", async () => {
  await using test = await startService();
  assert.equal((await test.call("OPTIONS", "/v1/runs")).status, 405);
  assert.equal((await test.call("OPTIONS", "/v1/runs", undefined, null)).status, 401);
});

Deno.test("the global limit counts every request, health and preflights too, and says when to come back", async () => {
  await using test = await startService({
    SERVICE_RATE_LIMIT_GLOBAL_RPS: "3",
    SERVICE_CORS_ALLOWED_ORIGINS: PAGE,
  }, { clock: new ManualClock() });
  const paths = ["/v1/health", "/v1/runs", "/v1/nothing"];
  for (const path of paths) assert.notEqual((await test.call("GET", path)).status, 429);
  for (const answer of [await test.call("GET", "/v1/health", undefined, null), await preflight(test, PAGE)]) {
    assert.equal(answer.status, 429);
    assert.equal(answer.json.error.code, "rate_limited");
    assert.equal(answer.headers.get("retry-after"), "1");
  }
});

Deno.test("the limit of a principal counts its own authenticated requests only", async () => {
  await using test = await startService({ SERVICE_RATE_LIMIT_TENANT_RPS: "2" }, { clock: new ManualClock() });
  for (let request = 0; request < 2; request++) {
    assert.equal((await test.call("GET", "/v1/runs")).status, 200);
  }
  assert.equal((await test.call("GET", "/v1/metrics")).status, 429);
  assert.equal((await test.call("GET", "/v1/health", undefined, null)).status, 200);
  assert.equal((await test.call("GET", "/v1/runs", undefined, "wrong")).status, 401);
  assert.equal((await test.call("GET", "/v1/runs", undefined, KEY_B)).status, 200);
});

Deno.test("a principal for whom there is no slot is 429", async () => {
  await using test = await startService({
    SERVICE_RATE_LIMIT_TENANT_RPS: "1",
    SERVICE_RATE_LIMIT_TENANT_SLOTS: "1",
  }, { clock: new ManualClock() });
  assert.equal((await test.call("GET", "/v1/runs")).status, 200);
  assert.equal((await test.call("GET", "/v1/runs", undefined, KEY_B)).status, 429);
});

Deno.test("long JSON answers are compressed for those who accept it, and only those", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "20" });
  for (let run = 0; run < 8; run++) await newRun(test);
  const check = async (
    path: string,
    acceptEncoding: string,
    encoding: string | null,
    vary: string | null,
  ) => {
    const response = await fetch(`${test.url}${path}`, {
      headers: { "x-api-key": KEY_A, "accept-encoding": acceptEncoding },
    });
    assert.equal(response.headers.get("content-encoding"), encoding, `${path} for ${acceptEncoding}`);
    assert.equal(response.headers.get("vary"), vary, `${path} for ${acceptEncoding}`);
    return await response.text();
  };
  const plain = await check("/v1/runs", "identity", null, "accept-encoding");
  assert.ok(plain.length > 1024);
  // fetch decodes what it asked for, so the text must be the same.
  assert.equal(await check("/v1/runs", "gzip", "gzip", "accept-encoding"), plain);
  assert.equal(await check("/v1/runs", "gzip;q=0", null, "accept-encoding"), plain);
  assert.equal(await check("/v1/health", "gzip", null, null), '{"status":"ok"}');
});

Deno.test("what a client accepts is read as the standard says", () => {
  const check = (header: string | null, expected: boolean) =>
    assert.equal(acceptsGzip(header), expected, String(header));
  check(null, false);
  check("", false);
  check("gzip", true);
  check("GZIP", true);
  check("br, gzip;q=0.5", true);
  check("gzip;q=0", false);
  check("gzip; q=0.0", false);
  check("*", true);
  check("*;q=0", false);
  check("*, gzip;q=0", false);
  check("identity", false);
  check("xgzip", false);
});

Deno.test("a compressed list is read no further than its client reads, and no more once the client is gone", async () => {
  let pulls = 0;
  const { promise: gone, resolve: leave } = Promise.withResolvers<unknown>();
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulls++;
      controller.enqueue(crypto.getRandomValues(new Uint8Array(65_536)));
    },
    cancel: leave,
  });
  const request = new Request("http://127.0.0.1/", { headers: { "accept-encoding": "gzip" } });
  const reader = compressed(request, new CompressibleResponse(endless, {})).body!.getReader();
  const reads = 10;
  for (let read = 0; read < reads; read++) await reader.read();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.ok(pulls <= reads + 4, `${pulls} chunks for ${reads} reads`);
  await reader.cancel("gone");
  assert.equal(await gone, "gone");
});

Deno.test("a URL that is longer than any of ours is 414", async () => {
  await using test = await startService();
  assert.equal((await test.call("GET", `/v1/runs?${"x".repeat(9000)}`)).status, 414);
});
