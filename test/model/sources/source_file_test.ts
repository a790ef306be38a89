/** The file of named sources: what it may say, and what its faults say; the answers to servers that ask for a
 * password; JPEGs in parts.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { LIMITS } from "../../../src/contract/limits.ts";
import { boundaryOf, JpegParts, PartsRefused } from "../../../src/model/sources/jpeg_parts.ts";
import { Authorization } from "../../../src/model/sources/source_credentials.ts";
import { parseSourceFile, SourceFaults } from "../../../src/model/sources/source_file.ts";
import { nameInSourceUri } from "../../../src/model/source_name.ts";

const HASH = "0123456789abcdef".repeat(4);
const CONTEXT = {
  env: { CAM_PASSWORD: "p@ss:/w rd%", CAM_URI: "rtsp://u:p%40@cam.test/2", EMPTY: "" },
  toggles: { allowInsecureHttp: true, allowUnencryptedRtsp: true, allowRemoteHls: true },
  attach: { crop: null, zone: null, tokensPerSecond: 0, hasLocalOutput: false },
  webhooks: { allowPrivate: false, areOn: true },
};

function parse(text: string, toggles = CONTEXT.toggles) {
  return parseSourceFile(text, { ...CONTEXT, toggles });
}

Deno.test("a source has a name, a place, a kind, credentials, principals, and how it is watched", () => {
  const [dock, film, gate] = parse(`
    [[sources]]
    name = "dock"
    uri = "rtsp://admin:\${CAM_PASSWORD}@cam.test:8554/1?x=1"
    principals = ["${HASH}", "api-key:${HASH}"]
    live = true
    rollover = "90m"
    retention = { hours = 48, clip_hours = 24 }
    recording = { hours = 24, bytes = 100000000 }
    prompt = "Watch."
    clip_mode = { target_fps = 6 }
    [[sources]]
    name = "film-2"
    uri = "/srv/media/film.mp4"
    principals = ["*"]
    [[sources]]
    name = "gate"
    uri = "http://cam.test/mjpg?n=\${EMPTY}1"
    principals = ["*"]
    live = true
  `);
  assert.deepEqual(dock, {
    name: "dock",
    kind: "rtsp",
    uri: "rtsp://cam.test:8554/1?x=1",
    credentials: { user: "admin", password: "p@ss:/w rd%" },
    principals: [`api-key:${HASH}`, `api-key:${HASH}`],
    retentionHours: 48,
    mediaHours: { clip: 24 },
    watch: {
      attach: { prompt: "Watch.", clip_mode: { target_fps: 6 } },
      rolloverMs: 5_400_000,
      recording: { hours: 24, bytes: 100_000_000 },
      webhooks: [],
      armed: null,
    },
  });
  assert.equal(film!.retentionHours, null);
  assert.deepEqual([film!.kind, film!.principals, film!.watch, film!.credentials], [
    "file",
    null,
    null,
    null,
  ]);
  assert.deepEqual([gate!.kind, gate!.uri], ["mjpeg", "http://cam.test/mjpg?n=1"]);
  assert.deepEqual(gate!.watch, {
    attach: {},
    rolloverMs: 86_400_000,
    webhooks: [],
    armed: null,
    recording: null,
  });
  const [whole] = parse(`[[sources]]\nname = "a"\nuri = "\${CAM_URI}"\nprincipals = ["*"]`);
  assert.deepEqual([whole!.uri, whole!.credentials], ["rtsp://cam.test/2", { user: "u", password: "p@" }]);
  assert.deepEqual(parse(""), []);
});

Deno.test("a source has webhooks of the rules of others, and their address and secret are not told", () => {
  const secret = "0123456789abcdef".repeat(4);
  const hook = { name: "alarm", url: "https://hooks.test/${TOKEN}/x", secret };
  const file = (hooks: object[], more = "live = true") =>
    `[[sources]]\nname = "dock"\nuri = "rtsp://cam.test/1"\nprincipals = ["*"]\n${more}\n` +
    `webhooks = [${hooks.map(tomlOf).join(", ")}]`;
  const env = { TOKEN: "t0ken", WHOLE: "https://hooks.test/t0ken", SECRET: secret };
  const read = (text: string, areOn = true) =>
    parseSourceFile(text, { ...CONTEXT, env, webhooks: { allowPrivate: false, areOn } });
  const filter = { labels: ["person"], min_confidence: 0.5 };
  const [dock] = read(file([
    { ...hook, event_kinds: ["vlm", "event_enriched"], filter, cooldown: { interval_ms: 1000 } },
    { name: "other", url: "${WHOLE}", secret: "${SECRET}" },
  ]));
  const none = { eventKinds: [], filter: null, cooldown: null };
  assert.deepEqual(dock!.watch!.webhooks, [
    {
      ...{
        name: "alarm",
        url: "https://hooks.test/t0ken/x",
        shownUrl: "https://hooks.test/...",
        secret,
        filter,
      },
      eventKinds: ["event_enriched", "vlm"],
      cooldown: { interval_ms: 1000, per: ["kind", "source"] },
    },
    { name: "other", url: "https://hooks.test/t0ken", shownUrl: "${WHOLE}", secret, ...none },
  ]);
  const check = (text: string, expected: RegExp, areOn = true) =>
    assert.throws(() => read(text, areOn), (error) => {
      assert.ok(error instanceof SourceFaults);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /t0ken|hooks\.test|0123456789/);
      return true;
    });
  const place = String.raw`^sources\[dock\]\.webhooks\[alarm\]\.`;
  check(file([{ ...hook, url: "http://hooks.test/" }]), new RegExp(`${place}url must be an https: URL$`));
  check(file([{ ...hook, url: "https://a:t0ken@hooks.test/" }]), new RegExp(`${place}url must have no user`));
  check(file([{ ...hook, url: "${NONE}" }]), new RegExp(`${place}url must be a URL, got NONE, not set$`));
  check(file([{ ...hook, secret: "short" }]), new RegExp(`${place}secret must be 64 of the characters`));
  check(file([{ ...hook, secret: undefined }]), new RegExp(`${place}secret must be a key .* got none$`));
  check(file([{ ...hook, kinds: [] }]), new RegExp(`${place}kinds is not a field`));
  check(file([{ ...hook, event_kinds: ["webhook_x"] }]), new RegExp(`${place}event_kinds must not name`));
  check(
    file([{ ...hook, filter: { label: [] } }]),
    new RegExp(`${place}filter has the unknown field label$`),
  );
  check(
    file([{ ...hook, cooldown: { interval_ms: 1 } }]),
    new RegExp(`${place}cooldown.interval_ms must be`),
  );
  check(file([hook, hook]), /webhooks\[alarm\]\.name must differ from those of the source's others/);
  check(file([hook], ""), /^sources\[dock\]\.webhooks is a field of sources with live = true/);
  check(file([hook]), /webhooks needs SERVICE_WEBHOOK_SECRET/, false);
  const many = Array.from({ length: 65 }, (_, at) => ({ ...hook, name: `a${at}` }));
  check(file(many), /sources must have at most 64 webhooks in all, and have 65$/);
});

Deno.test("a fault names the source, the field and the rule, and never the address or a password", () => {
  const all = { name: "dock", uri: "rtsp://u:secret@cam.test/1", principals: ["*"] };
  const check = (fields: object, expected: RegExp, toggles = CONTEXT.toggles) => {
    const lines = Object.entries({ ...all, ...fields }).map(([name, value]) =>
      value === undefined ? "" : `${name} = ${tomlOf(value)}`
    );
    assert.throws(() => parse(`[[sources]]\n${lines.join("\n")}`, toggles), (error) => {
      assert.ok(error instanceof SourceFaults);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /secret|cam\.test/);
      return true;
    });
  };
  check(
    { retention: { hours: 2, clip_hours: 0 } },
    /^sources\[dock\]\.retention must be \{ hours = … \} with some of hours, picture_hours, clip_hours, sound_hours, each an integer from 1 to 876000$/,
  );
  check({ recording: { hours: 48 } }, /^sources\[dock\]\.recording is a field of sources with live = true/);
  check(
    { recording: { hours: 48, bytes: 1 } },
    /sources\[dock\]\.recording must be \{ hours = …, bytes = … \}, with integers from 1 to 876000 and from 1048576 to/,
  );
  check({ name: undefined }, /^sources\[0\]\.name must be a text that is not blank, got none$/);
  check(
    { name: "Dock" },
    /^sources\[0\]\.name must be 1 to 64 of the characters a-z, 0-9 and -, got "Dock"$/,
  );
  check({ uri: undefined }, /^sources\[dock\]\.uri must be a path or a URL, got none$/);
  check(
    { uri: "rtsp://${NOBODY}@cam.test/" },
    /^sources\[dock\]\.uri must be a path or a URL, got NOBODY, not set$/,
  );
  check(
    { uri: "rtsp://u:${CAM_PASSWORD:-secret}@cam.test/${NOBODY}" },
    /^sources\[dock\]\.uri must be a path or a URL, got NOBODY, \$\{…\} with more than a name in it, not set$/,
  );
  check({ uri: "rtmp://u:secret@cam.test/1" }, /^sources\[dock\]\.uri unsupported scheme rtmp$/);
  check({ uri: "rtsp://" }, /^sources\[dock\]\.uri must name a valid host$/);
  check({ uri: "rtsp://cam.test/\x01" }, /^sources\[dock\]\.uri must not contain control characters$/);
  check(
    { uri: "rtsp://u:%zz@cam.test/1" },
    /^sources\[dock\]\.uri must have a user name and a password without/,
  );
  check(
    {},
    /^sources\[dock\]\.uri rtsp sources are not admitted by this service; SERVICE_ALLOW_UNENCRYPTED_RTSP/,
    {
      ...CONTEXT.toggles,
      allowUnencryptedRtsp: false,
    },
  );
  check(
    { uri: "/srv/film.mp4", live: true },
    /^sources\[dock\]\.uri must be an rtsp, rtsps, HLS, http or https URL/,
  );
  check(
    { principals: undefined },
    /^sources\[dock\]\.principals must be a list of texts that is not empty, got none$/,
  );
  check({ principals: "my-key" }, /^sources\[dock\]\.principals must be a list of texts that is not empty$/);
  check(
    { principals: ["my-key"] },
    /^sources\[dock\]\.principals must be \["\*"\], or SHA-256 hashes of API keys/,
  );
  check({ live: "yes" }, /^sources\[dock\]\.live must be true or false, got "yes"$/);
  check(
    { prompt: "x" },
    /^sources\[dock\]\.prompt is a field of sources with live = true, and this has none$/,
  );
  check(
    { live: true, armed: { times: ["08:00-09:00"] } },
    /^sources\[dock\]\.armed\.time_zone must be a time zone such as "Europe\/Berlin"/,
  );
  check(
    { live: true, armed: { time_zone: "UTC", times: ["sun", "weekdays"] } },
    /^sources\[dock\]\.armed\.times must be a list of times such as .*: got "weekdays"$/,
  );
  check(
    { live: true, armed: { time_zone: "UTC", days: "x" } },
    /^sources\[dock\]\.armed must be \{ time_zone/,
  );
  check(
    { armed: { time_zone: "UTC", times: [] } },
    /^sources\[dock\]\.armed is a field of sources with live/,
  );
  check(
    { live: true, rollover: "30s" },
    /^sources\[dock\]\.rollover must be a time such as 24h, .* got "30s"$/,
  );
  check({ live: true, crop: { x: 0.9, y: 0, width: 0.5, height: 1 } }, /^sources\[dock\]\.crop /);
  check({ live: true, clip_mode: { fps: 1 } }, /^sources\[dock\]\.clip_mode has the unknown field fps$/);
  check(
    { password: "secret" },
    /^sources\[dock\]\.password is not a field, the fields here are name, uri, principals, live/,
  );
  assert.throws(() => parse("[[source]]"), /source is not a field, the fields here are sources/);
  assert.throws(
    () => parse("[[sources]\nuri = 'rtsp://u:secret@x'"),
    /^SourceFaults: line 1, column \d+: not TOML/,
  );
  const camera = '[[sources]]\nname = "a"\nuri = "rtsp://cam.test/1"\nprincipals = ["*"]\nlive = true\n';
  const crop = "crop = { x = nan, y = -inf, width = 1, height = 1 }";
  assert.throws(
    () => parse(camera + crop),
    /a\]\.crop\.x must be a number, got nan; .*y must be a number, got inf$/,
  );
  assert.throws(() => parse(`${camera}"b\\n\\u001b" = 1`), /sources\[a\]\."b\\n\\u001b" is not a field/);
  assert.throws(() => parse(`${camera}clip_mode = { "b\\n" = 1 }`), /has the unknown field "b\\n"$/);
  const twice = `[[sources]]\nname = "a"\nuri = "/x"\nprincipals = ["*"]\n`.repeat(2);
  assert.throws(() => parse(twice), /sources\[a\]\.name must differ from that of the source 1 of the file/);
});

function tomlOf(value: unknown): string {
  if (typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value);

  const given = Object.entries(value!).filter(([, inner]) => inner !== undefined);
  return `{ ${given.map(([name, inner]) => `${name} = ${tomlOf(inner)}`).join(", ")} }`;
}

Deno.test("a source_uri names a source with source:, and nothing else does", () => {
  assert.deepEqual(
    [" source:dock ", "source:", "source://x", "/source:dock", "SOURCE:dock"].map(nameInSourceUri),
    ["dock", "", null, null, "dock"],
  );
});

Deno.test("of a file with thousands of faults the first are told, each with a bounded length", () => {
  const unset = `uri = "${"${NOT_SET}".repeat(1000)}"`;
  const text = `[[sources]]\nname = "a"\nprincipals = ["*"]\n${unset}\n` +
    Array.from({ length: 9000 }, (_, at) => `k${at} = 1`).join("\n");
  assert.throws(() => parse(text), (error) => {
    assert.ok(error instanceof SourceFaults);
    assert.deepEqual([error.faults.length, error.faults.at(-1)], [51, "8951 more faults"]);
    return error.faults.every(({ length }) => length <= 1001);
  });
});

Deno.test("credentials answer the strongest challenge, once, and again only where a nonce was too old", () => {
  const login = () => new Authorization({ user: "Mufasa", password: "Circle of Life" }, "0a4f113b");
  const request = { method: "GET", uri: "/dir/index.html" };
  const md5 = (text: string) => createHash("md5").update(text).digest("hex");
  const basic = login();
  assert.equal(basic.header(request), null);
  assert.ok(basic.take(['Basic realm="x", Digest realm="x", nonce="1", qop="other"']));
  assert.equal(basic.header(request), `Basic ${btoa("Mufasa:Circle of Life")}`);
  assert.ok(!basic.take(['Basic realm="x"']), "refused");

  // RFC 2617, section 3.5.
  const digest = login();
  const realm = "testrealm@host.com";
  const nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093";
  assert.ok(
    digest.take([
      'Basic realm="x"',
      `Digest realm="${realm}",qop="auth,auth-int",nonce="${nonce}",opaque="5c"`,
    ]),
  );
  const header = digest.header(request)!;
  const expected = md5(
    `${md5(`Mufasa:${realm}:Circle of Life`)}:${nonce}:00000001:0a4f113b:auth:${md5("GET:/dir/index.html")}`,
  );
  assert.match(
    header,
    new RegExp(`response="${expected}", algorithm=MD5, qop=auth, nc=00000001, .* opaque="5c"$`),
  );
  assert.match(digest.header(request)!, /nc=00000002/);
  assert.ok(digest.take([`Digest realm="x", nonce="2", stale=TRUE`]), "only too old");
  assert.ok(digest.header(request)!.includes('nonce="2"'));
  assert.ok(!digest.take([`Digest realm="x", nonce="3"`]), "refused");
  // A camera that has taken the password before asks with another nonce, and does not say that the last one
  // was too old.
  const known = login();
  const ask = (more: string) => known.take([`Digest realm="x", ${more}`]);
  assert.ok(ask('nonce="1"'));
  known.header(request);
  known.accepted();
  known.header(request);
  assert.ok(ask('nonce="2", stale="FALSE"'));
  known.header(request);
  assert.ok(!ask('nonce="2"'), "refused");

  const forms: [question: string, secret: string, qop: string][] = [
    ['algorithm="MD5-sess"', md5(`${md5("Mufasa:x:Circle of Life")}:1:0a4f113b`), ""],
    ["qop=auth-int", md5("Mufasa:x:Circle of Life"), "00000001:0a4f113b:auth-int:"],
    ['qop=""', md5("Mufasa:x:Circle of Life"), ""],
    ["algorithm=", md5("Mufasa:x:Circle of Life"), ""],
  ];
  for (const [question, secret, qop] of forms) {
    const other = login();
    assert.ok(other.take([`digest realm=x nonce="1" ${question}`]), question);
    const body = qop === "" ? "" : `:${md5("")}`;
    const response = md5(`${secret}:1:${qop}${md5(`GET:/dir/index.html${body}`)}`);
    assert.ok(other.header(request)!.includes(`response="${response}"`), question);
  }
  const moody = login();
  const asked = Array.from(
    { length: 9 },
    (_, at) => moody.take([`Digest realm="x", nonce="${at}", stale=true`]),
  );
  assert.deepEqual(asked.indexOf(false), 4, "a server that asks for ever");
  const opaque = (length: number) =>
    login().take([`Digest realm="x", nonce="1", opaque="${"o".repeat(length)}"`]);
  assert.deepEqual([opaque(1000), opaque(3000)], [true, false], "a challenge that is far too long");
});

/** A shorter part is no picture. */
const FILL = ".".repeat(LIMITS.sources.jpegBytesMin);

