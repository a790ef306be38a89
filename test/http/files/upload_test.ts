import assert from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import { ReceivedBodies } from "../../../src/http/requests/received_body.ts";
import { firstFilePart } from "../../../src/http/requests/upload_form.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { BOUNDARY, filePart, form, joined, type Part } from "../../support/http/multipart.ts";
import { openFiles, RawConnection } from "../../support/http/raw_http.ts";
import {
  type Answer,
  CLIPS,
  KEY_A,
  KEY_B,
  newRun,
  startService,
  type TestService,
} from "../../support/service.ts";
import { ManualClock, settled } from "../../support/manual_clock.ts";
import { sha256, writtenName } from "../../support/principals.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { until } from "../../support/until.ts";

const FILM = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** Files of the principal of KEY_A are stored under this prefix. See docs/api/files.md#uploads-and-files. */
function prefixIn(test: TestService): string {
  return `${sha256(writtenName(test.dataDir, KEY_A))}__`;
}

function upload(
  test: TestService,
  body: BodyInit,
  { contentType = FORM_TYPE, key = KEY_A }: { contentType?: string; key?: string } = {},
): Promise<Answer> {
  return test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": key, ...(contentType !== "" && { "content-type": contentType }) },
    body,
  });
}

/** Files that are stored, but the records of names. */
function stored(test: TestService): string[] {
  return [...Deno.readDirSync(test.uploadRoot)].map(({ name }) => name).filter((name) => name !== ".names")
    .sort();
}

Deno.test("an uploaded film is stored under its owner's prefix, is a source, and is there byte for byte", async () => {
  await using test = await startService();
  const data = new FormData();
  data.append("note", "comes first");
  data.append("file", new File([FILM], "My Film (1).MP4", { type: "application/x-anything" }));
  data.append("file", new File(["second"], "second.mp4"));
  const answer = await test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": KEY_A },
    body: data,
  });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers.get("content-type"), "application/json");
  const path = join(test.uploadRoot, `${prefixIn(test)}My Film _1_.MP4`);
  assert.deepEqual(answer.json, { file_path: path, name: "My Film (1).MP4" });
  assert.deepEqual(Deno.readFileSync(path), FILM);
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  assert.deepEqual(stored(test), [basename(path)]);

  const ingest = async (key: string) =>
    (await test.call("POST", `/v1/runs/${await newRun(test, key)}/ingest`, {
      source_uri: path,
      max_frames: 2,
    }, key)).status;
  assert.equal(await ingest(KEY_A), 200);
  assert.equal(await ingest(KEY_B), 422);
});

Deno.test("an upload never replaces another: equal bytes are one file, equal names get addresses of their own", async () => {
  await using test = await startService();
  const second = Deno.readFileSync(join(CLIPS, "own_screenrec.mp4"));
  const send = async (film: Uint8Array<ArrayBuffer>, name: string, key = KEY_A) => {
    const answer = await upload(test, form([filePart(film, name)]), { key });
    assert.equal(answer.status, 200, answer.text);
    return answer.json as { file_path: string; name: string };
  };
  const first = await send(FILM, "C0001.mp4");
  const other = await send(second, "C0001.mp4");
  const foreign = await send(FILM, "C0001.mp4", KEY_B);
  assert.notEqual(other.file_path, first.file_path);
  assert.match(other.file_path, /__C0001-[0-9a-f]{16}\.mp4$/);
  assert.deepEqual([first.name, other.name, foreign.name], ["C0001.mp4", "C0001.mp4", "C0001.mp4"]);
  assert.deepEqual(Deno.readFileSync(first.file_path), FILM);
  assert.deepEqual(Deno.readFileSync(other.file_path), second);
  assert.equal((await send(FILM, "C0001.mp4")).file_path, first.file_path);
  assert.equal((await send(second, "C0001.mp4")).file_path, other.file_path);
  assert.equal(stored(test).length, 3);

  const renamed = await send(FILM, "Tag – 1 (a).mp4");
  assert.equal(renamed.name, "Tag – 1 (a).mp4");
  assert.equal(Deno.statSync(renamed.file_path).ino, Deno.statSync(first.file_path).ino);
  assert.notEqual(Deno.statSync(foreign.file_path).ino, Deno.statSync(first.file_path).ino);
  const remove = (path: string) => test.call("DELETE", `/v1/files/${encodeURIComponent(basename(path))}`);
  assert.equal((await remove(first.file_path)).status, 200);
  assert.deepEqual(Deno.readFileSync(renamed.file_path), FILM);
});

