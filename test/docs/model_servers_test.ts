/** The settings that docs/model-servers.md prints, each tried against a stand-in that answers as that server
 * does.
 */

import assert from "node:assert/strict";
import {
  MODEL_PROGRAMS,
  type ModelProgram,
  type ModelProgramServer,
  startModelProgram,
} from "../support/models/model_programs.ts";
import { startService, type TestOptions, type TestService } from "../support/service.ts";

interface Section {
  readonly start: string;
  readonly settings: readonly string[];
  readonly files: readonly string[];
}

const PAGE = await Deno.readTextFile(new URL("../../docs/model-servers.md", import.meta.url));

/** The blocks of each section of the page, by the name of the stand-in. */
const SECTIONS: ReadonlyMap<string, Section> = new Map(
  PAGE.split(/^## /m).slice(1).map((text) => {
    const title = text.slice(0, text.indexOf("\n"));
    const blocks = (kind: string) =>
      Array.from(text.matchAll(new RegExp(`^\`\`\`${kind}\n(.*?)^\`\`\``, "gms")), ([, block]) => block!);
    return [
      title.toLowerCase().replaceAll(" ", "-"),
      { start: blocks("sh").join(""), settings: blocks("env"), files: blocks("toml") },
    ];
  }),
);

/** The models that the start lines of the page load, as the list of the server names them. */
const LOADED: Readonly<Record<ModelProgram, RegExp>> = {
  ollama: /^ollama pull (\S+)$/m,
  "llama.cpp": /--alias (\S+)/,
  "lm-studio": /^lms load (\S+)$/m,
  vllm: /^vllm serve (\S+)/m,
  sglang: /--model-path (\S+)/,
  openrouter: /^model = "(\S+)"$/m,
};
/** What a server has beside that one. */
const BESIDE: Partial<Record<ModelProgram, readonly string[]>> = {
  "lm-studio": ["text-embedding-nomic-embed-text-v1.5"],
};
const KEYS: Partial<Record<ModelProgram, string>> = {
  vllm: "secret-of-vllm",
  openrouter: "secret-of-openrouter",
};

function sectionOf(program: ModelProgram): Section & { readonly model: string } {
  const section = SECTIONS.get(program)!;
  const model = LOADED[program].exec(section.start || section.files.join(""))?.[1];
  assert.ok(model, `${program}: the page names no model`);
  return { ...section, model };
}

function start(program: ModelProgram, model: string): ModelProgramServer {
  const apiKey = KEYS[program];
  return startModelProgram(program, {
    models: [model, ...BESIDE[program] ?? []],
    ...(apiKey !== undefined && { apiKey }),
  });
}

/** The printed text, with the address of the stand-in in place of the usual one. */
function at(server: ModelProgramServer, text: string): string {
  const moved = text.replace(/https?:\/\/[^/\s"]+/g, server.origin);
  assert.notEqual(moved, text);
  return moved;
}

function variables(block: string): Record<string, string> {
  return Object.fromEntries(
    block.trim().split("\n").map((line) => {
      const [, name, value] = /^([A-Z_]+)=(.+)$/.exec(line) ?? assert.fail(line);
      return [name, value];
    }),
  );
}

/** Checks all that a caller and an operator see of a server that works. */
async function checkAll(test: TestService, server: ModelProgramServer, model: string): Promise<void> {
  const { json: { models } } = await test.call("GET", "/v1/models");
  // deno-lint-ignore no-explicit-any -- an answer
  const ready = models.filter(({ availability }: any) => availability === "ready").map(({ id }: any) => id);
  const { status, json } = await test.call("POST", "/v1/infer", { model, prompt: "What waits?" });
  assert.deepEqual([status, json.output_text], [200, "A forklift waits."], JSON.stringify(json));
  assert.ok(ready.includes(json.model), `${json.model} is not among ${ready}`);
  assert.equal(server.asked.at(-1)!.model, model, "named as the server names it");
  assert.equal((await test.call("POST", "/v1/runs", { model })).status, 200);
  const { json: system } = await test.call("GET", "/v1/system");
  assert.deepEqual(system.live_model, { id: json.model, is_known: true });
  const { json: health } = await test.call("GET", "/v1/system/health");
  assert.deepEqual([health.result, health.reasons.length], ["idle", 1], JSON.stringify(health));
}

for (const program of MODEL_PROGRAMS) {
  Deno.test(`the settings for ${program} work as the page prints them`, async () => {
    const { settings, files, model } = sectionOf(program);
    const tries: readonly { env: Record<string, string>; options: TestOptions }[] = [
      ...settings.map((block) => ({ env: variables(block), options: {} })),
      ...files.map((backendFile) => ({
        env: { OPENROUTER_API_KEY: KEYS.openrouter! },
        options: { backendFile },
      })),
    ];
    assert.ok(tries.length > 0, "the page has settings");
    for (const { env, options } of tries) {
      await using server = start(program, model);
      const moved = Object.fromEntries(
        Object.entries(env).map(([name, value]) => [name, value.includes("://") ? at(server, value) : value]),
      );
      const { backendFile } = options;
      await using test = await startService(
        moved,
        backendFile === undefined ? {} : { backendFile: at(server, backendFile) },
      );
      await checkAll(test, server, model);
    }
  });
}

Deno.test("a start line and the settings below it name the same port and the same key", () => {
  for (const program of MODEL_PROGRAMS) {
    const { start, settings } = sectionOf(program);
    const port = /--port (\d+)/.exec(start)?.[1];
    const key = /--api-key (\S+)/.exec(start)?.[1];
    for (const block of settings) {
      if (port !== undefined) assert.match(block, new RegExp(`:${port}/v1$`, "m"), program);
      if (key !== undefined) assert.match(block, new RegExp(`_API_KEY=${key}$`, "m"), program);
    }
  }
});

Deno.test("the table of the page says what each server answers to a question to an unknown model", async () => {
  for (const program of MODEL_PROGRAMS) {
    await using server = start(program, "any/model");
    const row = PAGE.split("\n").find((line) =>
      line.startsWith(`| [`) && line.includes(`(#${anchorOf(program)})`)
    );
    const path = program === "openrouter" ? "/api/v1" : "/v1";
    const answer = await fetch(`${server.origin}${path}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEYS[program] ?? "any"}` },
      body: JSON.stringify({ model: "other/model", messages: [] }),
    });
    await answer.body?.cancel();
    const expected = answer.status === 200 ? "answers with the model that it has" : String(answer.status);
    assert.equal(row?.split("|").at(-2)?.trim(), expected, program);
  }
});

function anchorOf(program: ModelProgram): string {
  return program.replace(".", "");
}
