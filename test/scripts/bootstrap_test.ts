/** The setup that every script runs first: what it does where the operator names programs of their own. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { TemporaryFolder } from "../support/folders.ts";
import { PROJECT_ROOT } from "../support/service.ts";

Deno.test("a program that a variable names and that is missing ends the setup; nothing is installed", async () => {
  using folder = new TemporaryFolder();
  const log = join(folder.path, "installed");
  Deno.writeTextFileSync(join(folder.path, "apt-get"), `#!/bin/sh\necho "$@" >>${log}\n`, { mode: 0o755 });
  for (const name of ["SERVICE_FFMPEG_PATH", "SERVICE_FFPROBE_PATH"]) {
    const { code, stderr } = await new Deno.Command("bash", {
      args: [join(PROJECT_ROOT, "scripts/deno"), "--version"],
      env: { PATH: `${folder.path}:${Deno.env.get("PATH")}`, [name]: "/nonexistent/program" },
      stdout: "null",
      stderr: "piped",
    }).output();
    assert.equal(code, 1);
    assert.equal(
      new TextDecoder().decode(stderr),
      `setup: ${name} must name an executable program, got '/nonexistent/program'; nothing was installed\n`,
    );
  }
  assert.throws(() => Deno.statSync(log), Deno.errors.NotFound);
});