Deno.test("two uploads of one name at the same time are both kept", async () => {
  await using test = await startService();
  const second = Deno.readFileSync(join(CLIPS, "own_screenrec.mp4"));
  const answers = await Promise.all([FILM, second].map((film) => upload(test, form([filePart(film)]))));
  const kept = answers.map(({ json }) => Deno.readFileSync(json.file_path).length).sort((a, b) => a - b);
  assert.deepEqual(kept, [FILM.length, second.length].sort((a, b) => a - b));
});

Deno.test("a run of an upload has the name that the file had, also after a restart and without the file", async () => {
  const name = "Interview – Tag 1 (23.976) ü.mp4";
  await using test = await startService();
  const { json } = await upload(test, form([filePart(FILM, name)]));
  const runId = await newRun(test);
  const ingest = { source_uri: json.file_path, max_frames: 2 };
  assert.equal((await test.call("POST", `/v1/runs/${runId}/ingest`, ingest)).status, 200);
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.source_name, name);
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  const received = events.find(({ kind }: { kind: string }) => kind === "ingest_received");
  assert.equal(received.payload.source_name, name);
  const path = `/v1/files/${encodeURIComponent(basename(json.file_path))}`;
  assert.equal((await test.call("DELETE", path)).status, 200);
  await test.restart();
  assert.equal((await test.call("GET", `/v1/runs/${runId}`)).json.source_name, name);
});

Deno.test("in open mode uploads belong to the public", async () => {
  await using test = await startService({ SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: "" });
  const answer = await upload(test, form([filePart(FILM)]));
  assert.equal(basename(answer.json.file_path), "public__clip.mp4");
});

