import { ownerPrefix } from "../../../src/model/identifiers.ts";
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { join, relative } from "node:path";
import { Refusal } from "../../../src/contract/refusal.ts";
import { refusePointers, resolveLocalSource } from "../../../src/media/files/source.ts";
import { PrincipalNames } from "../../../src/model/principal_names.ts";
import { TempFolder } from "../../support/media.ts";

/** The principal of the key `dev-key` and its owner prefix, computed independently. */
const KEY = "api-key:7e9f8fd111802be56c379d597842e29b2cebd35ff2133d431a49fa556a18704e";
const PREFIX = "0367d5d86437c1544751e3f32295e369c41044d6359ac0c61d22673cd97e1d20__";
const OTHER = "f".repeat(64) + "__";

/** The folders of an operator: a root `$R`, the upload root `$U`, and a folder outside `$O`. */
function folders() {
  const root = new TempFolder();
  const uploads = new TempFolder();
  const outside = new TempFolder();
  for (
    const name of [
      "a.mp4",
      "with space.mp4",
      "hash#.mp4",
      "ends\nhere.mp4",
      "100%.mp4",
      "ünï.mp4",
      "..mp4",
      "q?.mp4",
      "a+b.mp4",
    ]
  ) {
    root.file(name, "x");
  }
  Deno.mkdirSync(join(root.path, "sub"));
  root.file("sub/b.mp4", "x");
  outside.file("secret.mp4", "x");
  for (const name of [`${PREFIX}mine.mp4`, `${OTHER}theirs.mp4`, "public__open.mp4", "plain.mp4"]) {
    uploads.file(name, "x");
  }
  Deno.mkdirSync(join(uploads.path, "deep"));
  uploads.file(`deep/${PREFIX}deep.mp4`, "x");
  Deno.mkdirSync(join(uploads.path, `${PREFIX}folder`));
  const link = (target: string, path: string) => Deno.symlinkSync(target, path);
  link(join(root.path, "a.mp4"), join(root.path, "inside.mp4"));
  link(join(outside.path, "secret.mp4"), join(root.path, "escape.mp4"));
  link(outside.path, join(root.path, "escape_folder"));
  link(join(root.path, "loop.mp4"), join(root.path, "loop.mp4"));
  link("/nowhere/at/all", join(root.path, "dangling.mp4"));
  link("/dev/zero", join(root.path, "device.mp4"));
  link(join(uploads.path, `${PREFIX}mine.mp4`), join(root.path, "to_mine.mp4"));
  link(join(uploads.path, `${OTHER}theirs.mp4`), join(root.path, "to_theirs.mp4"));
  link(join(root.path, "a.mp4"), join(uploads.path, `${PREFIX}link.mp4`));
  link(join(uploads.path, `${PREFIX}mine.mp4`), join(uploads.path, `${PREFIX}selflink.mp4`));
  link(root.path, join(uploads.path, "folder_link"));
  new Deno.Command("mkfifo", { args: [join(root.path, "pipe.mp4")] }).outputSync();
  return {
    root,
    uploads,
    outside,
    expand: (text: string) =>
      text.replaceAll("$R", root.path).replaceAll("$U", uploads.path).replaceAll("$O", outside.path),
    [Symbol.dispose]() {
      for (const folder of [root, uploads, outside]) folder[Symbol.dispose]();
    },
  };
}

type Row = [uri: string, expected: string | RegExp];
const HIDDEN = /no such file is visible/;

/** Checks each row: `expected` is the real path, or the message of the refusal. */
async function checkAll(rows: readonly Row[], principalKey: string, moreRoots: readonly string[] = []) {
  using places = folders();
  const policy = {
    ingestRoots: [places.root.path, ...moreRoots.map(places.expand)],
    uploadRoot: places.uploads.path,
    names: new PrincipalNames(null),
    principalKey,
  };
  for (const [given, expected] of rows) {
    const uri = given.startsWith("relative:")
      ? relative(Deno.cwd(), places.expand(given.slice("relative:".length)))
      : places.expand(given);
    if (typeof expected === "string") {
      const source = await resolveLocalSource(uri, policy);
      deepEqual(source, { path: places.expand(expected), uri: uri.trim() }, given);
      continue;
    }
    await rejects(resolveLocalSource(uri, policy), (error) => {
      equal(error instanceof Refusal, true, `${given}: ${error}`);
      const refusal = error as Refusal;
      equal(refusal.status, 422, given);
      equal(refusal.details.length, 1, given);
      equal(refusal.details[0]!.field, "source_uri", given);
      match(refusal.details[0]!.message, expected, given);
      return true;
    });
  }
}

