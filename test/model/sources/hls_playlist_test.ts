import assert from "node:assert/strict";
import { isPlaylist, PlaylistRefused, withUris } from "../../../src/model/sources/hls_playlist.ts";

const BASE = new URL("https://media.test/live/a.m3u8?token=1");

function rewritten(playlist: string, replace: (uri: URL) => string, base = BASE): string {
  return [...withUris(playlist, base, replace)].join("");
}

Deno.test("every address of a playlist is resolved and replaced, and tags that players need stay as they are", () => {
  const check = (line: string, expected: string) => {
    const playlist = `#EXTM3U\n${line}\n#EXT-X-ENDLIST`;
    const text = rewritten(playlist, ({ href }) => `<${href}>`);
    assert.equal(text.trimEnd(), `#EXTM3U\n${expected}\n#EXT-X-ENDLIST`, line);
  };
  const at = "https://media.test";
  check("s1.ts", `<${at}/live/s1.ts>`);
  check("  s1.ts\t", `<${at}/live/s1.ts>`);
  check("/s1.ts?a=b", `<${at}/s1.ts?a=b>`);
  check("../s1.ts", `<${at}/s1.ts>`);
  check("//10.0.0.1/s1.ts", "<https://10.0.0.1/s1.ts>");
  check("http://10.0.0.1/s1.ts", "<http://10.0.0.1/s1.ts>");
  check("file:///etc/passwd", "<file:///etc/passwd>");
  check("s1.ts\r\ns2.ts\rs3.ts", `<${at}/live/s1.ts>\n<${at}/live/s2.ts>\n<${at}/live/s3.ts>`);
  check(" #EXTINF:1,", `<${at}/live/a.m3u8?token=1#EXTINF:1,>`);
  check("", "");
  check("#EXTINF:4.0,", "#EXTINF:4.0,");
  check("#EXTINF:4.0", "#EXTINF:4.0");
  check("#EXTINF:4.0,A \x1b title\x07", "#EXTINF:4.0,");
  check("# a \x01 note", "");
  check("#EXT-X-BYTERANGE:1000@0", "#EXT-X-BYTERANGE:1000@0");
  check('#EXT-X-MAP:URI="i.mp4",BYTERANGE="8@0"', `#EXT-X-MAP:URI="<${at}/live/i.mp4>",BYTERANGE="8@0"`);
  check('#EXT-X-MAP:BYTERANGE="8@0",URI="i.mp4"', `#EXT-X-MAP:BYTERANGE="8@0",URI="<${at}/live/i.mp4>"`);
  check('#EXT-X-KEY:METHOD=AES-128,URI="/k"', `#EXT-X-KEY:METHOD=AES-128,URI="<${at}/k>"`);
  check('#EXT-X-MEDIA:TYPE=AUDIO,URI="a/b.m3u8"', `#EXT-X-MEDIA:TYPE=AUDIO,URI="<${at}/live/a/b.m3u8>"`);
  assert.equal(rewritten("\ufeff#EXTM3U\ns.ts", ({ pathname }) => pathname).trimEnd(), "#EXTM3U\n/live/s.ts");
});

Deno.test("an address in a tag is read however it is spelled, and written in one way", () => {
  const check = (attributes: string, expected: string) => {
    const text = rewritten(`#EXTM3U\n#EXT-X-MAP:${attributes}\n`, ({ pathname }) => pathname);
    assert.equal(text.trimEnd(), `#EXTM3U\n#EXT-X-MAP:${expected}`, attributes);
  };
  const usual = 'URI="/live/i.mp4"';
  check("URI=i.mp4", usual);
  check('URI=i.mp4,BYTERANGE="8@0"', `${usual},BYTERANGE="8@0"`);
  check("URI=i.mp4?a=b\t,BYTERANGE=8@0", `${usual},BYTERANGE="8@0"`);
  check('URI = "i.mp4"', usual);
  check('uri="i.mp4"', usual);
  check('URI="i.mp4', usual);
  check("URI='i.mp4'", `URI="/live/'i.mp4'"`);
  check('URI="i\\".mp4"', 'URI="/live/i%22.mp4"');
  check('URI="a",URI=i.mp4', usual);
  check('X-URI="http://10.0.0.1/",URI="i.mp4",MAP_URI=http://10.0.0.1/', usual);
  check('NAME="URI=a",URI="i.mp4"', `NAME="URI=a",${usual}`);
  check('NAME=a"b,URI=http://10.0.0.1/', 'NAME="ab",URI="/"');
  check('NAME="a\\",URI="http://10.0.0.1/"', 'NAME="a,URI="');
});