Deno.test("names keep letters and digits of every script, space and .-_, and must be those of a video", async () => {
  await using test = await startService();
  const long = "x".repeat(128 - ".mp4".length);
  const names: [given: string, kept: string | null][] = [
    ["clip.mp4", "clip.mp4"],
    ["CLIP.MP4", "CLIP.MP4"],
    ["a-b_c.1.mov", "a-b_c.1.mov"],
    ["x.webm", "x.webm"],
    ["x.avi", "x.avi"],
    ["two words.mp4", "two words.mp4"],
    ["../../etc/passwd.mp4", "._._etc_passwd.mp4"],
    ["..\\..\\boot.mp4", "._._boot.mp4"],
    ["C:\\fakepath\\film.mp4", "C__fakepath_film.mp4"],
    ["a..mp4", "a.mp4"],
    ["caf\u00e9.mp4", "caf\u00e9.mp4"],
    ["cafe\u0301.mp4", "caf\u00e9.mp4"],
    ["\u52d5\u753b.mp4", "\u52d5\u753b.mp4"],
    ["\u0939\u093f\u0928\u094d\u0926\u0940 \u0967.mp4", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0967.mp4"],
    ["\u{1f3ac}\u200b\u202e.mp4", "___.mp4"],
    ["a\uff0fb.mp4", "a_b.mp4"],
    ["x\0y.mp4", "x_y.mp4"],
    ["a;b.mp4", "a_b.mp4"],
    ["%2e%2e%2fx.mp4", "_2e_2e_2fx.mp4"],
    ["%E5%8B%95%E7%94%BB%20%281%29.mp4", "\u52d5\u753b _1_.mp4"],
    ["My%20film%20(2).mp4", "My film _2_.mp4"],
    ["..%2F..%2Fetc%2Fpasswd.mp4", "._._etc_passwd.mp4"],
    ["x%00y.mp4", "x_y.mp4"],
    ["50%25 of%20it.mp4", "50_25 of_20it.mp4"],
    ["100%.mp4", "100_.mp4"],
    ["%FF.mp4", "_FF.mp4"],
    [`${"\u52d5".repeat(41)}.mp4`, `${"\u52d5".repeat(41)}.mp4`],
    [`${"\u52d5".repeat(42)}.mp4`, null],
    ["x.mp4/", null],
    [`${long}.mp4`, `${long}.mp4`],
    [`${long}x.mp4`, null],
    ["", null],
    ["clip", null],
    ["clip.mp3", null],
    ["clip.mp4.txt", null],
    ["clip.m3u8", null],
    ["clip.mp4.", null],
    [".mp4", null],
    ["..mp4", null],
    ["mp4", null],
    ["///", null],
    ["clip.mp44", null],
  ];
  for (const [given, kept] of names) {
    const answer = await upload(test, form([filePart(FILM, given)]));
    if (kept === null) {
      assert.equal(answer.status, 422, given);
      assert.deepEqual(answer.json.error.code, "validation_error");
      assert.deepEqual(answer.json.error.details.map(({ field }: { field: string }) => field), ["file"]);
    } else {
      assert.equal(answer.status, 200, `${given}: ${answer.text}`);
      assert.equal(basename(answer.json.file_path), prefixIn(test) + kept);
      assert.equal(dirname(answer.json.file_path), test.uploadRoot);
      const name = encodeURIComponent((prefixIn(test) + kept).normalize("NFD"));
      const served = await test.send(`/v1/files/${name}`, { headers: { "x-api-key": KEY_A } });
      assert.equal(served.status, 200, given);
    }
  }
});

Deno.test("what is no media container is refused, and nothing of it is left", async () => {
  await using test = await startService();
  const sound = new Deno.Command("ffmpeg", {
    args: [
      "-v",
      "error",
      "-f",
      "lavfi",
      "-i",
      "sine=d=1",
      "-f",
      "mp4",
      "-movflags",
      "frag_keyframe+empty_moov",
      "-",
    ],
  }).outputSync().stdout;
  const contents: [what: string, content: string | Uint8Array, status: number][] = [
    ["sound without pictures", sound, 200],
    ["nothing", "", 422],
    ["a text", "Hello, this is no film.\n".repeat(100), 422],
    ["an M3U playlist", "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:9,\n/etc/passwd\n", 422],
    ["a playlist behind white space", "\r\n \t#extm3u\nfile:///etc/passwd\n", 422],
    ["a concat list", "ffconcat version 1.0\nfile /etc/passwd\n", 422],
    ["a concat list without a head", "file '/etc/passwd'\n", 422],
    ["a manifest", '<?xml version="1.0"?><MPD/>', 422],
    ["a session description", "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\n", 422],
    ["zeroes", new Uint8Array(100_000), 422],
    ["the head of a film", FILM.subarray(0, 2000), 422],
    ["a page", "<!doctype html><title>x</title>", 422],
    ["a program", "\x7fELF" + "\0".repeat(500), 422],
  ];
  for (const [what, content, status] of contents) {
    const answer = await upload(test, form([filePart(content, "it.mp4")]));
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    if (status === 422) assert.equal(answer.json.error.details[0].field, "file", what);
    assert.ok(!answer.text.includes("source_uri"), answer.text);
    const left = stored(test);
    assert.deepEqual(left, status === 200 ? [`${prefixIn(test)}it.mp4`] : [], what);
    for (const name of left) Deno.removeSync(join(test.uploadRoot, name));
  }
});

Deno.test("a refused upload leaves the file that had its name as it was", async () => {
  await using test = await startService();
  const { json } = await upload(test, form([filePart(FILM)]));
  assert.equal((await upload(test, form([filePart("no film")]))).status, 422);
  assert.deepEqual(Deno.readFileSync(json.file_path), FILM);
});

Deno.test("forms of every shape find the first part named file, or say what is wrong", async () => {
  await using test = await startService();
  const file = filePart(FILM);
  const disposed = (disposition: string): Part => ({ disposition, body: FILM });
  const huge = "x".repeat(100_000);
  const forms: [what: string, body: Uint8Array<ArrayBuffer>, status: number, type?: string][] = [
    ["a field first", form([{ disposition: 'form-data; name="a"', body: "1" }, file]), 200],
    ["a field after", form([file, { disposition: 'form-data; name="a"', body: "1" }]), 200],
    [
      "another file first",
      form([{ ...file, disposition: 'form-data; name="b"; filename="b.mp4"' }, file]),
      200,
    ],
    ["the first of two", form([file, filePart("no film")]), 200],
    ["the first of two, which is none", form([filePart("no film"), file]), 422],
    ["a large field first", form([{ disposition: 'form-data; name="a"', body: huge.repeat(20) }, file]), 200],
    [
      "a hundred fields",
      form([...Array(100).fill({ disposition: 'form-data; name="a"', body: "1" }), file]),
      200,
    ],
    ["an unquoted name", form([disposed("form-data; name=file; filename=a.mp4")]), 200],
    ["names in capitals", form([disposed('FORM-DATA; NAME="file"; FILENAME="a.mp4"')]), 200],
    ["the filename first", form([disposed('form-data; filename="a.mp4"; name="file"')]), 200],
    ["an encoded filename", form([disposed("form-data; name=\"file\"; filename*=UTF-8''a%20b.mp4")]), 200],
    ["an escaped quote", form([disposed('form-data; name="file"; filename="a\\"b.mp4"')]), 200],
    ["a quoted semicolon", form([disposed('form-data; name="file"; filename="a;name=b.mp4"')]), 200],
    ["another case of file", form([disposed('form-data; name="File"; filename="a.mp4"')]), 422],
    ["no filename", form([disposed('form-data; name="file"')]), 422],
    ["no name", form([disposed('form-data; filename="a.mp4"')]), 422],
    ["an attachment", form([disposed('attachment; name="file"; filename="a.mp4"')]), 422],
    ["no disposition", form([{ body: FILM }]), 422],
    ["an empty name", form([disposed('form-data; name=""; filename="a.mp4"')]), 422],
    ["no parts", form([]), 422],
    ["fields only", form([{ disposition: 'form-data; name="a"', body: "file" }]), 422],
    ["an empty file", form([filePart("")]), 422],
    ["more headers than allowed", form([{ ...file, headers: [`X-Huge: ${huge}`] }]), 200],
    [
      "too long a disposition",
      form([disposed(`form-data; x="${huge}"; name="file"; filename="a.mp4"`)]),
      422,
    ],
    ["a preamble", joined(["to be ignored\r\n", form([file])]), 200],
    ["an epilogue", joined([form([file]), "to be ignored\r\n", FILM]), 200],
    [
      "a boundary with spaces after",
      joined([
        `--${BOUNDARY}\r\nContent-Disposition: ${file.disposition}\r\n\r\n`,
        FILM,
        `\r\n--${BOUNDARY}--`,
      ]),
      200,
    ],
    [
      "a form in the form",
      form([{
        disposition: 'form-data; name="a"',
        headers: ["Content-Type: multipart/mixed; boundary=inner"],
        body: form([filePart("no film")], "inner"),
      }, file]),
      200,
    ],
    ["a quoted boundary", form([file]), 200, `multipart/form-data; boundary="${BOUNDARY}"`],
    ["a parameter before", form([file]), 200, `Multipart/Form-Data; charset=utf-8; boundary=${BOUNDARY}`],
    [
      "too many parts",
      form([...Array(1100).fill({ disposition: 'form-data; name="a"', body: "" }), file]),
      400,
    ],
    ["too many parts after", form([file, ...Array(1100).fill({ body: "" })]), 400],
    ["a wrong boundary", form([file], "another"), 400],
    ["no closing delimiter", form([file]).slice(0, -(BOUNDARY.length + 8)), 400],
    ["half a closing delimiter", form([file]).slice(0, -3), 400],
    ["cut in the file", form([file]).slice(0, 100_000), 400],
    ["cut in the headers", form([file]).slice(0, 60), 400],
    ["cut in a field", form([{ disposition: 'form-data; name="a"', body: huge }]).slice(0, 5000), 400],
    ["an empty body", new Uint8Array(0), 400],
    [
      "line breaks of the wrong kind",
      joined([new TextDecoder("latin1").decode(form([filePart("a")])).replaceAll("\r\n", "\n")]),
      400,
    ],
    ["no boundary", form([file]), 400, "multipart/form-data"],
    ["an empty boundary", form([file]), 400, "multipart/form-data; boundary="],
    ["an empty quoted boundary", form([file]), 400, 'multipart/form-data; boundary=""'],
    ["an endless boundary", form([file]), 400, `multipart/form-data; boundary=${"b".repeat(71)}`],
    ["JSON", joined(["{}"]), 415, "application/json"],
    ["a form of another kind", joined(["file=a.mp4"]), 415, "application/x-www-form-urlencoded"],
    ["mixed parts", form([file]), 415, `multipart/mixed; boundary=${BOUNDARY}`],
    ["a type that begins alike", form([file]), 415, `multipart/form-database; boundary=${BOUNDARY}`],
    ["no type", form([file]), 415, ""],
    ["the film itself", FILM, 415, "video/mp4"],
  ];
  for (const [what, body, status, contentType] of forms) {
    const answer = await upload(test, body, contentType === undefined ? {} : { contentType });
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    if (status === 422) assert.equal(answer.json.error.details[0].field, "file", what);
    else if (status !== 200) {
      assert.equal(answer.headers.get("content-type"), "text/plain; charset=utf-8", what);
    }
    const left = stored(test);
    assert.equal(left.length, status === 200 ? 1 : 0, `${what}: ${left}`);
    for (const name of left) {
      assert.deepEqual(Deno.readFileSync(join(test.uploadRoot, name)), FILM, what);
      Deno.removeSync(join(test.uploadRoot, name));
    }
  }
});

Deno.test("however a form is cut into pieces, the same file comes out", async () => {
  const random = seededRandom(7);
  // Many texts that are almost a delimiter.
  const nasty = joined(
    Array.from({ length: 400 }, (_, index) =>
      [
        `\r\n--${BOUNDARY.slice(0, index % BOUNDARY.length)}`,
        "\r",
        "\n",
        "-",
        "--",
        "\r\n",
        `\r\n--${BOUNDARY}`.slice(0, -1),
      ][index % 7]!),
  );
  const body = form([
    { disposition: 'form-data; name="a"', body: nasty },
    filePart(nasty),
    filePart("second"),
  ]);
  for (let round = 0; round < 60; round++) {
    const sizeMax = [64, 100, 128, 333, 700, 5_000, 20_000][round % 7]!;
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < body.length;) {
      const size = 1 + Math.floor(random() * sizeMax);
      pieces.push(body.slice(at, at + size));
      at += size;
    }
    using part = await firstFilePart(callOf(ReadableStream.from(pieces)), "file");
    const got: Uint8Array[] = [];
    // slice() of a Buffer would not copy
    for await (const bytes of part!.content) got.push(new Uint8Array(bytes));
    assert.deepEqual(joined(got), nasty, `pieces of up to ${sizeMax}`);
  }
});