Deno.test("a body that is nearly the boundary, again and again, is searched in the time of any other", () => {
  const timeOf = (boundary: string, fill: number) => {
    const parts = new JpegParts(boundary);
    parts.take(new TextEncoder().encode("--\r\n\r\n"));
    const body = new Uint8Array(2 ** 20).fill(fill);
    const beganMs = performance.now();
    assert.deepEqual([parts.take(body), parts.take(body)], [[], []]);
    return performance.now() - beganMs;
  };
  const hyphens = `${"-".repeat(97)}x`;
  const ratios = [1, 2, 3].map(() => timeOf(hyphens, 0x2d) / timeOf("-x", 0x2d));
  assert.ok(Math.min(...ratios) < 8, `${ratios}`);

  const parts = new JpegParts("aab");
  const jpeg = `\xff\xd8--aa--aaaab--aaab${FILL}`;
  const body = Uint8Array.from(`--aab\r\n\r\n${jpeg}--aab`, (character) => character.charCodeAt(0));
  const found = [...body].flatMap((byte) => parts.take(Uint8Array.of(byte)));
  assert.deepEqual(found.map((bytes) => String.fromCharCode(...bytes)), [jpeg]);
});

Deno.test("JPEGs are found with and without lengths, however the bytes come", () => {
  const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
  const jpegs = ["one", "--other\r\n\r\ntwo", "3"].map((text) => `\xff\xd8${text}${FILL}\xff\xd9`);
  const withLength = jpegs.map((jpeg) => `\r\n--b x\r\nContent-Length: ${jpeg.length}\r\n\r\n${jpeg}`).join(
    "",
  );
  const without = jpegs.map((jpeg) => `--b x\r\nContent-Type: image/jpeg\r\n\r\n${jpeg}`).join("") + "--b x";
  for (const body of [withLength, without]) {
    for (const size of [1, 7, 1000]) {
      const parts = new JpegParts("b x");
      const found: string[] = [];
      for (let at = 0; at < body.length; at += size) {
        for (const jpeg of parts.take(bytes(body.slice(at, at + size)))) {
          found.push(String.fromCharCode(...jpeg));
        }
      }
      assert.deepEqual(found.map((jpeg) => jpeg.trim()), jpegs, `${size}`);
    }
  }
  const refused = (body: string) => assert.throws(() => new JpegParts("b").take(bytes(body)), PartsRefused);
  const other = "--b\r\nContent-Length: 4\r\n\r\nGIF8\r\n";
  const { otherPartsMax } = LIMITS.sources;
  assert.deepEqual(new JpegParts("b").take(bytes(other.repeat(otherPartsMax))), []);
  refused(other.repeat(otherPartsMax + 1));
  refused(`--b\r\nContent-Length: 99999999\r\n\r\n`);
  refused("x".repeat(9000));
  assert.deepEqual(
    [
      "multipart/x-mixed-replace; boundary=--b",
      'Multipart/X-Mixed-Replace;boundary="b x"',
      "image/jpeg",
      null,
    ]
      .map(boundaryOf),
    ["b", "b x", null, null],
  );
});
