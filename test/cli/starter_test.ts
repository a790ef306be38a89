/** `scripts/cli`: what it takes for a checked Deno, and what it does when the program is another one. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { TemporaryFolder } from "../support/folders.ts";
import { PROJECT_ROOT } from "../support/service.ts";

Deno.test({
  name: "a Deno that was changed after it was checked is not started",
  ignore: Deno.build.os !== "linux" || Deno.build.arch !== "x86_64",
  async fn() {
    using folder = new TemporaryFolder();
    const root = folder.path;
    const program = join(root, ".tools/npm/node_modules/@deno/linux-x64-glibc/deno");
    for (const path of [join(root, "scripts"), join(root, ".tools/deno_cache/npm"), join(program, "..")]) {
      Deno.mkdirSync(path, { recursive: true });
    }
    for (const name of ["scripts/cli", "scripts/bootstrap.sh", "deno.json", "deno.lock"]) {
      Deno.copyFileSync(join(PROJECT_ROOT, name), join(root, name));
    }
    const started = join(root, "started");
    Deno.writeTextFileSync(program, `#!/bin/sh\ntouch ${started}\necho 'deno 2.9.6 '\n`, { mode: 0o755 });
    const facts = await new Deno.Command("stat", {
      args: [
        "-L",
        "-c",
        "%n %d:%i %s %y %z",
        "--",
        program,
        ...["deno.lock", "deno.json", "scripts/bootstrap.sh"].map((name) => join(root, name)),
      ],
    }).output();
    const ready = join(root, ".tools/cli_ready");
    const run = async () => {
      const { code, stderr } = await new Deno.Command(join(root, "scripts/cli"), {
        args: ["health"],
        env: { PATH: "/usr/bin:/bin", HOME: root },
        clearEnv: true,
      }).output();
      return { code, stderr: new TextDecoder().decode(stderr) };
    };
    const refused = /is not the recorded Deno .*: its SHA-256 differs/;

    // Nothing says that it was checked.
    assert.match((await run()).stderr, refused);
    assert.throws(() => Deno.statSync(started), Deno.errors.NotFound);
    // What was checked is started without another look.
    Deno.writeTextFileSync(ready, `${program}\n${new TextDecoder().decode(facts.stdout)}`);
    assert.equal((await run()).code, 0);
    Deno.removeSync(started);
    // Its content changed since.
    Deno.writeTextFileSync(program, Deno.readTextFileSync(program).replace("touch", "touch "));
    const changed = await run();
    assert.match(changed.stderr, refused);
    assert.notEqual(changed.code, 0);
    assert.throws(() => Deno.statSync(started), Deno.errors.NotFound);
  },
});
