import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { BOUNDARY, filePart, form } from "../../support/http/multipart.ts";
import { openFiles, RawConnection, rawRequest } from "../../support/http/raw_http.ts";
import { CLIPS, KEY_A, KEY_B, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const FILM_BYTES = 504_961;
const LAST = FILM_BYTES - 1;

/** The whole answer with its bytes. */
async function get(
  test: TestService,
  path: string,
  { key = KEY_A, method = "GET", headers = {} }: {
    key?: string | null;
    method?: string;
    headers?: Record<string, string>;
  } = {},
) {
  const response = await fetch(`${test.url}${path}`, {
    method,
    headers: { ...(key !== null && { "x-api-key": key }), ...headers },
  });
  return { status: response.status, headers: response.headers, bytes: await response.bytes() };
}

async function uploaded(
  test: TestService,
  { key = KEY_A, name = "clip.mp4", clip = "intel_bottle.mp4" } = {},
) {
  const answer = await test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": key, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: form([filePart(Deno.readFileSync(join(CLIPS, clip)), name)]),
  });
  assert.equal(answer.status, 200, answer.text);
  return basename(answer.json.file_path);
}

Deno.test("an upload comes back byte for byte, with its type, size, version and the headers of every answer", async () => {
  await using test = await startService();
  const film = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
  const name = await uploaded(test);
  const { status, headers, bytes } = await get(test, `/v1/files/${name}`);
  assert.equal(status, 200);
  assert.deepEqual(bytes, film);
  const { mtime } = Deno.statSync(join(test.uploadRoot, name));
  const expected = {
    "content-type": "video/mp4",
    "content-length": String(FILM_BYTES),
    "accept-ranges": "bytes",
    "last-modified": mtime!.toUTCString(),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "content-encoding": null,
  };
  for (const [header, value] of Object.entries(expected)) assert.equal(headers.get(header), value, header);
  assert.match(headers.get("etag")!, /^"[0-9a-f-]+"$/);
  await until("every file is closed", () => openFiles(test.uploadRoot) === 0);
});

Deno.test("the extension decides the content type, in any case", async () => {
  await using test = await startService();
  const types: [name: string, type: string][] = [
    ["a.mp4", "video/mp4"],
    ["a.webm", "video/webm"],
    ["a.mov", "video/quicktime"],
    ["a.avi", "video/x-msvideo"],
    ["B.MP4", "video/mp4"],
    ["B.WebM", "video/webm"],
  ];
  for (const [name, type] of types) {
    Deno.writeTextFileSync(join(test.mediaDir, name), "content");
    const { status, headers } = await get(test, `/v1/files/${name}`, {
      headers: { "accept-encoding": "gzip" },
    });
    assert.deepEqual([status, headers.get("content-type"), headers.get("content-length")], [200, type, "7"]);
    assert.equal(headers.get("content-encoding"), null);
  }
});