Deno.test("a source is a path or a file URL of a regular file inside an allowed root", async () => {
  await checkAll([
    ["$R/a.mp4", "$R/a.mp4"],
    ["  $R/a.mp4\n", "$R/a.mp4"],
    ["relative:$R/a.mp4", "$R/a.mp4"],
    ["$R/sub/../a.mp4", "$R/a.mp4"],
    ["$R//a.mp4", "$R/a.mp4"],
    ["$R/sub/b.mp4", "$R/sub/b.mp4"],
    ["$R/inside.mp4", "$R/a.mp4"],
    ["$R/..mp4", "$R/..mp4"],
    ["$R/hash#.mp4", "$R/hash#.mp4"],
    ["$R/q?.mp4", "$R/q?.mp4"],
    ["$R/100%.mp4", "$R/100%.mp4"],
    ["file://$R/a.mp4", "$R/a.mp4"],
    ["FILE://$R/a.mp4", "$R/a.mp4"],
    ["file://$R/with%20space.mp4", "$R/with space.mp4"],
    ["file://$R/with space.mp4", "$R/with space.mp4"],
    ["file://$R/hash%23.mp4", "$R/hash#.mp4"],
    ["file://$R/q%3F.mp4", "$R/q?.mp4"],
    ["file://$R/100%25.mp4", "$R/100%.mp4"],
    ["file://$R/%C3%BCn%C3%AF.mp4", "$R/ünï.mp4"],
    ["file://$R/a+b.mp4", "$R/a+b.mp4"],
    ["file://$R/sub/../a.mp4", "$R/a.mp4"],
    ["file://$R/sub/%2e%2e/a.mp4", "$R/a.mp4"],
    ["file:///$R/a.mp4", "$R/a.mp4"],
    ["", /must not be empty/],
    [" \t\n", /must not be empty/],
    ["$R/missing.mp4", HIDDEN],
    ["$O/secret.mp4", HIDDEN],
    ["$R/../../../../../etc/passwd", HIDDEN],
    ["/etc/passwd", HIDDEN],
    ["$R/escape.mp4", HIDDEN],
    ["$R/escape_folder/secret.mp4", HIDDEN],
    ["$R/loop.mp4", HIDDEN],
    ["$R/dangling.mp4", HIDDEN],
    ["$R/device.mp4", HIDDEN],
    ["$R/a.mp4/", "$R/a.mp4"],
    ["$R/a.mp4/b.mp4", HIDDEN],
    ["$R", HIDDEN],
    ["$R/sub", /not a regular file/],
    ["$R/pipe.mp4", /not a regular file/],
    ["$R/a.mp4\0.jpg", /NUL/],
    ["$R/ends\nhere.mp4", /control characters/],
    [`$R/${"n".repeat(300)}.mp4`, HIDDEN],
    [`$R/${"n/".repeat(4000)}a.mp4`, HIDDEN],
    ["file:$R/a.mp4", HIDDEN],
    ["file://", /must not name a host/],
    ["file:///", HIDDEN],
    ["file://localhost$R/a.mp4", /must not name a host/],
    ["file://example.com$R/a.mp4", /must not name a host/],
    ["file://a.mp4", /must not name a host/],
    ["file://$R/a.mp4?x=1", /query or a fragment/],
    ["file://$R/hash#.mp4", /query or a fragment/],
    ["file://$R/a%00.mp4", /NUL/],
    ["file://$R%2Fa.mp4", /encoded slash/],
    ["file://$R/..%2f..%2fetc/passwd", /encoded slash/],
    ["file://$R/%2e%2e/%2e%2e/etc/passwd", HIDDEN],
    ["file://$R/100%.mp4", /percent-encoded/],
    ["file://$R/%ff%fe.mp4", /percent-encoded/],
    ["file://$R/escape.mp4", HIDDEN],
    ["http://example.com/a.mp4", /unsupported scheme/],
    ["https://example.com/a.mp4", /unsupported scheme/],
    ["HTTPS://example.com/a.m3u8", /unsupported scheme/],
    ["hls://example.com/a.m3u8", /unsupported scheme/],
    ["rtsp://example.com/a", /unsupported scheme/],
    ["rtsps://example.com/a", /unsupported scheme/],
    ["ftp://example.com/a.mp4", /unsupported scheme ftp/],
    ["concat://$R/a.mp4", /unsupported scheme concat/],
    ["gopher://x", /unsupported scheme gopher/],
    ["://a.mp4", /not a valid URL/],
    ["$R/a://b.mp4", /not a valid URL/],
    ["1a://b.mp4", /not a valid URL/],
  ], KEY);
});

