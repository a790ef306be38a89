/** Webhooks in the console: one is made, its secret is shown once, deliveries fail, are looked at and sent
 * again, and signatures are checked.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { WebhookOfRun } from "../../client/mod.ts";
import {
  conditionsText,
  failingSentence,
  hookSentence,
  hookState,
} from "../../console/pages/webhooks/hook_state.ts";
import { SAMPLES } from "../../console/pages/webhooks/signature/samples.ts";
import { openConsole } from "../support/console_page.ts";
import { Receiver } from "../support/http/receiver.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { TempFolder } from "../support/media.ts";
import { CHROMIUM, needing } from "../support/needs.ts";
import { KEY_B, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** Receivers on loopback, and a last retry that is far enough away to be read of. */
const ON = {
  SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
  SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
  SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,1,5000",
};

async function keepAlive(test: TestService, runId: string, times = 1): Promise<void> {
  for (let time = 0; time < times; time++) {
    assert.equal((await test.call("POST", `/v1/runs/${runId}/keepalive`)).status, 200);
  }
}

function row(page: Page, text: string | RegExp) {
  return page.getByRole("row").filter({ hasText: text });
}

Deno.test({
  ...needing(CHROMIUM, "a webhook is made, fails, is looked at, sends again, and is deleted"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService(ON);
    await using receiver = await Receiver.start();
    const runId = await newRun(test);
    await using shown = await openConsole(test, { place: "/webhooks" });
    const { page } = shown;
    await page.getByText("No webhooks yet").waitFor();
    await page.keyboard.press("n");
    const dialog = page.getByRole("dialog", { name: "New webhook" });
    await dialog.getByRole("button", { name: "Make webhook" }).click();
    await dialog.getByText("Choose the run whose events are sent.").waitFor();
    await dialog.getByRole("combobox", { name: "Run" }).selectOption(runId);
    await dialog.getByLabel("Address").fill("ftp://127.0.0.1/");
    await dialog.getByLabel("Other kinds").fill("keepalive_refreshed");
    await dialog.getByRole("button", { name: "Make webhook" }).click();
    await dialog.getByText(/must be an https: or http: URL/).waitFor();
    await dialog.getByLabel("Address").fill(receiver.url);
    await dialog.getByText("Conditions and cooldown").click();
    await dialog.getByLabel("Least confidence").fill("2");
    await dialog.getByRole("button", { name: "Make webhook" }).click();
    await dialog.getByText(/must be from 0 to 1/).waitFor();
    await dialog.getByLabel("Least confidence").fill("");
    await dialog.getByLabel("Armed cameras").selectOption("any");
    await dialog.getByRole("button", { name: "Make webhook" }).click();

    // The secret is shown once, and signs what comes.
    const made = page.getByRole("dialog", { name: "Its signing secret" });
    const secret = (await made.locator("pre").innerText()).trim();
    assert.match(secret, /^[0-9a-f]{64}$/);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await made.getByRole("button", { name: "Copy" }).click();
    // deno-lint-ignore no-explicit-any -- a global of the page
    const copied = () => page.evaluate<string>(() => (navigator as any).clipboard.readText());
    await until("the secret is copied", async () => await copied() === secret);
    await shown.checkAccessible();
    await made.getByRole("link", { name: "See the webhook" }).click();
    await page.waitForURL(/#\/webhooks\/wh_/);
    await page.getByText("Nothing was sent yet").waitFor();
    await page.getByText("armed or not").waitFor();
    assert.ok(!(await page.content()).includes(secret));

    await keepAlive(test, runId, 3);
    await row(page, "delivered").nth(2).waitFor();
    await page.getByText("up to date").waitFor();

    // A receiver that fails: since when, how often, when again; then it is given up.
    receiver.answer = () => 503;
    await keepAlive(test, runId);
    await page.getByText(/It has been failing for .*; 3 attempts at event \d+; next try in [1-5]\.0 s\./)
      .waitFor();
    await row(page, "trying").waitFor();
    await page.getByText(/It has been failing for .*\. The last event was given up/).waitFor();
    await row(page, "given up").getByRole("button").click();
    const details = page.getByRole("region", { name: "Delivery", exact: true });
    await details.getByText(/Given up after 4 attempts, .*webhook returned HTTP 503/).waitFor();
    assert.equal(await details.getByRole("list", { name: "Attempts" }).getByRole("listitem").count(), 4);
    await details.getByText(/"sequence": \d+/).waitFor();
    await page.getByText("Copied").waitFor({ state: "detached" });
    await shown.checkAccessible();
    await shown.photograph("webhook");

    // Its signature is checked in the page, with the secret and with another one.
    await details.getByRole("button", { name: "Check the signature" }).click();
    const box = page.getByRole("region", { name: "Signatures" });
    await box.getByLabel("Signing secret").fill("f".repeat(64));
    await box.getByText(/The signatures are not of this body/).waitFor();
    await box.getByLabel("Signing secret").fill(secret);
    await box.getByText("The signatures are right.").waitFor();
    const body = await box.getByLabel("Body as received").inputValue();
    assert.equal(body, new TextDecoder().decode(receiver.received.at(-1)!.body));
    await box.getByLabel("Body as received").fill(`${body} `);
    await box.getByText(/right without the blanks/).waitFor();
    await box.getByRole("button", { name: "Python" }).click();
    await page.waitForURL(/lang=python/);
    await shown.checkAccessible();
    await shown.photograph("webhook-signature");
    await box.getByRole("button", { name: "Hide" }).click();

    // Everything is sent again; what was given up arrives now.
    receiver.answer = () => 204;
    const before = receiver.received.length;
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("r");
    const again = page.getByRole("dialog", { name: "Send events again" });
    await again.getByRole("button", { name: "Everything since its registration" }).click();
    await again.getByRole("button", { name: "Send again" }).click();
    await page.getByText("4 events sent again: 4 delivered.").waitFor();
    assert.equal(receiver.received.length, before + 4);
    await page.getByText("up to date").waitFor();

    // The list; another caller has none.
    await shown.show("/webhooks");
    await row(page, "up to date").waitFor();
    await shown.checkAccessible();
    await page.locator(".table-box").focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/webhooks\/wh_/);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete webhook" }).click();
    await page.getByText("No webhooks yet").waitFor();
    const { json: { webhooks } } = await test.call("GET", "/v1/webhooks");
    assert.deepEqual(webhooks, []);
    shown.checkQuiet(/422/);
  },
});