Deno.test("names that could lead out, or are no videos, are 400; literal slashes are no route", async () => {
  await using test = await startService();
  Deno.writeTextFileSync(join(test.mediaDir, "..", "secret.mp4"), "secret");
  Deno.mkdirSync(join(test.mediaDir, "folder"));
  Deno.writeTextFileSync(join(test.mediaDir, "folder", "inner.mp4"), "inner");
  const spellings: [name: string, status: number][] = [
    ["..%2fsecret.mp4", 400],
    ["..%2Fsecret.mp4", 400],
    ["%2e%2e%2fsecret.mp4", 400],
    ["%2E%2E/secret.mp4", 404],
    ["%2e%2e%5csecret.mp4", 400],
    ["..%5csecret.mp4", 400],
    ["..\\secret.mp4", 400],
    ["..%255csecret.mp4", 400],
    ["%252e%252e%252fsecret.mp4", 400],
    ["%25252e%25252e%25252fsecret.mp4", 400],
    ["..%c0%afsecret.mp4", 400],
    ["..%e2%88%95secret.mp4", 400],
    ["%ef%bc%8fsecret.mp4", 400],
    ["%2fetc%2fpasswd.mp4", 400],
    ["%2Fsecret.mp4", 400],
    ["folder%2finner.mp4", 400],
    ["folder%5cinner.mp4", 400],
    ["./secret.mp4", 404],
    [".%2fsecret.mp4", 400],
    ["....%2f%2fsecret.mp4", 400],
    ["..;%2fsecret.mp4", 400],
    ["..", 400],
    ["%2e%2e", 400],
    [".", 400],
    ["..mp4", 400],
    ["a..mp4", 400],
    ["a..b.mp4", 400],
    ["secret.mp4%00", 400],
    ["secret%00.mp4", 400],
    ["secret.txt%00.mp4", 400],
    ["secret.mp4%00.txt", 400],
    ["secret%2500.mp4", 400],
    ["secret%0a.mp4", 400],
    ["secret%0d%0ax.mp4", 400],
    ["C:secret.mp4", 400],
    ["c:%5csecret.mp4", 400],
    ["file:%2f%2f%2fetc%2fpasswd.mp4", 400],
    ["secret", 400],
    ["secret.mp3", 400],
    ["secret.m3u8", 400],
    ["secret.mp4.txt", 400],
    ["secret.mp4.", 400],
    ["secret.mp4%20", 400],
    [".mp4", 400],
    ["mp4", 400],
    ["%20", 400],
    ["folder", 400],
    ["secret.mp4", 404],
    ["~secret.mp4", 404],
    ["*.mp4", 404],
    ["%zz.mp4", 404],
    ["%ff.mp4", 404],
    [`${"x".repeat(300)}.mp4`, 404],
    ["folder/inner.mp4", 404],
    ["../files/secret.mp4", 404],
    ["..//secret.mp4", 404],
  ];
  for (const [name, status] of spellings) {
    const answer = await rawRequest(test.url, {
      path: `/v1/files/${name}`,
      headers: { "x-api-key": KEY_A },
    });
    assert.equal(answer.status, status, `${name}: ${answer.text}`);
    assert.ok(!answer.text.includes(test.mediaDir), name);
    if (status !== 400) continue;
    const { error } = JSON.parse(answer.text);
    assert.equal(error.code, "bad_request", name);
    assert.deepEqual(error.details.map(({ field }: { field: string }) => field), ["filename"], name);
  }
});

Deno.test("callers see their own uploads and the operator's files, and no difference between foreign and absent", async () => {
  await using test = await startService();
  const mine = await uploaded(test);
  const theirs = await uploaded(test, { key: KEY_B });
  const write = (folder: string, name: string) => Deno.writeTextFileSync(join(folder, name), name);
  write(test.uploadRoot, "public__old.mp4");
  write(test.uploadRoot, "bare.mp4");
  write(test.mediaDir, "shared.mp4");
  write(test.mediaDir, "bare.mp4");
  Deno.mkdirSync(join(test.mediaDir, "folder.mp4"));
  const seen: [name: string, key: string | null, status: number][] = [
    [mine, KEY_A, 200],
    [mine, KEY_B, 404],
    [theirs, KEY_A, 404],
    [theirs, KEY_B, 200],
    [mine.toUpperCase().replace("MP4", "mp4"), KEY_A, 404],
    [mine.slice(1), KEY_A, 404],
    [mine.split("__")[1]!, KEY_A, 404],
    ["public__old.mp4", KEY_A, 404],
    ["shared.mp4", KEY_A, 200],
    ["shared.mp4", KEY_B, 200],
    ["bare.mp4", KEY_A, 200],
    ["intel_bottle.mp4", KEY_A, 200],
    ["folder.mp4", KEY_A, 404],
    ["absent.mp4", KEY_A, 404],
    [mine, null, 401],
    ["shared.mp4", null, 401],
  ];
  for (const [name, key, status] of seen) {
    for (const method of ["GET", "HEAD"]) {
      const answer = await get(test, `/v1/files/${name}`, { key, method });
      assert.equal(answer.status, status, `${method} ${name} of ${key}`);
      if (method === "GET" && status === 404) {
        const { error } = JSON.parse(new TextDecoder().decode(answer.bytes));
        assert.deepEqual([error.code, error.message], ["not_found", "File not found"]);
      }
    }
  }
  // For callers who may not see the upload, a name in both roots is the operator's file.
  assert.equal((await get(test, "/v1/files/bare.mp4")).bytes.length, "bare.mp4".length);
});