Deno.test("a form arrives whole in chunks of which several have the same memory, as over HTTP/3", async () => {
  const body = form([filePart(FILM)]);
  function* chunks(): Iterable<Uint8Array> {
    for (let at = 0; at < body.length; at += 10_000) {
      const memory = body.slice(at, at + 10_000);
      for (let part = 0; part < memory.length; part += 1500) yield memory.subarray(part, part + 1500);
    }
  }
  using part = await firstFilePart(callOf(ReadableStream.from(chunks())), "file");
  const got: Uint8Array[] = [];
  for await (const bytes of part!.content) got.push(new Uint8Array(bytes));
  assert.deepEqual(joined(got), FILM);
});

/** A call with this form, on a clock that stands still unless the test moves it. */
function callOf(body: ReadableStream<Uint8Array>, world = new ManualClock()) {
  const headers = { "content-type": FORM_TYPE };
  return {
    request: { raw: new Request("http://localhost/v1/upload", { method: "POST", headers, body }) },
    caller: { principalKey: "a" },
    use: { bodies: new ReceivedBodies(world) },
  };
}

Deno.test("a form that pauses too long, or takes too long, is 408 and not read on", async () => {
  const head = form([filePart("abc")]).slice(0, 150);
  for (const [idleMs, receiveMs] of [[20, 60_000], [60_000, 20]] as const) {
    for (const first of [[], [head]]) {
      let isCancelled = false;
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => first.forEach((piece) => controller.enqueue(piece)),
        cancel: () => void (isCancelled = true),
      });
      const clock = new ManualClock();
      const limits = { bodyBytes: 1000, idleMs, receiveMs };
      const rejected = assert.rejects(async () => {
        using part = await firstFilePart(callOf(body, clock), "file", limits);
        for await (const _ of part!.content);
      }, { status: 408 });
      await settled(); // everything that arrived has been read
      await clock.advance(20);
      await rejected;
      await clock.advance(1_000); // the answer goes first
      assert.ok(isCancelled);
    }
  }
});

