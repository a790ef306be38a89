import assert from "node:assert/strict";
import {
  BackendFaults,
  type BackendFile,
  backendsOfVariables,
  parseBackendFile,
} from "../../../src/model/infer/backend_file.ts";

const ENV = {
  HOST: "gpu-1.lan",
  PORT: "8000",
  KEY: "s3cret-key",
  EMPTY: "",
  LOOP: "${KEY}",
  SPACED: "s3cret key\n",
};

const EDGE = `[[backends]]
name = "edge"
type = "openai_compat"
base_url = "http://10.0.0.7:8000"
`;
const CLOUD = `[[backends]]
name = "cloud"
type = "gemini"
api_key = "\${KEY}"
`;
const ZONE = `[restricted_zone]
policy_id = "dock-night"
policy_version = 2
device_id = "cam-\${PORT}"
enter_motion_score = 0.2
exit_motion_score = 0.05
enter_after_frames = 3
exit_after_frames = 5
[restricted_zone.region]
x = 0.1
y = 0.1
width = 0.5
height = 0.5
`;

const read = (text: string): BackendFile => parseBackendFile(text, ENV);

function faultsOf(text: string): readonly string[] {
  try {
    read(text);
  } catch (error) {
    assert.ok(error instanceof BackendFaults, String(error));
    for (const fault of error.faults) assert.doesNotMatch(fault, /s3cret|hunter2/, "a secret is never told");
    return error.faults;
  }
  return [];
}

Deno.test("a backend file gives backends by priority, with defaults and its variables filled in", () => {
  assert.deepEqual(
    read(`
      [[backends]]
      name = "Edge-SGLang"
      type = "openai_compat"
      base_url = "https://\${HOST}:\${PORT}/llm/"
      api_key = "Bearer-\${KEY}"
      model = "qwen/qwen3-vl-4b-instruct"
      upstream_model = "local/\${HOST}"
      [[backends]]
      name = "first"
      type = "openai_compat"
      base_url = "http://[::1]:8000"
      openai_kind = "mlx"
      priority = -1
      ${CLOUD}
    `),
    {
      backends: [
        {
          type: "openai_compat",
          name: "first",
          kind: "mlx",
          baseUrl: "http://[::1]:8000",
          apiKey: null,
          model: null,
          upstreamModel: null,
          priority: -1,
        },
        {
          type: "openai_compat",
          name: "Edge-SGLang",
          kind: "sglang",
          baseUrl: "https://gpu-1.lan:8000/llm",
          apiKey: "Bearer-s3cret-key",
          model: "Qwen/Qwen3-VL-4B-Instruct",
          upstreamModel: "local/gpu-1.lan",
          priority: 100,
        },
        {
          type: "gemini",
          name: "cloud",
          baseUrl: "https://generativelanguage.googleapis.com",
          apiKey: "s3cret-key",
          model: "gemini-3.5-flash-lite",
          priority: 100,
        },
      ],
      restrictedZone: null,
    },
  );
});

Deno.test("the zone of the file has the shape of a policy's zone", () => {
  assert.deepEqual(read(ZONE), {
    backends: [],
    restrictedZone: {
      policy_id: "dock-night",
      policy_version: 2,
      device_id: "cam-8000",
      region: { x: 0.1, y: 0.1, width: 0.5, height: 0.5 },
      enter_motion_score: 0.2,
      exit_motion_score: 0.05,
      enter_after_frames: 3,
      exit_after_frames: 5,
    },
  });
});

Deno.test("files with little or nothing in them are valid", () => {
  for (const text of ["", "# nothing\n", "backends = []\n"]) {
    assert.deepEqual(read(text), { backends: [], restrictedZone: null }, text);
  }
  assert.equal(
    read(CLOUD.replace("cloud", "${UNSET}")).backends[0]!.name,
    "${UNSET}",
    "a name may stay as it is",
  );
  assert.equal(read(EDGE.replace("edge", "${LOOP}")).backends[0]!.name, "${KEY}", "filled in once");
});