Deno.test("in open mode the public sees its uploads and those without an owner", async () => {
  await using test = await startService({ SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: "" });
  const foreign = `${"0".repeat(64)}__x.mp4`;
  for (const name of ["public__x.mp4", "bare.mp4", foreign, "other__x.mp4"]) {
    Deno.writeTextFileSync(join(test.uploadRoot, name), "x");
  }
  const statuses: [string, number][] = [
    ["public__x.mp4", 200],
    ["bare.mp4", 200],
    [foreign, 404],
    ["other__x.mp4", 404],
  ];
  for (const [name, status] of statuses) {
    assert.equal((await get(test, `/v1/files/${name}`, { key: null })).status, status, name);
  }
});

Deno.test("a link is followed inside the operator's roots and never out of them, nor into the uploads", async () => {
  await using test = await startService();
  const theirs = await uploaded(test, { key: KEY_B });
  const outside = join(test.mediaDir, "..", "outside.mp4");
  Deno.writeTextFileSync(outside, "outside");
  Deno.writeTextFileSync(join(test.mediaDir, "real.mp4"), "real");
  const mine = (await uploaded(test)).replace("clip", "link");
  const links: [place: string, target: string, status: number][] = [
    [join(test.mediaDir, "inside.mp4"), join(test.mediaDir, "real.mp4"), 200],
    [join(test.mediaDir, "out.mp4"), outside, 404],
    [join(test.mediaDir, "relative.mp4"), "../outside.mp4", 404],
    [join(test.mediaDir, "foreign.mp4"), join(test.uploadRoot, theirs), 404],
    [join(test.mediaDir, "dangling.mp4"), "nowhere.mp4", 404],
    [join(test.mediaDir, "loop.mp4"), "loop.mp4", 404],
    [join(test.mediaDir, "device.mp4"), "/dev/zero", 404],
    [join(test.uploadRoot, mine), outside, 404],
  ];
  for (const [place, target, status] of links) {
    Deno.symlinkSync(target, place);
    assert.equal((await get(test, `/v1/files/${basename(place)}`)).status, status, place);
  }
});

