import assert from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import {
  foldWebhook,
  isForAnyPayload,
  isForWebhooks,
  mayMatch,
  newWebhookId,
  type Webhook,
  webhookKinds,
  webhookTarget,
} from "../../../src/model/webhooks/webhook.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { FieldRules } from "../../../src/model/field_rules.ts";
import { checkedCooldown, cooldownKey, Cooldowns } from "../../../src/model/webhooks/cooldown.ts";
import { checkedFilter, eventFacts, type GivenFilter, meets } from "../../../src/model/webhooks/filter.ts";
import { bodySignature, deliveryHeaders, signingKey } from "../../../src/model/webhooks/signature.ts";

const RUN = "run-00000000000000000000000000000001";
const HOOK = "wh_000000000000000000000001";
const ROOT = "0123456789abcdef0123456789abcdef";
const BODY = new TextEncoder().encode('{"specversion":"1.0"}');

Deno.test("the key and the signature are the expected ones", () => {
  const key = signingKey(ROOT, RUN, HOOK);
  assert.equal(key.toHex(), "7d352251c3b1d4b347eeffc94939b89634ac0b623f365f7d2c2774feb8dde8cd");
  assert.equal(
    bodySignature(key, BODY),
    "v1=16473ccc41c718fd71808de06e5d8b6a30878ab9d17c12b61343dffb4bd1f4ac",
  );
});

Deno.test("every hook of every run and root has a key of its own", () => {
  const keys = [
    signingKey(ROOT, RUN, HOOK),
    signingKey(ROOT, RUN, HOOK.replace(/1$/, "2")),
    signingKey(ROOT, RUN.replace(/1$/, "2"), HOOK),
    signingKey(ROOT.replace(/f$/, "e"), RUN, HOOK),
  ].map((key) => key.toHex());
  assert.equal(new Set(keys).size, keys.length);
});

Deno.test("the headers are the service's own and those of Standard Webhooks", () => {
  const headers = deliveryHeaders(signingKey(ROOT, RUN, HOOK), `${RUN}:7`, 1_764_316_800_999, BODY);
  assert.deepEqual(headers, {
    "content-type": "application/cloudevents+json",
    "user-agent": "service-webhook/1",
    "x-service-event-id": `${RUN}:7`,
    "x-service-signature": "v1=16473ccc41c718fd71808de06e5d8b6a30878ab9d17c12b61343dffb4bd1f4ac",
    "webhook-id": `${RUN}:7`,
    "webhook-timestamp": "1764316800",
    "webhook-signature": STANDARD_SIGNATURE,
  });
});

/**
 * Signature that openssl gives: `printf '%s' 'run-…1:7.1764316800.{"specversion":"1.0"}' | openssl dgst
 * -sha256 -mac HMAC -macopt hexkey:7d35… -binary | base64`
 */
const STANDARD_SIGNATURE = "v1,9WwAX2pBIXdy4IhFJClthKmH6wYRtQY777Q4CbkNoz8=";

Deno.test("a webhook id is wh_ and 24 hexadecimal digits", () => {
  assert.equal(newWebhookId((length) => new Uint8Array(length).fill(0xab)), `wh_${"ab".repeat(12)}`);
});

Deno.test("a target is an https URL without user-info and fragment, kept as it was given", () => {
  const check = (given: string, allowPrivate: boolean, expected: string | undefined) => {
    try {
      assert.equal(webhookTarget(given, allowPrivate).hostname, expected, given);
      assert.equal(webhookTarget(given, allowPrivate).url, given.trim());
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      assert.deepEqual([error.status, error.details[0]!.field, expected], [422, "url", undefined], given);
    }
  };
  check("https://hooks.example.com/v", false, "hooks.example.com");
  check("  https://hooks.example.com:8443/v?a=b@c  ", false, "hooks.example.com");
  check("HTTPS://Hooks.Example.com", false, "hooks.example.com");
  check("https://[2606:4700::1111]/", false, "2606:4700::1111");
  check("https://hooks.example.com/@you", false, "hooks.example.com");
  check("http://hooks.example.com/", false, undefined);
  check("http://hooks.example.com/", true, "hooks.example.com");
  check("ftp://hooks.example.com/", true, undefined);
  check("https:hooks.example.com", false, "hooks.example.com");
  check("https://a@hooks.example.com/", true, undefined);
  check("https:a@hooks.example.com/", true, undefined);
  check("https://@hooks.example.com/", true, undefined);
  check("https://hooks.example.com/#", true, undefined);
  check("https://hooks.example.com/\tv", true, undefined);
  check("https://hooks.example.com/\u0000", true, undefined);
  check("https://hooks.example.com\\@b/", true, "hooks.example.com");
  check(`https://a.example/${"a".repeat(2048 - 18)}`, false, "a.example");
  check(`https://a.example/${"a".repeat(2049 - 18)}`, false, undefined);
  check("https://999.999.999.999/", true, undefined);
  check("https://a.example:99999/", true, undefined);
  check("hooks.example.com", true, undefined);
  check("", true, undefined);
});