Deno.test("a fault names its place and its rule", () => {
  const check = (text: string, ...expected: readonly RegExp[]) => {
    const faults = faultsOf(text);
    assert.equal(faults.length, expected.length, `${text}\n${faults.join("\n")}`);
    expected.forEach((pattern, index) => assert.match(faults[index]!, pattern, text));
  };
  const edge = (line: string, gone?: RegExp) => EDGE.replace(gone ?? /$^/, "") + line;
  const cloud = (line: string, gone?: RegExp) => CLOUD.replace(gone ?? /$^/, "") + line;

  check("backends = 3", /^backends must be written as \[\[backends\]\], got 3$/);
  check("[backends]\nname = 'x'", /^backends must be written as \[\[backends\]\]/);
  check("backend = 1", /^backend is not a field, the fields here are backends, restricted_zone$/);
  check("[[backends]]\nname = 'x'", /^backends\[0\].type must be one of openai_compat, gemini, got none$/);
  check("[[backends]]\ntype = 'vllm'", /^backends\[0\].type must be one of .*, got "vllm"$/);
  check(edge("", /name.*\n/), /^backends\[0\].name must be a text that is not blank, got none$/);
  check(EDGE + EDGE, /^backends\[1\].name must differ from that of backends\[0\], got "edge"$/);
  check(edge("", /base_url.*\n/), /^backends\[0\].base_url must be a text/);
  for (
    const url of [
      "gpu:8000",
      "ftp://gpu",
      "/llm",
      "http://gpu?key=1",
      "http://gpu#a",
      "http://${UNSET}/a",
      "${UNSET}",
    ]
  ) {
    const faults = faultsOf(EDGE.replace("http://10.0.0.7:8000", url));
    assert.match(faults.join(), /^backends\[0\].base_url must be a valid http\(s\) URL/, url);
    if (url.includes("UNSET")) assert.match(faults.join(), /where UNSET is not set/);
  }
  check(EDGE.replace("10.0.0.7", "me:hunter2@gpu"), /base_url must be .*, got a value that is not shown$/);
  check(EDGE.replace('"http://10.0.0.7:8000"', '"${EMPTY}"'), /base_url must be a text that is not blank/);
  check(edge("openai_kind = 'ollama'"), /openai_kind must be one of vllm, sglang, mlx, got "ollama"$/);
  check(edge(`model = '${"m".repeat(257)}'`), /^backends\[0\].model must be at most 256 bytes: got 257/);
  check(edge('model = "a\\u0007b"'), /^backends\[0\].model must not contain control characters/);
  check(edge("model = ' '"), /^backends\[0\].model must be a text that is not blank/);
  check(edge("upstream_model = 'local/x'"), /^backends\[0\].upstream_model requires model/);
  check(edge("priority = 1.5"), /^backends\[0\].priority must be an integer, got 1.5$/);
  check(edge("priority = '1'"), /^backends\[0\].priority must be an integer, got "1"$/);
  check(edge("baseurl = 'http://x'"), /^backends\[0\].baseurl is not a field/);
  check(edge("api_key = ''"), /^backends\[0\].api_key must be a key of .*, got another value$/);
  check(edge("api_key = 7"), /^backends\[0\].api_key must be/);
  check(edge("api_key = '${SPACED}'"), /^backends\[0\].api_key must be/);
  check(edge("", /name.*\n/) + "api_key = 1", /name/, /api_key/);
  check(cloud("", /api_key.*\n/), /^backends\[0\].api_key must be .*, got none$/);
  check(CLOUD.replace("${KEY}", "a-${UNSET}-${ALSO_UNSET}"), /, got UNSET, ALSO_UNSET, not set$/);
  check(CLOUD.replace("${KEY}", "${EMPTY}"), /api_key must be/);
  check(CLOUD.replace("${KEY}", "${KEY:-x}"), /, got \$\{…\} with more than a name in it, not set$/);
  check(CLOUD.replace("${KEY}", "${toString}"), /got toString, not set$/);
  check(cloud("openai_kind = 'vllm'"), /^backends\[0\].openai_kind is not a field/);
  check(cloud("upstream_model = 'x'"), /^backends\[0\].upstream_model is not a field/);
  check(cloud("base_url = 'nowhere'"), /^backends\[0\].base_url must be/);
  check(EDGE + cloud("model = 9"), /^backends\[1\].model must be a text that is not blank/);

  const zone = (from: string, to: string) => ZONE.replace(from, to);
  check(
    zone("policy_version = 2", "policy_version = 0"),
    /^restricted_zone.policy_version must be at least 1: got 0/,
  );
  check(zone("policy_version = 2", ""), /^restricted_zone.policy_version must be an integer, got none/);
  check(zone("dock-night", ""), /^restricted_zone.policy_id must be/);
  check(zone("dock-night", "é".repeat(65)), /^restricted_zone.policy_id must have 1 to 128 bytes/);
  check(zone("dock-night", "a\\u0007b"), /^restricted_zone.policy_id must not have control/);
  check(zone("enter_motion_score = 0.2", "enter_motion_score = 0.05"), /enter_motion_score must be above/);
  check(
    zone("enter_motion_score = 0.2", "enter_motion_score = 1.2"),
    /enter_motion_score must be from 0 to 1: got 1.2/,
  );
  check(
    zone("enter_motion_score = 0.2", "enter_motion_score = nan"),
    /must be from 0 to 1: got NaN/,
  );
  check(
    zone("enter_after_frames = 3", "enter_after_frames = 301"),
    /must be from 1 to 300: got 301/,
  );
  check(zone("x = 0.1", "x = 0.6"), /^restricted_zone.region must lie inside \[0, 1\]/);
  check(zone("width = 0.5", "width = 0"), /^restricted_zone.region must lie .* with a size above 0/);
  check(zone("width = 0.5", "width = 0.90001"), /^restricted_zone.region must lie inside/);
  check(zone("width = 0.5", "width = 'a'"), /^restricted_zone.region.width must be a number/);
  check(
    zone("width = 0.5", "width = 'a'").replace("x = 0.1", "x = 2"),
    /region.width must be a number, got "a"/,
  );
  check(zone("height = 0.5", "height = 0.5\nz = 1"), /^restricted_zone.region.z is not a field/);
  check(ZONE.slice(0, ZONE.indexOf("[restricted_zone.region]")), /^restricted_zone.region must be a table/);
});