Deno.test("one range is answered as one, whatever else is asked is the whole or 416", async () => {
  await using test = await startService();
  const name = await uploaded(test);
  const film = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
  const whole = "whole";
  const none = "416";
  const ranges: [range: string, expected: [number, number] | "whole" | "416"][] = [
    ["bytes=0-0", [0, 0]],
    ["bytes=0-499", [0, 499]],
    ["bytes=1-1", [1, 1]],
    ["bytes=500-999", [500, 999]],
    ["bytes=0-70000", [0, 70_000]],
    ["bytes=100000-300001", [100_000, 300_001]],
    ["bytes=0-", [0, LAST]],
    ["bytes=500000-", [500_000, LAST]],
    [`bytes=${LAST}-`, [LAST, LAST]],
    [`bytes=${LAST}-${LAST}`, [LAST, LAST]],
    [`bytes=0-${LAST}`, [0, LAST]],
    [`bytes=0-${LAST - 1}`, [0, LAST - 1]],
    [`bytes=${LAST - 1}-${FILM_BYTES}`, [LAST - 1, LAST]],
    ["bytes=100-99999999999999999999999", [100, LAST]],
    ["bytes=-1", [LAST, LAST]],
    ["bytes=-500", [FILM_BYTES - 500, LAST]],
    [`bytes=-${FILM_BYTES}`, [0, LAST]],
    ["bytes=-99999999999999999999999", [0, LAST]],
    ["bytes=000-0009", [0, 9]],
    ["Bytes=0-9", [0, 9]],
    [" bytes=0-9 ", [0, 9]],
    ["bytes=-0", none],
    [`bytes=${FILM_BYTES}-`, none],
    [`bytes=${FILM_BYTES}-${FILM_BYTES + 5}`, none],
    ["bytes=99999999999999999999999-", none],
    ["bytes=0-0,5-9", whole],
    ["bytes=0-,0-,0-,0-,0-", whole],
    ["bytes=-1,-1", whole],
    ["bytes=9-0", whole],
    ["bytes=9007199254740993-9007199254740992", whole],
    ["bytes=", whole],
    ["bytes=-", whole],
    ["bytes", whole],
    ["bytes=a-b", whole],
    ["bytes=0x0-0x9", whole],
    ["bytes=1.5-3", whole],
    ["bytes=+1-3", whole],
    ["bytes=--5", whole],
    ["bytes=0-9-12", whole],
    ["bytes 0-9", whole],
    ["frames=0-9", whole],
    ["0-9", whole],
  ];
  for (const [range, expected] of ranges) {
    const { status, headers, bytes } = await get(test, `/v1/files/${name}`, { headers: { range } });
    if (expected === "416") {
      assert.equal(status, 416, range);
      assert.equal(headers.get("content-range"), `bytes */${FILM_BYTES}`, range);
      continue;
    }
    const [first, last] = expected === "whole" ? [0, LAST] : expected;
    assert.equal(status, expected === "whole" ? 200 : 206, range);
    const contentRange = expected === "whole" ? null : `bytes ${first}-${last}/${FILM_BYTES}`;
    assert.equal(headers.get("content-range"), contentRange, range);
    assert.equal(headers.get("content-length"), String(last - first + 1), range);
    assert.deepEqual(bytes, film.slice(first, last + 1), range);
  }
  await until("every file is closed", () => openFiles(test.uploadRoot) === 0);
});

Deno.test("an empty file has no ranges", async () => {
  await using test = await startService();
  Deno.writeTextFileSync(join(test.mediaDir, "empty.mp4"), "");
  const statuses = await Promise.all(
    [undefined, "bytes=0-", "bytes=0-0", "bytes=-1"].map(async (range) => {
      const answer = await get(test, "/v1/files/empty.mp4", {
        headers: range === undefined ? {} : { range },
      });
      return [answer.status, answer.headers.get("content-range")];
    }),
  );
  assert.deepEqual(statuses, [[200, null], [416, "bytes */0"], [416, "bytes */0"], [416, "bytes */0"]]);
});