Deno.test("tags that nobody could read are read quickly", () => {
  for (const piece of ["a", " ", ",", "a ", '"', "=", "\\", 'a="', "a=", "URI"]) {
    const text = rewritten(
      `#EXTM3U\n${`#EXT-X-MAP:${piece.repeat(8000 / piece.length)}\n`.repeat(500)}`,
      () => "x",
    );
    assert.match(text, /^#EXTM3U\n/);
  }
});

Deno.test("what no player needs is left out, with every address in it", () => {
  for (
    const line of [
      "#",
      "# a comment with s1.ts",
      '#EXT-X-SESSION-DATA:DATA-ID="a",URI="http://10.0.0.1/"',
      '#EXT-X-SESSION-KEY:METHOD=AES-128,URI="http://10.0.0.1/"',
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="http://10.0.0.1/"',
      '#EXT-X-CONTENT-STEERING:SERVER-URI="http://10.0.0.1/"',
      '#EXT-X-DATERANGE:ID="a",X-ASSET-URI="http://10.0.0.1/"',
      '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="http://10.0.0.1/"',
      '#EXT-X-PART:DURATION=1,URI="http://10.0.0.1/"',
      "#EXT-X-KEYS:URI=http://10.0.0.1/",
      "#ext-x-key:URI=http://10.0.0.1/",
      `#EXT-X-UNKNOWN:${"a".repeat(100_000)}`,
    ]
  ) {
    const replace = () => assert.fail(`replaced in ${line}`);
    assert.equal(rewritten(`#EXTM3U\n${line}\n`, replace).trimEnd(), "#EXTM3U", line);
  }
  assert.equal(rewritten('#EXTINF:4,URI="http://10.0.0.1/"', () => "x").trimEnd(), "#EXTINF:4,");
});

Deno.test("a playlist that could hide an address is refused", () => {
  const check = (line: string, expected: RegExp) => {
    const rewriting = () => rewritten(`#EXTM3U\n${line}\n`, () => "replaced");
    assert.throws(
      rewriting,
      (error) => error instanceof PlaylistRefused && expected.test(error.message),
      line,
    );
  };
  check("s1.ts\0#EXTINF", /control/);
  check("#EXT-X-KEY:\x01", /control/);
  check("https://[::1", /no address/);
  check('#EXT-X-MAP:URI="https://[::1"', /no address/);
});

Deno.test("the beginning of a body decides whether it is a playlist", () => {
  const check = (text: string, expected: boolean) => {
    assert.equal(isPlaylist(new TextEncoder().encode(text)), expected, JSON.stringify(text));
  };
  for (const text of ["#EXTM3U", "#extm3u\n", " \r\n\t#EXTM3U", "\ufeff#EXTM3U", "#EXTM3U8"]) {
    check(text, true);
  }
  for (const text of ["", "#EXTM3", "x#EXTM3U", "#EXT-X-MAP", "G@\0#EXTM3U"]) check(text, false);
});

Deno.test("a playlist is refused at its first address or line too many, and goes no further", () => {
  const refused = (playlist: string, reason: RegExp, base = BASE) => {
    let [addresses, characters] = [0, 0];
    const replace = ({ href }: URL) => {
      addresses++;
      characters += href.length;
      return "x";
    };
    assert.throws(
      () => rewritten(playlist, replace, base),
      (error) => error instanceof PlaylistRefused && reason.test(error.message),
    );
    assert.ok(
      addresses <= 50_000 && characters <= 2 ** 23,
      `${addresses} addresses, ${characters} characters`,
    );
  };
  const long = new URL(`https://media.test/${"a".repeat(8000)}/`);
  refused(`#EXTM3U\n${"b\n".repeat(2 ** 20)}`, /too many parts/, long);
  refused(`#EXTM3U\n${"b\n".repeat(2 ** 20)}`, /too many parts/);
  refused(`#EXTM3U\n${"\n".repeat(2 ** 20)}`, /too many lines/);
  refused(`#EXTM3U\n${"\r".repeat(2 ** 20)}`, /too many lines/);
  refused(`#EXTM3U\n${"b".repeat(8193)}\n`, /address in it is too long/);
  refused(`#EXTM3U\n#EXT-X-MEDIA:${'URI="b",'.repeat(2 ** 18)}\n`, /a line of it is too long/);
  const film = `#EXTM3U\n${`#EXTINF:1,\n${"b".repeat(300)}.ts\n`.repeat(10_800)}`;
  assert.equal(rewritten(film, () => "x").split("\n").filter((line) => line === "x").length, 10_800);
});