Deno.test("kinds are trimmed, sorted and each once; bookkeeping and overlong ones are refused", () => {
  const check = (given: string[], expected: string[] | undefined) => {
    try {
      assert.deepEqual(webhookKinds(given), expected);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      assert.deepEqual([error.details[0]!.field, expected], ["event_kinds", undefined], `${given}`);
    }
  };
  check([], []);
  check(["vlm", " marker_emitted ", "vlm"], ["marker_emitted", "vlm"]);
  check(["webhooks", "trigger.webhook_x"], ["trigger.webhook_x", "webhooks"]);
  check(["a".repeat(96)], ["a".repeat(96)]);
  check([` ${"a".repeat(96)} `], ["a".repeat(96)]);
  check(Array(32).fill("vlm"), ["vlm"]);
  check(Array(33).fill("vlm"), undefined);
  check(["a".repeat(97)], undefined);
  check(["é".repeat(49)], undefined);
  check([""], undefined);
  check([" \t"], undefined);
  check(["webhook_registered"], undefined);
  check([" webhook_"], undefined);
});

Deno.test("hooks follow from the events that register and delete them, and malformed events change nothing", () => {
  const hooks = new Map<string, Webhook>();
  const fold = (seq: number, kind: string, payload: unknown, runId = RUN) =>
    foldWebhook(hooks, {
      seq,
      kind,
      runId,
      payload: typeof payload === "string" ? payload : JSON.stringify(payload),
    });
  const registered = (webhook_id: string) => ({
    webhook_id,
    url: "https://a.example/",
    event_kinds: ["vlm"],
  });
  fold(2, "webhook_registered", registered("wh_a"));
  fold(3, "webhook_registered", { ...registered("wh_a"), url: "https://other.example/" });
  fold(4, "webhook_registered", registered("wh_b"));
  fold(5, "webhook_deleted", { webhook_id: "wh_a" }, "run-of-somebody-else");
  fold(6, "webhook_deleted", { webhook_id: "wh_unknown" });
  for (const payload of ["null", "7", "no json", {}, { webhook_id: 1 }, { webhook_id: "wh_c" }]) {
    fold(7, "webhook_registered", payload);
    fold(8, "webhook_deleted", payload);
  }
  fold(9, "webhook_registered", { ...registered("wh_d"), event_kinds: [1] });
  assert.deepEqual([...hooks.keys()], ["wh_a", "wh_b"]);
  assert.deepEqual(hooks.get("wh_a"), {
    webhookId: "wh_a",
    runId: RUN,
    url: "https://a.example/",
    eventKinds: ["vlm"],
    filter: null,
    cooldown: null,
    source: null,
    registeredSeq: 2,
  });
  fold(10, "webhook_deleted", { webhook_id: "wh_a" });
  assert.deepEqual([...hooks.keys()], ["wh_b"]);
});

Deno.test("an event matches by its exact kind, a trigger by the actions of its program as well", () => {
  const check = (eventKinds: string[], kind: string, payload: unknown, expected: boolean) => {
    const places = { webhookId: HOOK, runId: RUN, url: "", registeredSeq: 1 };
    const hook: Webhook = { ...places, eventKinds, filter: null, cooldown: null, source: null };
    const stored = { kind, payload: typeof payload === "string" ? payload : JSON.stringify(payload) };
    assert.equal(
      mayMatch(hook, kind) && isForWebhooks(stored),
      expected,
      `${eventKinds} ${kind} ${JSON.stringify(payload)}`,
    );
    assert.equal(isForAnyPayload(hook, kind), mayMatch(hook, kind) && !kind.startsWith("trigger."), kind);
  };
  const wish = (webhook: unknown) => ({ trigger: { actions: { webhook } } });
  check([], "vlm", {}, true);
  check([], "a_kind_of_tomorrow", {}, true);
  check(["vlm"], "vlm", {}, true);
  check(["vlm"], "vlm_tiered", {}, false);
  check(["vlm"], "VLM", {}, false);
  check([], "webhook_registered", {}, false);
  check(["webhook_registered"], "webhook_registered", {}, false);
  check([], "webhook_of_tomorrow", {}, false);
  check([], "trigger.door", wish(true), true);
  check(["trigger.door"], "trigger.door", wish(true), true);
  check(["trigger.window"], "trigger.door", wish(true), false);
  check(["trigger."], "trigger.door", wish(true), false);
  for (const payload of [wish(false), wish("true"), wish(1), {}, { trigger: null }, "null", "7", "no json"]) {
    check(["trigger.door"], "trigger.door", payload, false);
  }
});