Deno.test("conditions decide whether the caller's copy is still valid, and a range only continues that copy", async () => {
  await using test = await startService();
  const path = join(test.mediaDir, "x.mp4");
  Deno.writeTextFileSync(path, "0123456789");
  const modified = new Date("2024-05-06T07:08:09.500Z");
  Deno.utimeSync(path, modified, modified);
  const tag = (await get(test, "/v1/files/x.mp4")).headers.get("etag")!;
  const same = "Mon, 06 May 2024 07:08:09 GMT";
  const before = "Mon, 06 May 2024 07:08:08 GMT";
  const after = "Mon, 06 May 2024 07:08:10 GMT";
  const part = { range: "bytes=2-3" };
  const conditions: [headers: Record<string, string>, status: number][] = [
    [{ "if-none-match": tag }, 304],
    [{ "if-none-match": `W/${tag}` }, 304],
    [{ "if-none-match": `"other", ${tag}` }, 304],
    [{ "if-none-match": `"a,b",W/"c",${tag}` }, 304],
    [{ "if-none-match": "*" }, 304],
    [{ "if-none-match": '"other"' }, 200],
    [{ "if-none-match": tag.replaceAll('"', "") }, 200],
    [{ "if-none-match": tag.toUpperCase().replace('"', '"x') }, 200],
    [{ "if-none-match": "" }, 200],
    [{ "if-none-match": tag, ...part }, 304],
    [{ "if-none-match": '"other"', ...part }, 206],
    [{ "if-modified-since": same }, 304],
    [{ "if-modified-since": after }, 304],
    [{ "if-modified-since": before }, 200],
    [{ "if-modified-since": "Monday, 06-May-24 07:08:09 GMT" }, 304],
    [{ "if-modified-since": "Mon May  6 07:08:09 2024" }, 304],
    [{ "if-modified-since": "yesterday" }, 200],
    [{ "if-modified-since": "2024-05-06" }, 200],
    [{ "if-modified-since": "1715000000" }, 200],
    [{ "if-none-match": '"other"', "if-modified-since": same }, 200],
    [{ "if-match": tag }, 200],
    [{ "if-match": "*" }, 200],
    [{ "if-match": `"a", ${tag}` }, 200],
    [{ "if-match": '"other"' }, 412],
    [{ "if-match": `W/${tag}` }, 412],
    [{ "if-unmodified-since": same }, 200],
    [{ "if-unmodified-since": before }, 412],
    [{ "if-unmodified-since": "never" }, 200],
    [{ "if-match": tag, "if-unmodified-since": before }, 200],
    [{ ...part, "if-range": tag }, 206],
    [{ ...part, "if-range": '"other"' }, 200],
    [{ ...part, "if-range": `W/${tag}` }, 200],
    [{ ...part, "if-range": tag.replaceAll('"', "") }, 200],
    [{ ...part, "if-range": same }, 206],
    [{ ...part, "if-range": before }, 200],
    [{ ...part, "if-range": after }, 200],
    [{ ...part, "if-range": "soon" }, 200],
    [{ ...part, "if-range": "" }, 200],
    [{ range: "bytes=50-", "if-range": '"other"' }, 200],
    [{ range: "bytes=50-" }, 416],
    [{ range: "bytes=50-", "if-none-match": tag }, 304],
    [{ "if-range": tag }, 200],
  ];
  for (const [headers, status] of conditions) {
    const sent = JSON.stringify(headers);
    const answer = await get(test, "/v1/files/x.mp4", { headers });
    assert.equal(answer.status, status, sent);
    if (status === 304) {
      assert.deepEqual([answer.headers.get("etag"), answer.headers.get("last-modified")], [tag, same], sent);
      assert.equal(answer.bytes.length, 0);
    }
    if (status === 206) assert.equal(new TextDecoder().decode(answer.bytes), "23", sent);
    if (status === 200) assert.equal(answer.bytes.length, 10, sent);
  }
  await until("every file is closed", () => openFiles(test.mediaDir) === 0);
});

Deno.test("a changed file has another version", async () => {
  await using test = await startService();
  const versions = new Set<string>();
  for (const clip of ["intel_bottle.mp4", "own_screenrec.mp4", "intel_bottle.mp4"]) {
    const name = await uploaded(test, { clip });
    versions.add((await get(test, `/v1/files/${name}`, { method: "HEAD" })).headers.get("etag")!);
  }
  assert.equal(versions.size, 3);
});