Deno.test("a body that is declared too long is 413 before a byte of it was sent", async () => {
  await using test = await startService();
  for (const [length, status] of [[LIMITS.body.uploadBytes + 1, 413], [2 ** 40, 413]] as const) {
    using connection = await RawConnection.open(test.url);
    await connection.send(
      `POST /v1/upload HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY_A}\r\ncontent-type: ${FORM_TYPE}\r\n` +
        `content-length: ${length}\r\n\r\n`,
    );
    const answer = await connection.answer();
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  }
  assert.deepEqual(stored(test), []);
});

Deno.test("a body that grows too long is 413 as soon as it does", async () => {
  await using test = await startService();
  using connection = await RawConnection.open(test.url);
  await connection.send(
    `POST /v1/upload HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY_A}\r\ncontent-type: ${FORM_TYPE}\r\n` +
      "transfer-encoding: chunked\r\n\r\n",
  );
  const chunk = (bytes: Uint8Array) => joined([`${bytes.length.toString(16)}\r\n`, bytes, "\r\n"]);
  await connection.send(chunk(form([filePart("")]).slice(0, -(BOUNDARY.length + 8))));
  const piece = chunk(new Uint8Array(1 << 20));
  let sentBytes = 0;
  let isAnswered = false;
  const answered = connection.answer().finally(() => isAnswered = true);
  while (!isAnswered) {
    await Promise.race([connection.send(piece).catch(() => {}), answered]);
    sentBytes += piece.length;
  }
  const answer = await answered;
  assert.equal(answer.status, 413);
  assert.equal(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  // Bytes in the socket buffers of both sides were sent and not read.
  assert.ok(sentBytes > LIMITS.body.uploadBytes, `${sentBytes}`);
  assert.ok(sentBytes < LIMITS.body.uploadBytes + (32 << 20), `${sentBytes}`);
  await until("nothing is left", () => stored(test).length === 0 && openFiles(test.uploadRoot) === 0);
});

Deno.test("a caller that disconnects in the middle leaves nothing behind", async () => {
  await using test = await startService();
  const whole = form([filePart(FILM)]);
  for (const share of [0, 0.1, 0.5, 0.999]) {
    const connection = await RawConnection.open(test.url);
    await connection.send(
      `POST /v1/upload HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY_A}\r\ncontent-type: ${FORM_TYPE}\r\n` +
        `content-length: ${whole.length}\r\n\r\n`,
    );
    await connection.send(whole.slice(0, Math.floor(whole.length * share)));
    if (share > 0) await until("the upload has begun", () => stored(test).length === 1);
    connection[Symbol.dispose]();
    await until("nothing is left", () => stored(test).length === 0 && openFiles(test.uploadRoot) === 0);
  }
  assert.equal((await upload(test, whole)).status, 200);
});

Deno.test("an upload under way is visible to nobody, under no name", async () => {
  await using test = await startService({ SERVICE_REQUIRE_API_KEY: "false", SERVICE_API_KEYS: "" });
  using connection = await RawConnection.open(test.url);
  const whole = form([filePart(FILM)]);
  await connection.send(
    `POST /v1/upload HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ${FORM_TYPE}\r\ncontent-length: ${whole.length}\r\n\r\n`,
  );
  await connection.send(whole.slice(0, 300_000));
  await until("the upload has begun", () => stored(test).length === 1);
  const [hidden] = stored(test);
  assert.match(hidden!, /^\.part__[0-9a-f]{32}$/);
  assert.equal((await test.call("GET", `/v1/files/${hidden}`)).status, 400);
  assert.equal((await test.call("GET", "/v1/files/public__clip.mp4")).status, 404);
  const ingested = await test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, {
    source_uri: join(test.uploadRoot, hidden!),
  });
  assert.equal(ingested.status, 422);
  await connection.send(whole.slice(300_000));
  assert.equal((await connection.answer()).status, 200);
  assert.deepEqual(stored(test), ["public__clip.mp4"]);
});

Deno.test("what a killed process left of an upload is gone after the next start", async () => {
  await using test = await startService();
  const leftover = `.part__${"0".repeat(32)}`;
  Deno.writeTextFileSync(join(test.uploadRoot, leftover), "half");
  Deno.writeTextFileSync(join(test.uploadRoot, "public__kept.mp4"), "whole");
  await test.restart();
  assert.deepEqual(stored(test), ["public__kept.mp4"]);
});

Deno.test("uploads at once keep apart, and more than may run wait their turn", async () => {
  await using test = await startService();
  const count = LIMITS.upload.concurrentMax + 8;
  const answers = await Promise.all(
    Array.from({ length: count }, (_, index) => upload(test, form([filePart(FILM, `f${index}.mp4`)]))),
  );
  assert.deepEqual(answers.map(({ status }) => status), Array(count).fill(200));
  assert.equal(stored(test).length, count);
});
