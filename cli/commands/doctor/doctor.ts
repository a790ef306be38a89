/** `doctor`: checks everything that a caller needs, one after the other, and says what to do about what is at
 * fault.
 */

import { CliError } from "../../failure.ts";
import { Progress } from "../../output/progress.ts";
import { visible } from "../../output/visible.ts";
import type { Flags, Handler, Session } from "../../session.ts";
import { failure, type Finding, ok, unseen, type Verdict, warning } from "./finding.ts";
import { localDisk, localFfmpeg } from "./local_checks.ts";
import { tryMedia } from "./media_checks.ts";
import {
  checkKey,
  checkMetrics,
  checkModels,
  checkServer,
  checkSources,
  checkSystem,
} from "./server_checks.ts";
import { tryWebRtc } from "./webrtc_check.ts";

const NAME_COLUMNS = 18;

export const doctor: Handler = async (session, _args, flags) => {
  const { out } = session;
  const findings: Finding[] = [];
  for await (const finding of examine(session, flags)) {
    findings.push(finding);
    if (!out.isJson) print(session, finding);
    out.flush();
  }
  const count = (verdict: Verdict) => findings.filter((finding) => finding.verdict === verdict).length;
  const failures = count("failure");
  if (out.isJson) out.json({ failures, warnings: count("warning"), findings });
  else out.note(`${count("ok")} ok, ${count("warning")} warnings, ${failures} failures`);
  if (failures === 0) return;
  const [first] = findings.filter(({ verdict }) => verdict === "failure");
  const exit = first!.check === "server" ? "unreachable" : first!.check === "key" ? "refused" : "failed";
  throw new CliError(exit, `${failures} of ${findings.length} checks failed, the first is: ${first!.check}`);
};

async function* examine(session: Session, flags: Flags): AsyncGenerator<Finding> {
  yield settings(session);
  yield await localDisk();
  const here = await localFfmpeg();
  yield here.finding;
  try {
    yield* await checkServer(session);
  } catch (error) {
    session.signal.throwIfAborted();
    const { message, hint } = error as CliError;
    return yield failure("server", message, hint ?? "");
  }
  const client = await session.client();
  const accepted = await checkKey(session, client);
  yield accepted;
  if (accepted.verdict === "failure") return;
  yield* await checkSystem(session, client);
  yield await checkSources(session, client);
  const catalog = await checkModels(session, client);
  yield* catalog.findings;
  const { out } = session;
  using progress = new Progress(out, { what: "trying decoder, models and WebRTC" });
  const asked = flags.modelCall === false ? undefined : flags.model ?? catalog.toTry;
  const found = here.ffmpeg === undefined
    ? [unseen("decoding", "it was not tried: there is no ffmpeg here to make a film with")]
    : await tryMedia(session, { ffmpeg: here.ffmpeg, model: asked });
  const webRtc = await tryWebRtc(session);
  progress[Symbol.dispose]();
  yield* found;
  yield webRtc;
  yield* await checkMetrics(session);
  yield unseen("embedding sidecar", "whether it answers shows only in a live session with novelty on");
}

function settings({ settings: { file, sources } }: Session): Finding {
  const detail = `the address is from: ${sources.api_url}; the key is from: ${sources.api_key}`;
  return file.warnings.length > 0
    ? warning("settings", file.warnings.join("; "), `change ${file.path}`)
    : ok("settings", detail);
}

function print({ out }: Session, { check, verdict, detail, advice }: Finding): void {
  const { green, yellow, red, dim } = out.paint;
  const mark = {
    ok: green("ok     "),
    warning: yellow("warning"),
    failure: red("FAILURE"),
    unseen: dim("unseen "),
  };
  if (out.isQuiet && (verdict === "ok" || verdict === "unseen")) return;
  out.line(`${mark[verdict]}  ${visible(check).padEnd(NAME_COLUMNS)}  ${visible(detail)}`);
  if (advice) out.line(`${" ".repeat(9 + NAME_COLUMNS + 2)}${dim("->")} ${visible(advice)}`);
}
