/** SDP fragments of trickle ICE, and the ICE servers of a Link header. */

import assert from "node:assert/strict";
import { credentialsOf, fragmentOf, restartedAnswer } from "../../client/src/whip/fragment.ts";
import { readIceServers } from "../../client/src/whip/ice_servers.ts";

const SDP = [
  "v=0",
  "a=group:BUNDLE 0 1",
  "m=audio 9 UDP/TLS/RTP/SAVPF 111",
  "a=mid:0",
  "a=ice-ufrag:abcd",
  "a=ice-pwd:secret",
  "a=candidate:1 1 udp 1 192.0.2.1 4000 typ host",
  "a=end-of-candidates",
  "m=video 9 UDP/TLS/RTP/SAVPF 96",
  "a=mid:1",
  "a=ice-ufrag:abcd",
  "a=ice-pwd:secret",
  "",
].join("\r\n");

Deno.test("candidates are grouped by their section, with the credentials in front", () => {
  const fragment = fragmentOf(SDP, [
    { candidate: "candidate:1 1 udp 1 192.0.2.1 4000 typ host", sdpMid: "1" },
    { candidate: "candidate:2 1 udp 1 192.0.2.2 4000 typ host", sdpMid: "0" },
    { candidate: "candidate:3 1 udp 1 192.0.2.3 4000 typ host", sdpMid: "1" },
    null,
  ]);
  assert.deepEqual(fragment.split("\r\n"), [
    "a=ice-ufrag:abcd",
    "a=ice-pwd:secret",
    "m=video 9 UDP/TLS/RTP/SAVPF 96",
    "a=mid:1",
    "a=candidate:1 1 udp 1 192.0.2.1 4000 typ host",
    "a=candidate:3 1 udp 1 192.0.2.3 4000 typ host",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111",
    "a=mid:0",
    "a=candidate:2 1 udp 1 192.0.2.2 4000 typ host",
    "a=end-of-candidates",
    "",
  ]);
  assert.equal(fragmentOf(SDP, []), "a=ice-ufrag:abcd\r\na=ice-pwd:secret\r\n");
});

Deno.test("an answer takes over the credentials and the candidates of a restart", () => {
  const fragment = "a=ice-ufrag:$&wxyz\r\na=ice-pwd:new\r\na=candidate:9 1 udp 1 192.0.2.9 5000 typ host\r\n";
  const answer = restartedAnswer(SDP, fragment);
  assert.deepEqual(answer.match(/a=(ice-|candidate|end-of).*/g), [
    "a=ice-ufrag:$&wxyz",
    "a=ice-pwd:new",
    "a=candidate:9 1 udp 1 192.0.2.9 5000 typ host",
    "a=ice-ufrag:$&wxyz",
    "a=ice-pwd:new",
  ]);
  assert.ok(answer.indexOf("a=candidate") < answer.indexOf("m=video") && answer.endsWith("\r\n"));
  assert.deepEqual(credentialsOf(answer), { ufrag: "$&wxyz", password: "new" });
  assert.throws(() => restartedAnswer(SDP, "a=ice-ufrag:only\r\n"), /no credentials/);
  assert.equal(credentialsOf("v=0\r\n"), undefined);
});

Deno.test("ICE servers are read with their quoted parameters, and other links are not", () => {
  const link = '<stun:a.example:3478>; rel="ice-server", <turn:b.example?transport=tcp>; rel="ice-server"; ' +
    'username="me, \\"you\\""; credential="p;q,r"; credential-type="password", <https://c.example>; rel="next", ' +
    "<turns:d.example>;rel=ice-server";
  assert.deepEqual(readIceServers(link), [
    { urls: "stun:a.example:3478" },
    { urls: "turn:b.example?transport=tcp", username: 'me, "you"', credential: "p;q,r" },
    { urls: "turns:d.example" },
  ]);
  assert.deepEqual(readIceServers(null), []);
  assert.deepEqual(readIceServers(""), []);
});
