/** The dashboard and the alert rules of deploy/: every family and label in them exists, and each rule fires
 * when it should.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { dashboardText } from "../../scripts/build_dashboard.ts";
import { readPage } from "../docs/markdown_page.ts";
import { promqlFaults } from "../support/deploy/promql.ts";
import { TempFolder } from "../support/media.ts";
import { needing, PROMTOOL } from "../support/needs.ts";
import { PROJECT_ROOT } from "../support/service.ts";

const RULES = join(PROJECT_ROOT, "deploy/alerts/rules.yaml");
const SCRAPES = ["deploy/prometheus.yaml"].map((path) => join(PROJECT_ROOT, path));
const RULE_TESTS = Deno.readTextFileSync(join(PROJECT_ROOT, "test/deploy/alert_rules.yaml"));
const DASHBOARD = Deno.readTextFileSync(join(PROJECT_ROOT, "deploy/grafana/dashboard.json"));

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<"summary" | "description" | "runbook_url", string>>;
}

interface RuleTest {
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts?: unknown[] }[];
}

function rules(): Rule[] {
  return parse(Deno.readTextFileSync(RULES)).groups.flatMap((group: { rules: Rule[] }) => group.rules);
}

function promtool(...args: string[]): string {
  const { success, stdout, stderr } = new Deno.Command("promtool", { args }).outputSync();
  const said = new TextDecoder().decode(new Uint8Array([...stdout, ...stderr]));
  assert.ok(success, said);
  return said;
}

Deno.test("an expression of a family, label or value that is not there is found", () => {
  const check = (expression: string, fault: string | null) =>
    assert.deepEqual(promqlFaults(expression), fault === null ? [] : [fault], expression);
  check("rate(service_infer_latency_ms_bucket[5m])", null);
  check('sum by (stage, job) (service_pipeline_worker_faults_total{reason=~"pan.*"})', null);
  check("service_infer_latency_ms", "no such series: service_infer_latency_ms");
  check("service_runs_created_total_count", "no such series: service_runs_created_total_count");
  check("service_runs_total > 1", "no such series: service_runs_total");
  check('service_runs_created_total{level="x"}', "service_runs_created_total has no label level");
  check('service_decoder_cage{level="strong"}', 'service_decoder_cage never has level="strong"');
  check('service_decoder_cage{level!~".*"}', 'service_decoder_cage never has level!~".*"');
  check("sum by (level) (service_runs_created_total)", "no label level");
  assert.ok(promqlFaults("rate(service_runs_created_total[5m]").length > 0, "a bracket is missing");
});

Deno.test("every panel of the dashboard draws families that exist, and the file is up to date", () => {
  assert.equal(DASHBOARD, dashboardText(), "run `./scripts/deno run -A scripts/build_dashboard.ts`");
  const { panels, templating } = JSON.parse(DASHBOARD);
  const expressions = panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
    targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "5m"))
  );
  assert.ok(expressions.length > 50);
  assert.deepEqual(expressions.flatMap(promqlFaults), []);
  for (const { query } of templating.list.slice(1)) {
    assert.deepEqual(promqlFaults(/^label_values\((.+), \w+\)$/.exec(query.query)![1]!), []);
  }
  const ids = panels.map(({ id }: { id: number }) => id);
  assert.equal(new Set(ids).size, ids.length);
});

Deno.test("every rule uses families that exist, says how urgent it is, and leads to its section of the run books", () => {
  const page = readPage(Deno.readTextFileSync(join(PROJECT_ROOT, "docs/runbooks.md")));
  for (const { alert, expr, labels, annotations } of rules()) {
    assert.deepEqual(promqlFaults(expr), [], alert);
    assert.ok(["page", "ticket"].includes(labels.severity), alert);
    assert.ok(annotations.summary && annotations.description, alert);
    const anchor = /^docs\/runbooks\.md#([\w-]+)$/.exec(annotations.runbook_url)?.[1];
    assert.equal(anchor, alert.toLowerCase());
    assert.ok(page.anchors.has(anchor!), `docs/runbooks.md has no heading ${alert}`);
  }
});

Deno.test("every rule is tested where it fires and where it is silent", () => {
  const cases = (parse(RULE_TESTS).tests as RuleTest[]).flatMap((test) => test.alert_rule_test);
  const names = (isFiring: boolean) =>
    new Set(
      cases.filter(({ exp_alerts = [] }) => exp_alerts.length > 0 === isFiring).map((one) => one.alertname),
    );
  const expected = new Set(rules().map(({ alert }) => alert));
  assert.deepEqual([...expected.difference(names(true))], [], "never fires");
  assert.deepEqual([...expected.difference(names(false))], [], "is never silent");
});

Deno.test({
  ...needing(
    PROMTOOL,
    "promtool accepts the rules and the scrape configuration, and each rule fires when it should",
  ),
  fn() {
    promtool("check", "rules", "--lint-fatal", RULES);
    for (const path of SCRAPES) promtool("check", "config", "--syntax-only", path);
    using folder = new TempFolder();
    const path = join(folder.path, "rule_tests.yaml");
    Deno.writeTextFileSync(path, RULE_TESTS.replace("{{RULES}}", RULES));
    assert.match(promtool("test", "rules", path), /SUCCESS/);
  },
});
