import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { readCertificate } from "../../src/process/certificate_files.ts";
import { readConfig } from "../../src/contract/config.ts";
import { readSecretFiles } from "../../src/process/environment.ts";
import { readBackends } from "../../src/process/setting_files.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { startModelServer } from "../support/models/model_server.ts";
import { startService } from "../support/service.ts";

const FILE = `[[backends]]
name = "edge"
type = "openai_compat"
base_url = "http://\${GPU_HOST}:8000"
`;
const ZONE = `[restricted_zone]
policy_id = "dock"
policy_version = 1
device_id = "cam"
enter_motion_score = 0.2
exit_motion_score = 0.05
enter_after_frames = 3
exit_after_frames = 5
region = { x = 0.1, y = 0.2, width = 0.3, height = 0.4 }
`;

/** What is read from a backend file with that text (none for null), and the faults. */
function readFile(text: string | Uint8Array | null, env: Record<string, string> = {}) {
  const folder = Deno.makeTempDirSync({ prefix: "environment-test-" });
  try {
    const path = join(folder, "service.toml");
    if (text !== null) {
      Deno.writeFileSync(path, typeof text === "string" ? new TextEncoder().encode(text) : text);
    }
    const whole = { SERVICE_API_KEYS: "key", SERVICE_CONFIG: path, GPU_HOST: "gpu", ...env };
    const faults: string[] = [];
    const { backends, restrictedZone } = readBackends(readConfig(whole), whole, faults);
    return { urls: backends.map(({ baseUrl }) => baseUrl), zone: restrictedZone?.policy_id ?? null, faults };
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("backends come from the URL variables, else from the file, else there are none", () => {
  const check = (
    text: string | null,
    env: Record<string, string>,
    urls: readonly string[],
    zone: string | null = null,
  ) => assert.deepEqual(readFile(text, env), { urls, zone, faults: [] });
  check(null, {}, []);
  check(FILE, {}, ["http://gpu:8000"]);
  check(FILE + ZONE, {}, ["http://gpu:8000"], "dock");
  check(FILE + ZONE, { SERVICE_SGLANG_BASE_URL: "http://a" }, ["http://a"]);
  check("not [ TOML", { SERVICE_VLLM_BASE_URL: "http://a", SERVICE_SGLANG_BASE_URL: "http://b/" }, [
    "http://a",
    "http://b",
  ]);
  check(FILE + ZONE, { SERVICE_WEBRTC_CROP: "0.1,0.2,0.3,0.4" }, ["http://gpu:8000"], "dock");
  check(FILE, { SERVICE_WEBRTC_CROP: "0,0,1,1" }, ["http://gpu:8000"]);
});

Deno.test("a file that cannot be used is a fault of the start that names the file", () => {
  const check = (
    text: string | Uint8Array | null,
    env: Record<string, string>,
    ...expected: readonly RegExp[]
  ) => {
    const { faults, urls } = readFile(text, env);
    assert.equal(faults.length, expected.length, faults.join("\n"));
    expected.forEach((pattern, index) => assert.match(faults[index]!, pattern));
    return urls;
  };
  check("a = ", {}, /^SERVICE_CONFIG ".*service\.toml": line 1, column \d+: not TOML/);
  check(new Uint8Array([0xff, 0xfe]), {}, /^SERVICE_CONFIG ".*" must be a file of UTF-8 text/);
  check(null, { SERVICE_CONFIG: "/" }, /^SERVICE_CONFIG "\/" must be a file of UTF-8 text/);
  check(
    `${FILE}model = ""\npriority = "y"\n`,
    {},
    /backends\[0\]\.priority must/,
    /backends\[0\]\.model must/,
  );
  check(
    FILE + ZONE,
    { SERVICE_WEBRTC_CROP: "0,0,1,1" },
    /^SERVICE_WEBRTC_CROP must be equal to restricted_zone/,
  );
  assert.deepEqual(
    check(null, { SERVICE_VLLM_BASE_URL: "http://a/v1" }),
    check(null, { SERVICE_VLLM_BASE_URL: "http://a" }),
  );
  assert.throws(
    () => readFile(FILE, { SERVICE_VLLM_BASE_URL: "" }),
    /SERVICE_VLLM_BASE_URL must be/,
    "empty counts as set",
  );
});

Deno.test("a service starts with the backends of its file", async () => {
  await using model = startModelServer();
  await using test = await startService({ MODEL_URL: model.url }, {
    backendFile: '[[backends]]\nname = "edge"\ntype = "openai_compat"\nbase_url = "${MODEL_URL}"\n',
  });
  assert.equal((await test.call("GET", "/v1/health")).status, 200);
});

Deno.test("each secret may come from a file instead of its variable, never from both", () => {
  using folder = new TemporaryFolder();
  const read = (name: string, content: string | Uint8Array | null, env: Record<string, string> = {}) => {
    const path = join(folder.path, "secret");
    if (content === null) Deno.removeSync(path);
    if (content !== null) {
      Deno.writeFileSync(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
    }
    const faults: string[] = [];
    const value = readSecretFiles({ ...env, [`${name}_FILE`]: path }, faults)[name];
    return { value, faults: faults.map((fault) => fault.replace(path, "PATH")) };
  };
  for (
    const name of [
      "SERVICE_API_KEYS",
      "SERVICE_WEBHOOK_SECRET",
      "SERVICE_VLLM_API_KEY",
      "SERVICE_SGLANG_API_KEY",
      "SERVICE_WEBRTC_TURN_CREDENTIAL",
      "SERVICE_MIRROR_URL",
    ]
  ) {
    assert.deepEqual(read(name, "hunter2\n"), { value: "hunter2", faults: [] });
    assert.deepEqual(read(name, " a\r\n", { [name]: "" }), { value: " a", faults: [] });
    const both = read(name, "hunter2\n", { [name]: "hunter3" });
    assert.deepEqual(both.faults, [`${name}_FILE and ${name} must not both be set: remove one of them`]);
    for (const content of [null, "", "hunter2\nhunter3", "\n", "x".repeat(70_000), new Uint8Array([0xff])]) {
      const { value, faults } = read(name, content);
      assert.equal(value, undefined);
      assert.equal(faults.length, 1);
      assert.match(
        faults[0]!,
        new RegExp(`^${name}_FILE must name a file with one line of UTF-8 text, got "PATH": `),
      );
      assert.doesNotMatch(faults[0]!, /hunter/);
    }
  }
  assert.equal(readSecretFiles({ SERVICE_BIND_ADDR_FILE: "/etc/passwd" }, []).SERVICE_BIND_ADDR, undefined);
  const config = readConfig({
    SERVICE_API_KEYS: "k",
    SERVICE_MIRROR_URL_FILE: "x",
    SERVICE_BIND_ADDR_FILE: "x",
  });
  assert.deepEqual(config.unknownVariables, ["SERVICE_BIND_ADDR_FILE"]);
});

Deno.test("the certificate of HTTP/3 is read with its key, and what cannot be used is a fault that names the setting", () => {
  const folder = Deno.makeTempDirSync({ prefix: "environment-test-" });
  const tls = join(import.meta.dirname!, "../support/http/tls");
  const otherKey = join(folder, "other.key");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  Deno.writeTextFileSync(otherKey, privateKey.export({ type: "pkcs8", format: "pem" }) as string);
  const read = (certificate: string, key: string, now = Date.now()) => {
    const env = { SERVICE_H3_TLS_CERT_PATH: certificate, SERVICE_H3_TLS_KEY_PATH: key };
    const faults: string[] = [];
    const found = readCertificate(readConfig({ SERVICE_API_KEYS: "k", ...env }), faults, { now: () => now });
    return { found, faults };
  };
  const [leaf, key] = [join(tls, "leaf.crt"), join(tls, "leaf.key")];
  const { found, faults } = read(leaf, key);
  assert.deepEqual(faults, []);
  assert.deepEqual(found, { chain: Deno.readTextFileSync(leaf), key: Deno.readTextFileSync(key) });
  const check = (given: ReturnType<typeof read>, ...patterns: RegExp[]) => {
    assert.equal(given.found, null);
    assert.equal(given.faults.length, patterns.length, given.faults.join("\n"));
    patterns.forEach((pattern, at) => assert.match(given.faults[at]!, pattern));
    for (const fault of given.faults) {
      assert.match(fault, /; \.\/scripts\/dev-certs makes both files .* SERVICE_TRANSPORT=h1h2/);
    }
  };
  const CERT = "^SERVICE_H3_TLS_CERT_PATH must name";
  const KEY = "^SERVICE_H3_TLS_KEY_PATH must";
  check(
    read(join(folder, "none.crt"), join(folder, "none.key")),
    new RegExp(`${CERT} a file with a certificate in PEM, got ".*none.crt": No such file`),
    new RegExp(`${KEY} name a file with a private key in PEM, got ".*none.key": No such file`),
  );
  check(
    read(key, leaf),
    new RegExp(`${CERT} a file that can be used`),
    new RegExp(`${KEY} name a file that can be used`),
  );
  const lockedKey = join(folder, "locked.key");
  const locked = privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "p" });
  Deno.writeTextFileSync(lockedKey, locked as string);
  check(read(leaf, lockedKey), /: its key is protected by a passphrase;/);
  check(read(key, leaf), /: it does not begin with a certificate in PEM;/, /: it has no private key in PEM;/);
  check(read(join(tls, "root.crt"), key), /that of an authority, not of a server/);
  check(read(leaf, key, Date.UTC(2200, 1)), /it was valid until Oct 27 .* 2126 GMT/);
  check(
    read(leaf, otherKey),
    new RegExp(`${KEY} hold the key of the certificate in ".*leaf.crt", got ".*other.key";`),
  );
  Deno.removeSync(folder, { recursive: true });
});
