/** The web pages over HTTP: who may load them, how long they are kept, and under which policy they run. */

import assert from "node:assert/strict";
import { gunzipSync, gzipSync } from "node:zlib";
import { join } from "node:path";
import { startService, type TestService } from "../../support/service.ts";
import { TempFolder } from "../../support/media.ts";
import { Pages } from "../../../src/flow/files/pages.ts";
import { Refusal } from "../../../src/contract/refusal.ts";

const load = (test: TestService, path: string, headers: Record<string, string> = {}) =>
  fetch(`${test.url}${path}`, { headers });

/** The files that the page names, as paths. */
function filesOf(html: string): string[] {
  return [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, path]) => `/${path}`);
}

Deno.test("a page and its files load without a key, and no other page may run with it or show it", async () => {
  await using test = await startService();
  const page = await load(test, "/docs");
  assert.equal(page.status, 200);
  assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
  const policy = page.headers.get("content-security-policy")!;
  for (
    const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]
  ) {
    assert.ok(policy.split("; ").includes(rule), policy);
  }
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  const files = filesOf(await page.text());
  assert.equal(files.length, 4, files.join());
  for (const path of files) {
    const file = await load(test, path);
    assert.equal(file.status, 200, path);
    assert.equal(file.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.match(
      file.headers.get("content-type")!,
      path.endsWith(".css") ? /^text\/css/ : /^text\/javascript/,
    );
    assert.ok((await file.text()).length > 100, path);
  }
});

Deno.test("a page is sent compressed where that is accepted, and not again where it did not change", async () => {
  await using test = await startService();
  const plain = await load(test, "/docs", { "accept-encoding": "identity" });
  assert.equal(plain.headers.get("content-encoding"), null);
  const html = await plain.text();
  // fetch decodes what it gets, so the compressed bytes are looked at below it
  const [host, port] = test.url.replace("http://", "").split(":");
  using connection = await Deno.connect({ hostname: host!, port: Number(port) });
  await connection.write(
    new TextEncoder().encode(
      `GET /docs HTTP/1.1\r\nhost: ${host}:${port}\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n`,
    ),
  );
  const answer = new Uint8Array(await new Response(connection.readable).arrayBuffer());
  const text = new TextDecoder("latin1").decode(answer);
  const head = text.slice(0, text.indexOf("\r\n\r\n")).toLowerCase();
  assert.match(head, /content-encoding: gzip/);
  const body = answer.subarray(text.indexOf("\r\n\r\n") + 4);
  assert.equal(gunzipSync(body.subarray(body.indexOf(0x1f))).toString(), html);

  const etag = plain.headers.get("etag")!;
  const again = await load(test, "/docs", { "accept-encoding": "identity", "if-none-match": etag });
  assert.deepEqual([again.status, await again.text()], [304, ""]);
  const compressed = await load(test, "/docs", { "if-none-match": etag });
  assert.equal(compressed.status, 200, "the compressed file is another representation");
  await compressed.body!.cancel();
  const changed = await load(test, "/docs", { "accept-encoding": "identity", "if-match": '"other"' });
  assert.deepEqual([changed.status, await changed.text()], [412, "The file has changed"]);
});

Deno.test("no name leads out of the folder of a page", async () => {
  await using test = await startService();
  const names = [
    "other.js",
    "%2e%2e%2fbuilt",
    "..%2f..%2fdeno.json",
    "index",
    "page.css%00.js",
    ".hidden.js",
    "a%2fb.js",
  ];
  for (const name of names) {
    const answer = await load(test, `/docs/${name}`);
    assert.equal(answer.status, 404, name);
    assert.equal((await answer.json()).error.code, "not_found", name);
  }
});

Deno.test("a page that was not built says how to build it", async () => {
  using folder = new TempFolder();
  const pages = new Pages(join(folder.path, "none"));
  await assert.rejects(
    () => pages.read("docs"),
    (error: Refusal) => error.status === 404 && error.message.includes("scripts/build_pages.ts"),
  );
});

Deno.test("a file of a page is in memory once in each form, and anew when it was built anew", async () => {
  using folder = new TempFolder();
  Deno.mkdirSync(join(folder.path, "console"));
  const build = (name: string, text: string) => {
    const built = join(folder.path, "built");
    Deno.writeFileSync(built, gzipSync(text));
    Deno.renameSync(built, join(folder.path, "console", `${name}.gz`));
  };
  build("index.html", "<p>one</p>");
  const pages = new Pages(folder.path);
  const first = await pages.read("console");
  assert.equal(await pages.read("console"), first);
  assert.equal(first.plain, first.plain);
  assert.equal(new TextDecoder().decode(first.plain), "<p>one</p>");
  build("index.html", "<p>two</p>");
  const second = await pages.read("console");
  assert.equal(new TextDecoder().decode(second.plain), "<p>two</p>");
  assert.notEqual(second.version, first.version);
  Deno.removeSync(join(folder.path, "console", "index.html.gz"));
  await assert.rejects(pages.read("console"), /was not built/);
});

Deno.test("a large file of a page arrives whole in both forms, with its length", async () => {
  await using test = await startService();
  const [script] = filesOf(await (await load(test, "/docs")).text()).filter((path) =>
    path.includes("swagger-ui-bundle")
  );
  const plain = await load(test, script!, { "accept-encoding": "identity" });
  const packed = await load(test, script!, { "accept-encoding": "gzip" });
  const [one, other] = await Promise.all([plain.bytes(), packed.bytes()]);
  assert.equal(Number(plain.headers.get("content-length")), one.length);
  assert.ok(one.length > 1_000_000);
  assert.deepEqual(other, one);
});
