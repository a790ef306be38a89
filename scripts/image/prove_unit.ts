/** Runs the systemd unit of deploy/ on the file system of the image: systemd is booted there by
 * systemd-nspawn, in a network of its own.
 */

import assert from "node:assert/strict";
import { basename, join } from "node:path";

const NAME = "video-analysis";
const KEY = "the-key-of-the-proof";
const BOOT_MS = 60_000;

/** What a shell inside asks: each answer is one line. */
const QUESTIONS = `
set -euo pipefail
for try in $(seq 150); do curl -fs http://127.0.0.1:8080/v1/health >/dev/null && break; sleep 0.2; done
ask() { curl -fsS -H 'x-api-key: ${KEY}' "$@"; }
field() { sed "s/.*\\"$1\\":\\"\\{0,1\\}\\([^\\",}]*\\).*/\\1/"; }
path=$(ask -F file=@/root/clip.mp4 http://127.0.0.1:8080/v1/upload | field file_path)
run=$(ask -H 'content-type: application/json' -d '{}' http://127.0.0.1:8080/v1/runs | field run_id)
ask -H 'content-type: application/json' -d "{\\"source_uri\\":\\"$path\\",\\"max_frames\\":1000}" "http://127.0.0.1:8080/v1/runs/$run/ingest" | field decoded_frames; echo
ask http://127.0.0.1:8080/v1/metrics | sed -n 's/^service_decoder_cage{level="\\(.*\\)"} 1$/\\1/p'
systemd-analyze security --no-pager ${NAME} 2>/dev/null | sed -n 's/.*exposure level for ${NAME}.service: \\([0-9.]*\\).*/\\1/p'
systemctl stop ${NAME}
systemctl show ${NAME} -p Result -p ExecMainStatus | sort | tr '\\n' ' '
`;

export async function proveUnit(root: string, unit: string, clip: string): Promise<string> {
  const etc = join(root, "etc");
  Deno.mkdirSync(join(etc, NAME));
  Deno.chmodSync(join(etc, NAME), 0o755);
  Deno.writeTextFileSync(join(etc, NAME, "sources.toml"), "", { mode: 0o644 });
  Deno.writeTextFileSync(join(etc, NAME, "api_keys"), `${KEY}\n`, { mode: 0o600 });
  Deno.copyFileSync(unit, join(etc, "systemd/system", basename(unit)));
  const wanted = join(etc, "systemd/system/multi-user.target.wants");
  Deno.mkdirSync(wanted, { recursive: true });
  Deno.symlinkSync(`../${basename(unit)}`, join(wanted, basename(unit)));
  Deno.copyFileSync(clip, join(root, "root/clip.mp4"));
  const container = new Deno.Command("systemd-nspawn", {
    args: [
      ...["-q", "-D", root, "--register=no", "--keep-unit", "--private-network", "--link-journal=no"],
      ...["--console=pipe", "-b"],
    ],
    env: { SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: isUnified() ? "1" : "0" },
    ...{ stdin: "null", stdout: "null", stderr: "null" },
  }).spawn();
  try {
    const [decoded, cage, exposure, ended] = await answers(await systemdOf(container.pid));
    assert.equal(decoded, "720");
    assert.equal(cage, "bubblewrap");
    assert.ok(Number(exposure) < 3, exposure);
    assert.equal(ended, "ExecMainStatus=0 Result=success");
    return `systemd started the unit (exposure ${exposure}), which decoded ${decoded} frames in the cage ${cage} and ended with code 0`;
  } finally {
    container.kill("SIGTERM"); // systemd-nspawn has systemd power off
    await container.status;
  }
}

function isUnified(): boolean {
  return Deno.readTextFileSync("/proc/mounts").includes(" /sys/fs/cgroup cgroup2 ");
}

/** The process id of the first process of the container, as soon as its bus is there. */
async function systemdOf(pid: number): Promise<number> {
  const untilMs = Date.now() + BOOT_MS;
  while (Date.now() < untilMs) {
    const [first] = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).trim().split(" ");
    if (first) {
      const { success } = await new Deno.Command("nsenter", {
        args: ["-t", first, "-a", "systemctl", "is-active", "--quiet", NAME],
        ...{ stdout: "null", stderr: "null" },
      }).output();
      if (success) return Number(first);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`systemd did not start the unit within ${BOOT_MS} ms`);
}

async function answers(pid: number): Promise<string[]> {
  const { success, stdout, stderr } = await new Deno.Command("nsenter", {
    args: ["-t", String(pid), "-a", "bash", "-c", QUESTIONS],
  }).output();
  const said = new TextDecoder().decode(stdout).trim();
  assert.ok(success, `${said}\n${new TextDecoder().decode(stderr)}`);
  return said.split("\n").map((line) => line.trim());
}
