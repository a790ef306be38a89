/** TABLE of all routes. */

import type { Route } from "../route/route.ts";
import { ANALYSIS_ROUTES } from "./analysis.ts";
import { BLOB_ROUTES } from "./blobs.ts";
import { READ_ROUTES } from "./events.ts";
import { FEEDBACK_ROUTES } from "./feedback.ts";
import { FILE_ROUTES } from "./files.ts";
import { INFER_ROUTES } from "./infer.ts";
import { LIVE_ROUTES } from "./live.ts";
import { PAGE_ROUTES } from "./pages.ts";
import { POLICY_ROUTES } from "./policies.ts";
import { REASON_ROUTES } from "./reason.ts";
import { RUN_ROUTES } from "./runs.ts";
import { SEARCH_ROUTES } from "./search.ts";
import { SSE_ROUTES } from "./sse.ts";
import { SYSTEM_ROUTES } from "./system.ts";
import { TRIGGER_ROUTES } from "./triggers.ts";
import { WEBHOOK_ROUTES } from "./webhooks.ts";
import { WHIP_ROUTES } from "./whip.ts";

export const ROUTES: readonly Route[] = [
  ...SYSTEM_ROUTES,
  ...RUN_ROUTES,
  ...ANALYSIS_ROUTES,
  ...READ_ROUTES,
  ...SEARCH_ROUTES,
  ...FEEDBACK_ROUTES,
  ...FILE_ROUTES,
  ...BLOB_ROUTES,
  ...SSE_ROUTES,
  ...WEBHOOK_ROUTES,
  ...INFER_ROUTES,
  ...REASON_ROUTES,
  ...TRIGGER_ROUTES,
  ...POLICY_ROUTES,
  ...WHIP_ROUTES,
  ...LIVE_ROUTES,
  ...PAGE_ROUTES,
];
