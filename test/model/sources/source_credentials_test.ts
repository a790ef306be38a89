/** The answers to servers that ask for a user name and a password: those of RFC 2617, RFC 7616 and RFC 2069,
 * and which questions are answered.
 */

import assert from "node:assert/strict";
import { Authorization } from "../../../src/model/sources/source_credentials.ts";

const MUFASA = { user: "Mufasa", password: "Circle Of Life" };
const REQUEST = { method: "GET", uri: "/dir/index.html" };
const CLIENT_NONCE = "0a4f113b";
const COMMON =
  'realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", ' +
  'opaque="5ccc069c403ebaf9f0171e9517f40e41"';
const MD5 = `Digest ${COMMON}`;
const SHA_256 = `Digest ${COMMON}, algorithm=SHA-256`;
/** RFC 2617, section 3.5; the others by the same formula, computed with another library. */
const MD5_RESPONSE = "6629fae49393a05397450978507c4ef1";
const SHA_256_RESPONSE = "5abdd07184ba512a22c53f41470e5eea7dcaa3a93a59b630c13dfe0a5dc6e38b";
const OLDER_RESPONSE = "670fd8c2df070c60b045671b8b24ff02";

function answerTo(...challenges: string[]): string | null {
  const authorization = new Authorization(MUFASA, CLIENT_NONCE);
  return authorization.take(challenges) ? authorization.header(REQUEST) : null;
}

Deno.test("the answers are those of the RFCs, and the strongest question is answered", () => {
  assert.match(answerTo(MD5)!, new RegExp(`response="${MD5_RESPONSE}"`));
  assert.match(answerTo(MD5)!, /^Digest username="Mufasa", .*qop=auth, nc=00000001, cnonce="0a4f113b"/);
  for (
    const both of [[MD5, SHA_256], [SHA_256, MD5], [`${MD5}, ${SHA_256}`], [`Basic realm="x", ${SHA_256}`]]
  ) {
    assert.match(
      answerTo(...both)!,
      new RegExp(`response="${SHA_256_RESPONSE}".*algorithm=SHA-256`),
      both[0],
    );
  }
  assert.match(answerTo('Basic realm="x"', MD5)!, new RegExp(`response="${MD5_RESPONSE}"`));
  assert.equal(answerTo('Basic realm="x"'), "Basic TXVmYXNhOkNpcmNsZSBPZiBMaWZl");
  // Without qop as in RFC 2069: H(H(A1):nonce:H(A2)).
  const older = answerTo('Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"')!;
  assert.match(older, new RegExp(`response="${OLDER_RESPONSE}", algorithm=MD5$`));
});

Deno.test("a question is answered once until it is accepted, a stale nonce again, and others never", () => {
  const authorization = new Authorization(MUFASA, CLIENT_NONCE);
  assert.equal(authorization.header(REQUEST), null, "nothing is sent before the server asks");
  assert.ok(authorization.take([MD5]));
  authorization.header(REQUEST);
  assert.ok(!authorization.take([MD5]), "the password is wrong");
  assert.ok(authorization.take([`${MD5}, stale=true`]));
  assert.match(authorization.header(REQUEST)!, /nc=00000001/);
  authorization.accepted();
  assert.match(authorization.header(REQUEST)!, /nc=00000002/);
  authorization.accepted();
  for (let question = 1; question <= 4; question++) {
    assert.ok(authorization.take([`${MD5}, stale=true`]));
    authorization.header(REQUEST);
  }
  assert.ok(!authorization.take([`${MD5}, stale=true`]), "a server that asks for ever");
  for (
    const other of [
      "Bearer",
      "Digest",
      'Digest realm="x"',
      `Digest ${COMMON}, algorithm=SHA-512-256`,
      'Digest realm="x", nonce="y", qop="other"',
      `${MD5}, x="${"y".repeat(2048)}"`,
    ]
  ) assert.equal(answerTo(other), null, other.slice(0, 60));
});
