/** A box that says whether the signature of a delivery is right. Nothing that is pasted leaves the page. */

import { useEffect, useState } from "preact/hooks";
import { TextField } from "../../../ui/field.tsx";
import { pasted, type Verdict, verdict } from "./pasted.ts";

const HEADERS_SHAPE =
  "webhook-id: run-…:77\nwebhook-timestamp: …\nwebhook-signature: v1,…\nx-service-signature: v1=…";

export function VerifyBox() {
  const [secret, setSecret] = useState("");
  const [result, setResult] = useState<Verdict | null>(null);
  const given = pasted.value;
  useEffect(() => {
    let isOld = false;
    verdict(secret, given, Date.now()).then(
      (found) => isOld || setResult(found),
      () =>
        isOld || setResult({
          isRight: false,
          text: "This browser checks signatures only over HTTPS, or on the machine of the service.",
        }),
    );
    return () => void (isOld = true);
  }, [secret, given]);
  return (
    <form class="form verify" onSubmit={(event) => event.preventDefault()}>
      <p class="hint">
        Nothing of it leaves this page, and it is forgotten with it.
      </p>
      <TextField
        label="Signing secret"
        type="password"
        value={secret}
        onInput={setSecret}
        autocomplete="off"
        isMono
      />
      <TextField
        label="Headers as received"
        rows={5}
        isMono
        value={given.headers}
        onInput={(headers) => pasted.value = { ...given, headers }}
        placeholder={HEADERS_SHAPE}
      />
      <TextField
        label="Body as received"
        rows={5}
        isMono
        value={given.body}
        onInput={(body) => pasted.value = { ...given, body }}
      />
      <p
        class={`verdict ${result === null ? "dim" : result.isRight ? "is-good" : "is-bad"}`}
        role="status"
      >
        {result === null ? "Enter all three." : `${result.isRight ? "●" : "✕"} ${result.text}`}
      </p>
    </form>
  );
}
