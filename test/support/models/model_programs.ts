/** Stand-ins of the model servers that people run: each answers on loopback as that program does. */

import { check } from "../http/scripted_server.ts";

export const MODEL_PROGRAMS = ["ollama", "llama.cpp", "lm-studio", "vllm", "sglang", "openrouter"] as const;
export type ModelProgram = typeof MODEL_PROGRAMS[number];

export interface AskedModel {
  /** Name of the model in the request. */
  readonly model: string;
  readonly authorization: string | null;
}

export interface ModelProgramServer extends AsyncDisposable {
  /** Address of the server, `http://127.0.0.1:…`, without the path of the API. */
  readonly origin: string;
  /** Questions that came whole, refused ones included. */
  readonly asked: readonly AskedModel[];
  /** How often the server was asked for its models. */
  readonly lists: number;
  /** May be changed while it runs. */
  models: readonly string[];
}

interface Manner {
  /** What its API begins with. */
  readonly path: string;
  list(models: readonly string[]): unknown;
  /** The server's answer to a question to another model; null where it answers for any name. */
  unknown(model: string): { readonly status: number; readonly body: unknown } | null;
  /** The server's answer where the key is not the right one. */
  readonly wrongKey: unknown;
  /** Whether the list wants the key, too. */
  readonly isListClosed: boolean;
}

const created = 1_760_000_000;
const entry = (owned_by: string) => (id: string) => ({ id, object: "model", created, owned_by });
const listOf = (data: readonly unknown[]) => ({ object: "list", data });

const MANNERS: Readonly<Record<ModelProgram, Manner>> = {
  ollama: {
    path: "/v1",
    // Without any model its list is null, not empty.
    list: (models) => ({ object: "list", data: models.length === 0 ? null : models.map(entry("library")) }),
    unknown: (model) => ({
      status: 404,
      body: {
        error: {
          message: `model "${model}" not found, try pulling it first`,
          type: "api_error",
          param: null,
          code: null,
        },
      },
    }),
    wrongKey: null,
    isListClosed: false,
  },
  "llama.cpp": {
    path: "/v1",
    list: (models) => ({
      models: models.map((name) => ({
        name,
        model: name,
        type: "model",
        capabilities: ["completion", "multimodal"],
      })),
      ...listOf(models.map((id) => ({ ...entry("llamacpp")(id), meta: { n_ctx_train: 262_144 } }))),
    }),
    unknown: () => null,
    wrongKey: { error: { message: "Invalid API Key", type: "authentication_error", code: 401 } },
    isListClosed: false,
  },
  "lm-studio": {
    path: "/v1",
    list: (models) => listOf(models.map((id) => ({ id, object: "model", owned_by: "organization_owner" }))),
    unknown: (model) => ({
      status: 404,
      body: {
        error: {
          message: `Model "${model}" not found`,
          type: "invalid_request_error",
          code: "model_not_found",
        },
      },
    }),
    wrongKey: null,
    isListClosed: false,
  },
  vllm: {
    path: "/v1",
    list: (models) =>
      listOf(models.map((id) => ({ ...entry("vllm")(id), root: id, parent: null, max_model_len: 32_768 }))),
    unknown: (model) => ({
      status: 404,
      body: {
        error: {
          message: `The model \`${model}\` does not exist.`,
          type: "NotFoundError",
          param: "model",
          code: 404,
        },
      },
    }),
    wrongKey: { error: "Unauthorized" },
    isListClosed: true,
  },
  sglang: {
    path: "/v1",
    list: (models) =>
      listOf(models.map((id) => ({ ...entry("sglang")(id), root: id, max_model_len: 32_768 }))),
    unknown: () => null,
    wrongKey: { error: "Unauthorized" },
    isListClosed: true,
  },
  openrouter: {
    path: "/api/v1",
    list: (models) => ({
      data: [...models, ...OTHERS].map((id) => ({
        id,
        name: id,
        created,
        context_length: 131_072,
        architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
        pricing: { prompt: "0.0000001", completion: "0.0000004" },
      })),
    }),
    unknown: (model) => ({
      status: 400,
      body: { error: { message: `${model} is not a valid model ID`, code: 400 }, user_id: "user_1" },
    }),
    wrongKey: { error: { message: "No auth credentials found", code: 401 } },
    isListClosed: false,
  },
};

/** What else a broker of models has. */
const OTHERS = Array.from({ length: 400 }, (_, at) => `someone/model-${at}`);

export interface ModelProgramOptions {
  readonly models: readonly string[];
  /** The bearer token that it wants; without one it takes any. */
  readonly apiKey?: string;
  readonly text?: string;
}

export function startModelProgram(
  program: ModelProgram,
  { models, apiKey, text = "A forklift waits." }: ModelProgramOptions,
): ModelProgramServer {
  const manner = MANNERS[program];
  const asked: AskedModel[] = [];
  let lists = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const authorization = request.headers.get("authorization");
    const isKnown = apiKey === undefined || authorization === `Bearer ${apiKey}`;
    const what = `${request.method} ${pathname}`;
    if (what === `GET ${manner.path}/models`) {
      lists += 1;
      const isOpen = isKnown || !manner.isListClosed;
      return isOpen
        ? Response.json(manner.list(own.models))
        : Response.json(manner.wrongKey, { status: 401 });
    }
    if (what !== `POST ${manner.path}/chat/completions`) {
      await request.body?.cancel();
      return new Response("404 page not found", { status: 404 });
    }
    const body = await request.json();
    check(typeof body.model === "string" && Array.isArray(body.messages), "no question");
    if (!isKnown) return Response.json(manner.wrongKey, { status: 401 });
    asked.push({ model: body.model, authorization });
    const refusal = own.models.includes(body.model) ? null : manner.unknown(body.model);
    if (refusal) return Response.json(refusal.body, { status: refusal.status });
    return Response.json({
      id: "chatcmpl-1",
      object: "chat.completion",
      created,
      model: body.model,
      choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
      usage: { prompt_tokens: 31, completion_tokens: 6, total_tokens: 37 },
    });
  });
  const own: ModelProgramServer = {
    origin: `http://127.0.0.1:${server.addr.port}`,
    asked,
    get lists() {
      return lists;
    },
    models,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return own;
}
