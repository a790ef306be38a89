import assert from "node:assert/strict";
import { KEY_A, KEY_B, startService } from "../../support/service.ts";

Deno.test("every route but health needs a key, and an unknown route without one is 401 too", async () => {
  await using test = await startService();
  assert.deepEqual((await test.call("GET", "/v1/health", undefined, null)).json, { status: "ok" });
  for (const path of ["/v1/runs", "/v1/metrics", "/v1/nothing", "/", "/schemas/marker.schema.json"]) {
    for (const key of [null, "", "wrong", `${KEY_A} `, KEY_A.slice(1), `${KEY_A}${KEY_A}`]) {
      const { status, json } = await test.call("GET", path, undefined, key === `${KEY_A} ` ? "x" : key);
      assert.equal(status, 401, `${path} with ${key}`);
      assert.equal(json.error.code, "unauthorized");
      assert.deepEqual(json.error.details, []);
    }
  }
  assert.equal((await test.call("GET", "/v1/runs")).status, 200);
  assert.equal((await test.call("GET", "/")).status, 404);
  const browser = await fetch(`${test.url}/`, {
    headers: { accept: "text/html,*/*;q=0.8" },
    redirect: "manual",
  });
  assert.deepEqual([browser.status, browser.headers.get("location")], [302, "console/"]);
  await browser.body?.cancel();
});

Deno.test("a key may come as a bearer token, and one that contradicts x-api-key is none", async () => {
  await using test = await startService();
  const check = async (headers: Record<string, string>, status: number) =>
    assert.equal((await test.send("/v1/runs", { headers })).status, status, JSON.stringify(headers));
  await check({ authorization: `Bearer ${KEY_A}` }, 200);
  await check({ authorization: `bearer  ${KEY_A}` }, 200);
  await check({ authorization: `Bearer ${KEY_A}`, "x-api-key": KEY_A }, 200);
  await check({ authorization: `Bearer ${KEY_A}`, "x-api-key": KEY_B }, 401);
  await check({ authorization: "Bearer wrong", "x-api-key": KEY_A }, 401);
  await check({ authorization: `Bearer ${KEY_A}`, "x-api-key": "wrong" }, 401);
  await check({ authorization: `Bearer ${KEY_A}`, "x-api-key": "" }, 401);
  await check({ authorization: "Bearer wrong" }, 401);
  await check({ authorization: "Bearer" }, 401);
  await check({ authorization: `Basic ${KEY_A}` }, 401);
  await check({ authorization: KEY_A }, 401);
  await check({ authorization: "Basic dXNlcjpwYXNz", "x-api-key": KEY_A }, 200);
  const mine = await test.send("/v1/runs", {
    method: "POST",
    headers: { authorization: `Bearer ${KEY_B}`, "content-type": "application/json" },
    body: "{}",
  });
  assert.equal((await test.call("GET", `/v1/runs/${mine.json.run_id}`, undefined, KEY_B)).status, 200);
  assert.equal((await test.call("GET", `/v1/runs/${mine.json.run_id}`, undefined, KEY_A)).status, 404);
});

Deno.test("in open mode every caller is public, whatever key comes along", async () => {
  await using test = await startService({ SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: "" });
  const created = await test.call("POST", "/v1/runs", {}, "any key");
  const { json } = await test.call("GET", `/v1/runs/${created.json.run_id}/events`, undefined, null);
  assert.equal(json.events[0].payload.principal_key, "public");
});

Deno.test("metrics need a key by default, and are 503 when none is configured", async () => {
  const open = { SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: "" };
  {
    await using test = await startService(open);
    const { status, json } = await test.call("GET", "/v1/metrics", undefined, null);
    assert.equal(status, 503);
    assert.equal(json.error.code, "metrics_unavailable");
  }
  {
    await using test = await startService({ ...open, SERVICE_METRICS_REQUIRE_API_KEY: "false" });
    assert.equal((await test.call("GET", "/v1/metrics", undefined, null)).status, 200);
  }
  {
    await using test = await startService({ SERVICE_METRICS_REQUIRE_API_KEY: "false" });
    assert.equal((await test.call("GET", "/v1/metrics", undefined, null)).status, 401);
    const { text } = await test.call("GET", "/v1/metrics");
    assert.match(text, /^# HELP service_runs_created_total /m);
    assert.match(text, /^service_timeline_events_total 0$/m);
  }
});

Deno.test("a required x-tenant-id that is missing is 401", async () => {
  await using test = await startService({ SERVICE_REQUIRE_TENANT_ID: "true" });
  assert.equal((await test.call("GET", "/v1/runs")).status, 401);
  const named = await test.send("/v1/runs", { headers: { "x-api-key": KEY_A, "x-tenant-id": "acme" } });
  assert.equal(named.status, 200);
});

Deno.test("what no handler sees is turned away in plain text", async () => {
  await using test = await startService();
  const json = { "x-api-key": KEY_A, "content-type": "application/json" };
  const check = async (path: string, init: RequestInit, status: number, allow?: string) => {
    const answer = await test.send(path, init);
    assert.equal(answer.status, status, `${init.method} ${path}`);
    assert.equal(answer.json, undefined, "not the envelope");
    assert.equal(answer.headers.get("allow"), allow ?? null);
  };
  const key = { "x-api-key": KEY_A };
  const big = `{"mode":"${"x".repeat(4 * 2 ** 20)}"}`;
  await check("/v1/nothing", { headers: key }, 404);
  await check("/v1/runs/", { headers: key }, 404);
  await check("/v1/runs", { method: "PUT", headers: json, body: "{}" }, 405, "GET, HEAD, POST");
  await check("/v1/health", { method: "DELETE", headers: key }, 405, "GET, HEAD");
  await check("/v1/runs", { method: "POST", headers: json, body: "{" }, 400);
  await check("/v1/query", { method: "POST", headers: json, body: "" }, 400);
  await check("/v1/runs", { method: "POST", headers: json, body: new Uint8Array([0x22, 0xff, 0x22]) }, 400);
  await check("/v1/runs", { method: "POST", headers: key, body: "{}" }, 415);
  await check(
    "/v1/runs",
    { method: "POST", headers: { ...key, "content-type": "text/json" }, body: "{}" },
    415,
  );
  await check("/v1/runs", { method: "POST", headers: json, body: big }, 413);
  const streamed = new Blob([big]).stream();
  await check("/v1/runs", { method: "POST", headers: json, body: streamed }, 413);
});

Deno.test("a JSON media type may carry parameters or a suffix", async () => {
  await using test = await startService();
  for (
    const type of ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]
  ) {
    const answer = await test.send("/v1/runs", {
      method: "POST",
      headers: { "x-api-key": KEY_A, "content-type": type },
      body: "{}",
    });
    assert.equal(answer.status, 200, type);
    await test.call("POST", `/v1/runs/${answer.json.run_id}/stop`);
  }
});