const UPLOADS_OF_A_KEY: readonly Row[] = [
  [`$U/${PREFIX}mine.mp4`, `$U/${PREFIX}mine.mp4`],
  [`file://$U/${PREFIX}mine.mp4`, `$U/${PREFIX}mine.mp4`],
  ["$R/to_mine.mp4", `$U/${PREFIX}mine.mp4`],
  [`$U/${OTHER}theirs.mp4`, HIDDEN],
  ["$R/to_theirs.mp4", HIDDEN],
  ["$U/public__open.mp4", HIDDEN],
  ["$U/plain.mp4", HIDDEN],
  ["$U/missing.mp4", HIDDEN],
  [`$U/${PREFIX}link.mp4`, HIDDEN],
  [`$U/${PREFIX}selflink.mp4`, HIDDEN],
  [`$U/deep/${PREFIX}deep.mp4`, HIDDEN],
  ["$U/folder_link/a.mp4", HIDDEN],
  [`$U/${PREFIX}folder`, /not a regular file/],
  ["$U", /no such file is visible|not a regular file/],
];

Deno.test("an upload is visible to its owner alone, and never through a link in the upload folder", async () => {
  await checkAll(UPLOADS_OF_A_KEY, KEY);
});

Deno.test("an operator root around the upload folder opens no upload to others", async () => {
  await checkAll(UPLOADS_OF_A_KEY, KEY, ["$U", "/tmp"]);
});

Deno.test("open mode sees public uploads and those without an owner", async () => {
  await checkAll([
    ["$U/public__open.mp4", "$U/public__open.mp4"],
    ["$U/plain.mp4", "$U/plain.mp4"],
    [`$U/${PREFIX}mine.mp4`, HIDDEN],
    [`$U/${OTHER}theirs.mp4`, HIDDEN],
    [`$U/${PREFIX}link.mp4`, HIDDEN],
    ["$R/a.mp4", "$R/a.mp4"],
  ], "public");
});

Deno.test("an owner prefix is the hash of the principal key", () => {
  equal(ownerPrefix(KEY), PREFIX);
  equal(ownerPrefix("public"), "public__");
});

Deno.test("files that point to other files are refused by their content", async () => {
  using folder = new TempFolder();
  const check = async (content: string | Uint8Array, expected: RegExp | null) => {
    const path = folder.file("source.mp4", content);
    if (expected === null) await refusePointers(path);
    else {await rejects(refusePointers(path), (error) =>
        match((error as Error).message, expected) === undefined);}
  };
  await check("", /file is empty/);
  await check("#EXTM3U\n#EXT-X-VERSION:3\n", /playlist/);
  await check(" \r\n\t#extm3u", /playlist/);
  await check("\u{feff}#EXTM3U", /playlist/);
  await check("ffconcat version 1.0\nfile '/etc/passwd'\n", /concat list/);
  await check("file '/etc/passwd'\n", /concat list/);
  await check('<?xml version="1.0"?><MPD></MPD>', /XML/);
  await check("<MPD xmlns='urn:mpeg:dash:schema:mpd:2011'>", /XML/);
  await check("[playlist]\nFile1=/etc/passwd", /playlist/);
  await check("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\n", /session description/);
  await check("\0\0\0\x18ftypmp42", null);
  await check("some text", null);
  await check("x", null);
  await check(new Uint8Array(10_000), null);
  await rejects(refusePointers(join(folder.path, "missing.mp4")), /cannot be read/);
});