Deno.test("all faults are reported together, and none repeats the text of a file that is no TOML", () => {
  assert.equal(faultsOf(`${EDGE}priority = "x"\n${CLOUD}model = 1\n${ZONE}extra = 1\n`).length, 3);
  const check = (text: string, expected: RegExp) => assert.match(faultsOf(text).join(), expected, text);
  check('[[backends]]\napi_key = "hunter2', /^line 2, column \d+: not TOML: /);
  check("[[backends]]\nhunter2", /^line 2, column \d+: not TOML: /);
  check('name = "a"\nname = "hunter2"', /^line 2, column \d+: not TOML: trying to redefine/);
});

Deno.test("the URL variables stand for two backends, and without them the file decides", () => {
  const none = {
    vllmBaseUrl: undefined,
    vllmApiKey: "key",
    sglangBaseUrl: undefined,
    sglangApiKey: undefined,
  };
  assert.equal(backendsOfVariables(none), null);
  const both = backendsOfVariables({
    ...none,
    vllmBaseUrl: "http://one:8000",
    sglangBaseUrl: "http://two:8000",
  });
  assert.deepEqual(
    both!.backends.map((backend) => [backend.name, backend.priority, backend.apiKey, backend.model]),
    [["vllm", 1, "key", null], ["sglang", 2, null, null]],
  );
  const second = backendsOfVariables({ ...none, sglangBaseUrl: "http://two:8000" });
  assert.deepEqual(second!.backends.map((backend) => [backend.name, backend.priority]), [["sglang", 2]]);
  assert.throws(
    () =>
      backendsOfVariables({
        ...none,
        vllmApiKey: "s3cret\n",
        vllmBaseUrl: "http://one",
        sglangBaseUrl: "http://two",
      }),
    (error: BackendFaults) =>
      error.faults.length === 1 &&
      /^SERVICE_VLLM_API_KEY must be.*; set it to the key alone, or remove it/.test(error.faults[0]!) &&
      !/s3cret/.test(error.message),
  );
});

Deno.test("a base URL may end as the pages of servers print it, and a backend may name any model", () => {
  const baseUrls = (url: string) => [
    read(EDGE.replace("http://10.0.0.7:8000", url)).backends[0]!.baseUrl,
    ...backendsOfVariables({ vllmBaseUrl: url, sglangBaseUrl: url })!.backends.map(({ baseUrl }) => baseUrl),
  ];
  const same = (url: string) => [url, url, url];
  for (const end of ["", "/v1", "/V1", "/v1/chat/completions", "/v1/models"]) {
    assert.deepEqual(baseUrls(`http://one:8000${end}`), same("http://one:8000"), end);
    assert.deepEqual(baseUrls(`https://host.example/api${end}`), same("https://host.example/api"), end);
  }
  assert.equal(read(EDGE.replace(":8000", ":8000/v1/")).backends[0]!.baseUrl, "http://10.0.0.7:8000");
  assert.deepEqual(baseUrls("http://one/v10"), same("http://one/v10"), "not that path");
  const models = read(`${EDGE}model = " qwen2.5vl:7b "\n${CLOUD}model = "gemini-9"`).backends;
  assert.deepEqual(models.map(({ model }) => model), ["qwen2.5vl:7b", "gemini-9"]);
});