Deno.test({
  ...needing(
    CHROMIUM,
    "the list names what fails, another caller sees nothing of it, and webhooks may be off",
  ),
  ...LONG_TEST,
  async fn() {
    await using test = await startService(ON);
    await using receiver = await Receiver.start();
    receiver.answer = ({ path }) => path.startsWith("/dead") ? 500 : 204;
    const hookIds: string[] = [];
    for (const path of ["/hook", "/dead-one", "/dead-two", "/other"]) {
      const runId = await newRun(test);
      const url = new URL(path, receiver.url).href;
      const made = await test.call("POST", `/v1/runs/${runId}/webhooks`, { url, event_kinds: [] });
      assert.equal(made.status, 201, made.text);
      hookIds.push(made.json.webhook_id);
      await keepAlive(test, runId, 2);
    }
    await using shown = await openConsole(test, { place: "/webhooks" });
    const { page } = shown;
    await page.getByText(/^2 webhooks have been failing for up to /).waitFor();
    await row(page, "/dead-two").getByText("failing").waitFor();
    await page.getByLabel("Filter webhooks").fill("dead");
    assert.equal(await page.getByRole("row").count(), 3, "the head and two");
    await page.getByLabel("Filter webhooks").fill("");
    await shown.checkAccessible();
    await shown.photograph("webhooks");
    shown.checkQuiet();

    await using other = await openConsole(test, { place: `/webhooks/${hookIds[0]}`, key: KEY_B });
    await other.page.getByText("There is no such webhook").waitFor();
    await other.page.getByRole("link", { name: "All webhooks" }).click();
    await other.page.getByText("No webhooks yet").waitFor();
    other.checkQuiet();

    await test.restart(() => {}, { SERVICE_WEBHOOK_SECRET: "" });
    await using off = await openConsole(test, { place: "/webhooks" });
    await off.page.getByText("Webhooks are off").waitFor();
    await off.checkAccessible();
    await off.photograph("webhooks-off");
    off.checkQuiet();
  },
});