Deno.test("a filter's conditions all hold for one sighting of the event, and an event that lacks a field does not meet it", () => {
  const check = (
    given: GivenFilter,
    payload: unknown,
    expected: boolean,
    sourceUri: string | null = null,
  ) => {
    const filter = checkedFilter(given, new FieldRules())!;
    assert.equal(
      meets(filter, eventFacts(JSON.stringify(payload)), sourceUri),
      expected,
      JSON.stringify([given, payload]),
    );
  };
  const zone = { confidence: 0.7, assertion: { policy_id: "dock" } };
  const heard = {
    event_type: "door",
    confidence: 0.9,
    local_audio: { observations: [{ label: "speech", kind: "speech", confidence: 0.4 }] },
    moments: [{ kind: "music", confidence: 0.8 }],
  };
  check({ zones: ["dock"] }, zone, true);
  check({ zones: [" dock ", "gate"] }, zone, true);
  check({ zones: ["gate"] }, zone, false);
  check({ zones: ["dock"] }, heard, false);
  check({ min_confidence: 0.7 }, zone, true);
  check({ min_confidence: 0.71 }, zone, false);
  check({ min_confidence: 0 }, { reason: "lost" }, false);
  check({ zones: ["dock"], min_confidence: 0.71 }, zone, false);
  check({ labels: ["door"] }, heard, true);
  check({ labels: ["speech"] }, heard, true);
  check({ labels: ["music"], min_confidence: 0.8 }, heard, true);
  check({ labels: ["speech"], min_confidence: 0.5 }, heard, false);
  check({ labels: ["speech", "door"], min_confidence: 0.5 }, heard, true);
  check({ labels: ["person"] }, { object_label: "person", confidence: null }, true);
  check({ labels: ["person"], min_confidence: 0.1 }, { object_label: "person", confidence: null }, false);
  check({ sources: ["dock"] }, zone, true, "source:dock");
  check({ sources: ["dock"] }, zone, false, "source:gate");
  check({ sources: ["dock"] }, zone, false);
  for (const payload of ["text", 7, null, []]) check({ labels: ["door"] }, payload, false);
});

Deno.test("each field of a filter and a cooldown that breaks a rule is named", () => {
  const check = (given: GivenFilter, ...fields: string[]) => {
    const rules = new FieldRules();
    checkedFilter(given, rules);
    assert.deepEqual(rules.faults.map(({ field }) => field), fields, JSON.stringify(given));
  };
  check({});
  check({ labels: [], zones: null });
  check({ labels: Array(32).fill("a") });
  check(
    { labels: Array(33).fill("a"), zones: [""], sources: ["Dock"] },
    "filter.labels",
    "filter.zones",
    "filter.sources",
  );
  check({ zones: ["é".repeat(65)] }, "filter.zones");
  check({ min_confidence: 1.01 }, "filter.min_confidence");
  check({ min_confidence: NaN }, "filter.min_confidence");
  for (const [interval_ms, faults] of [[999, 1], [1000, 0], [86_400_000, 0], [86_400_001, 1]] as const) {
    const rules = new FieldRules();
    assert.deepEqual(checkedCooldown({ interval_ms }, rules), { interval_ms, per: ["kind", "source"] });
    assert.equal(rules.faults.length, faults, `${interval_ms}`);
  }
  assert.equal(checkedFilter({ labels: [] }, new FieldRules()), null);
});

Deno.test("a cooldown counts by key, ends with its interval and with a dead letter, and forgets the key that was unused longest", () => {
  const cooldown = { interval_ms: 1000, per: ["kind", "zone"] } as const;
  const facts = eventFacts('{"assertion":{"policy_id":"dock"}}');
  assert.equal(cooldownKey(cooldown, { kind: "k", ptsMs: 0, facts, sourceUri: null }), '["k","dock"]');
  const cooldowns = new Cooldowns();
  assert.equal(cooldowns.withholds(cooldown, "a", 0), false);
  cooldowns.apply([cooldowns.after("a", 0, "delivered")]);
  assert.deepEqual([0, 999].map((ptsMs) => cooldowns.withholds(cooldown, "a", ptsMs)), [true, true]);
  assert.equal(cooldowns.withholds(cooldown, "b", 500), false, "another key");
  assert.equal(cooldowns.withholds(cooldown, "a", -1), false, "the clock was set back");
  assert.equal(cooldowns.withholds(cooldown, "a", 1000), false);
  assert.deepEqual(cooldowns.changed, [{ key: "a", since_ms: 0, withheld: 2 }]);
  cooldowns.apply([cooldowns.after("a", 1000, "dead_letter")]);
  assert.deepEqual([cooldowns.withheldOf("a"), cooldowns.pending, cooldowns.changed], [2, 2, []]);
  assert.equal(cooldowns.withholds(cooldown, "a", 1001), false, "the one before was given up");
  cooldowns.apply([cooldowns.after("a", 1001, "delivered")]);
  assert.equal(cooldowns.pending, 0);
  const { cooldownKeysMax } = LIMITS.webhook;
  for (let at = 0; at < cooldownKeysMax; at++) cooldowns.apply([cooldowns.after(`k${at}`, 0, "delivered")]);
  assert.equal(cooldowns.all.length, cooldownKeysMax);
  assert.equal(cooldowns.withholds(cooldown, "a", 1002), false);
});