Deno.test("every answer carries the security headers, and a small one is sent at once: its head and body have at most 512 bytes", async () => {
  await using test = await startService();
  for (const path of ["/v1/health", "/v1/runs", "/v1/nothing", "/v1/metrics", "/v1/runs/x"]) {
    const { headers } = await test.call("GET", path);
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
    assert.equal(headers.get("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(headers.get("strict-transport-security"), null);
  }
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  for (const path of ["/v1/health", `/v1/runs/${run_id}/state`]) {
    const { headers, text } = await test.call("GET", path);
    const head = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 19);
    assert.ok(head + text.length <= 512, `${path}: ${head} and ${text.length} bytes`);
  }
});

Deno.test("browsers are told to use TLS alone only where the request came over TLS", async () => {
  await using test = await startService();
  const hstsOf = async (path: string, headers: Record<string, string>) =>
    (await test.send(path, { headers })).headers.get("strict-transport-security");
  for (const path of ["/v1/health", "/v1/runs"]) {
    assert.equal(await hstsOf(path, { "x-forwarded-proto": "https" }), "max-age=63072000; includeSubDomains");
    assert.equal(await hstsOf(path, { "x-forwarded-proto": "http" }), null);
    assert.equal(await hstsOf(path, {}), null);
  }
});

Deno.test("HEAD answers like GET without a body", async () => {
  await using test = await startService();
  const { run_id } = (await test.call("POST", "/v1/runs", {})).json;
  const headersOf = async (method: string, path: string, acceptEncoding: string) => {
    const { status, headers, text } = await test.send(path, {
      method,
      headers: { "x-api-key": KEY_A, "accept-encoding": acceptEncoding },
    });
    if (method === "HEAD") assert.equal(text, "");
    // The date and the request id may differ between two requests.
    const compared = ["content-type", "content-length", "content-encoding", "vary", "allow"];
    return [status, ...compared.map((name) => headers.get(name))];
  };
  for (
    const path of [
      "/v1/health",
      "/v1/metrics",
      `/v1/runs/${run_id}`,
      `/v1/runs/${run_id}/events`,
      "/v1/x",
      "/v1/runs/x",
      "/v1/search",
    ]
  ) {
    for (const encoding of ["identity", "gzip"]) {
      assert.deepEqual(await headersOf("HEAD", path, encoding), await headersOf("GET", path, encoding), path);
    }
  }
});

Deno.test("a key is compared whole, whatever stands behind it", async () => {
  const [long, short] = ["k".repeat(32), "short"];
  await using test = await startService({ SERVICE_API_KEYS: `${short},${long}` });
  const check = async (key: string, status: number) => {
    const { hostname, port } = new URL(test.url);
    using connection = await Deno.connect({ hostname, port: Number(port) });
    const text =
      `GET /v1/runs HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`;
    await connection.write(Uint8Array.from(text, (character) => character.charCodeAt(0)));
    const answer = await new Response(connection.readable).text();
    assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), key);
  };
  await check(long, 200);
  await check(short, 200);
  for (
    const key of [`${long}\u00e9`, `${long}\u00e9\u00e9`, `${long}x`, `${short}\u00e9`, `${long}k\u00e9`]
  ) {
    await check(key, 401);
  }
});

Deno.test("the key check sees the path that the router sees", async () => {
  await using test = await startService({ SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: KEY_A });
  for (const path of ["/v1/metrics", "/v1/metric%73", "/%76%31/metrics", "/v1/%6detrics?x=1"]) {
    assert.equal((await test.call("GET", path, undefined, null)).status, 401, path);
    assert.equal((await test.call("GET", path)).status, 200, path);
  }
});