Deno.test("HEAD has the headers of GET, except for ranges, and leaves no file open", async () => {
  await using test = await startService();
  const name = await uploaded(test);
  const got = await get(test, `/v1/files/${name}`);
  for (
    const headers of [{}, { range: "bytes=0-9" }, { range: `bytes=${FILM_BYTES}-` }] as Record<
      string,
      string
    >[]
  ) {
    const head = await get(test, `/v1/files/${name}`, { method: "HEAD", headers });
    assert.equal(head.status, 200);
    assert.equal(head.bytes.length, 0);
    for (const header of ["content-type", "content-length", "etag", "last-modified", "accept-ranges"]) {
      assert.equal(head.headers.get(header), got.headers.get(header), header);
    }
  }
  assert.equal(
    (await get(test, `/v1/files/${name}`, { method: "HEAD", headers: { "if-none-match": "*" } })).status,
    304,
  );
  assert.equal((await get(test, "/v1/files/absent.mp4", { method: "HEAD" })).status, 404);
  await until("every file is closed", () => openFiles(test.uploadRoot) === 0);
});

Deno.test("a caller that goes away in the middle closes the file", async () => {
  await using test = await startService();
  const path = join(test.mediaDir, "large.mp4");
  {
    using file = Deno.openSync(path, { write: true, create: true });
    file.truncateSync(256 << 20); // far more than socket buffers hold
  }
  for (const range of ["", "range: bytes=1-\r\n", "range: bytes=1-260000000\r\n"]) {
    const connection = await RawConnection.open(test.url);
    await connection.send(
      `GET /v1/files/large.mp4 HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY_A}\r\n${range}\r\n`,
    );
    await connection.receive();
    assert.ok(openFiles(path) > 0, range);
    connection[Symbol.dispose]();
    await until(`the file is closed ${range}`, () => openFiles(path) === 0);
  }
});

Deno.test("a download goes on with the version it began with when the file is replaced", async () => {
  await using test = await startService();
  const path = join(test.mediaDir, "film.mp4");
  const first = Deno.readFileSync(join(CLIPS, "bbb480.mp4"));
  const second = Deno.readFileSync(join(CLIPS, "own_screenrec.mp4"));
  Deno.writeFileSync(path, first);
  const response = await fetch(`${test.url}/v1/files/film.mp4`, { headers: { "x-api-key": KEY_A } });
  Deno.writeFileSync(`${path}.new`, second);
  Deno.renameSync(`${path}.new`, path);
  assert.deepEqual(await response.bytes(), first);
  assert.deepEqual((await get(test, "/v1/files/film.mp4")).bytes, second);
});

Deno.test("an upload is deleted by its owner alone, and who is reading it reads on", async () => {
  await using test = await startService({ SERVICE_STORAGE_QUOTA_BYTES: String(2 * FILM_BYTES + 100_000) });
  const mine = await uploaded(test);
  const remove = (name: string, key = KEY_A) =>
    test.call("DELETE", `/v1/files/${encodeURIComponent(name)}`, undefined, key);
  Deno.writeTextFileSync(join(test.mediaDir, "shared.mp4"), "shared");
  Deno.symlinkSync(join(test.mediaDir, "shared.mp4"), join(test.uploadRoot, mine.replace("clip", "link")));
  for (
    const [name, key, status] of [
      [mine, KEY_B, 404],
      ["shared.mp4", KEY_A, 404],
      [mine.replace("clip", "link"), KEY_A, 404],
      [mine.replace("clip", "absent"), KEY_A, 404],
      ["../shared.mp4", KEY_A, 400],
      [`${mine}.txt`, KEY_A, 400],
    ] as const
  ) {
    assert.equal((await remove(name, key)).status, status, name);
  }
  assert.ok(Deno.statSync(join(test.mediaDir, "shared.mp4")).isFile);
  const path = `/v1/files/${mine}`;
  const reading = await fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
  const removed = await remove(mine);
  assert.deepEqual([removed.status, removed.json.filename, removed.json.deleted], [200, mine, true]);
  assert.equal((await reading.bytes()).length, FILM_BYTES);
  assert.equal((await get(test, path)).status, 404);
  assert.equal((await remove(mine)).status, 404);
  // Its bytes count for the quota no more: three uploads would not fit.
  await uploaded(test, { name: "a.mp4" });
  await remove(await uploaded(test, { name: "Ünder line.mp4" }));
  await uploaded(test, { name: "b.mp4" });
});