Deno.test("the code of each language says of real deliveries which are genuine", async () => {
  await using test = await startService(ON);
  await using receiver = await Receiver.start();
  using folder = new TempFolder();
  const runId = await newRun(test);
  const { json: { signing_secret } } = await test.call("POST", `/v1/runs/${runId}/webhooks`, {
    url: receiver.url,
  });
  await keepAlive(test, runId);
  await receiver.waitFor(() => receiver.received.length === 1);
  const { headers, body } = receiver.received[0]!;
  const write = (name: string, content: string | Uint8Array) => {
    const path = join(folder.path, name);
    if (typeof content === "string") Deno.writeTextFileSync(path, content);
    else Deno.writeFileSync(path, content);
    return path;
  };
  write("body.json", body);
  const run = (command: string, args: string[], env: Record<string, string> = {}) => {
    const { stdout, stderr } = new Deno.Command(command, { args, env, cwd: folder.path }).outputSync();
    const text = new TextDecoder().decode(stdout).trim();
    return text === "" ? new TextDecoder().decode(stderr) : text;
  };
  const given = JSON.stringify(
    Object.fromEntries(Object.entries(headers).filter(([name]) => /^webhook-/.test(name))),
  );

  const variables = {
    WEBHOOK_ID: headers["webhook-id"]!,
    WEBHOOK_TIMESTAMP: headers["webhook-timestamp"]!,
    SIGNING_SECRET: signing_secret,
  };
  const shell = write("check.sh", SAMPLES.shell!.code);
  assert.equal(run("sh", [shell], variables), headers["webhook-signature"]);

  const python = write(
    "check.py",
    `${SAMPLES.python!.code}\n\nimport json\nbody = open("body.json", "rb").read()\nheaders = json.loads(${
      JSON.stringify(given)
    })\nsecret = "${signing_secret}"\nprint(is_genuine(headers, body, secret), is_genuine(headers, body + b" ", secret))\n`,
  );
  assert.equal(run("python3", [python]), "True False");

  const typescript = write(
    "check.ts",
    `${SAMPLES.typescript!.code}
const body = new Uint8Array(Deno.readFileSync("body.json"));
const headers = new Headers(${given});
const secret = "${signing_secret}";
console.log(await isGenuine(headers, body.buffer, secret), await isGenuine(headers, body.slice(1).buffer, secret));
`,
  );
  assert.equal(
    run(Deno.execPath(), ["run", "--quiet", "--check", "--no-config", "--allow-read=.", typescript]),
    "true false",
  );
});

Deno.test("a webhook whose receiver is gone is told from one that fails", () => {
  const failing: WebhookOfRun = {
    ...{ webhook_id: "wh_0", run_id: "run-0", url: "", event_kinds: [], filter: null, cooldown: null },
    ...{ source: null, registered_seq: 1, last_terminal_seq: 2, run_last_seq: 2, delivered: 0 },
    ...{ dead_letters: 1, withheld: 0, withheld_pending: 0, last_error: "", failing_since_ms: 1000 },
    ...{ retry: null, state: "active", gone_since_ms: null, recent_dead_letters: [], redelivery: null },
  };
  const gone: WebhookOfRun = { ...failing, state: "gone", gone_since_ms: 61_000 };
  assert.deepEqual([failing, gone].map((hook) => hookState(hook).word), ["failing", "receiver gone"]);
  assert.equal(
    hookSentence(gone, 181_000),
    "The receiver answered 410 Gone 2 min ago: no event is sent to it. Send events again to start it again.",
  );
  assert.equal(failingSentence([gone], 181_000), null);
  assert.equal(failingSentence([gone, failing], 181_000), "1 webhook has been failing for 3 min.");
});

Deno.test("the conditions of a webhook are told in words", () => {
  assert.equal(conditionsText({ filter: null, cooldown: null }), "");
  const filter = { labels: ["door", "person"], zones: ["dock"], sources: ["gate"], min_confidence: 0 };
  assert.equal(
    conditionsText({ filter, cooldown: { interval_ms: 90_000, per: [] } }),
    "; labelled door or person, in zone dock, of source gate, with confidence 0 or more, once in 90 s for each webhook",
  );
});
