/** The setup that every script runs first: what it does where the operator names programs of their own. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { TemporaryFolder } from "../support/folders.ts";
import { programOnPath } from "../support/needs.ts";
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

Deno.test({
  name: "a Deno that is not the recorded one is not started, and the setup says so",
  ignore: Deno.build.os !== "linux" || Deno.build.arch !== "x86_64",
  async fn() {
    using folder = new TemporaryFolder();
    const [scripts, program] = [
      join(folder.path, "scripts"),
      join(folder.path, ".tools/npm/node_modules/@deno/linux-x64-glibc"),
    ];
    for (const path of [scripts, program, join(folder.path, "bin")]) {
      Deno.mkdirSync(path, { recursive: true });
    }
    Deno.copyFileSync(join(PROJECT_ROOT, "scripts/bootstrap.sh"), join(scripts, "bootstrap.sh"));
    const started = join(folder.path, "started");
    const impostor = `#!/bin/sh\necho "deno 2.9.6 (stable)"; touch ${started}\n`;
    for (const path of [join(program, "deno"), join(folder.path, "bin", "deno")]) {
      Deno.writeTextFileSync(path, impostor, { mode: 0o755 });
    }
    const { code, stderr } = await new Deno.Command("bash", {
      args: ["-c", `set -euo pipefail; source ${scripts}/bootstrap.sh`],
      env: { PATH: `${folder.path}/bin:${Deno.env.get("PATH")}` },
      stdout: "null",
      stderr: "piped",
    }).output();
    assert.equal(code, 1);
    assert.match(
      new TextDecoder().decode(stderr),
      /is not the recorded Deno 2\.9\.6: its SHA-256 differs\. Remove \.tools\/npm/,
    );
    assert.throws(() => Deno.statSync(started), Deno.errors.NotFound);
  },
});

Deno.test("a user who cannot become root is told the line to run, and nothing is tried", async () => {
  using folder = new TemporaryFolder();
  const log = join(folder.path, "installed");
  const bin = join(folder.path, "bin");
  Deno.mkdirSync(bin);
  for (const name of ["bash", "dirname", "uname", "sha256sum", "cut", "grep", "cat", "cksum", "env"]) {
    Deno.symlinkSync(programOnPath(name)!, join(bin, name));
  }
  Deno.writeTextFileSync(join(bin, "apt-get"), `#!/bin/sh\necho "$@" >>${log}\n`, { mode: 0o755 });
  Deno.writeTextFileSync(join(bin, "id"), "#!/bin/sh\necho 1000\n", { mode: 0o755 });
  const { code, stderr } = await new Deno.Command(join(bin, "bash"), {
    args: ["-c", `set -euo pipefail; source ${join(PROJECT_ROOT, "scripts/bootstrap.sh")}`],
    clearEnv: true,
    env: { PATH: bin },
    stdout: "null",
    stderr: "piped",
  }).output();
  assert.equal(code, 1);
  const said = new TextDecoder().decode(stderr);
  assert.match(
    said,
    /Run this line as root, then start this script again: apt-get update && apt-get install -y --no-install-recommends ffmpeg\n/,
  );
  assert.throws(() => Deno.statSync(log), Deno.errors.NotFound);
});
