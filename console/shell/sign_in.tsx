/** The form for the key. It is kept in this tab's session storage, and nowhere else. */

import { useState } from "preact/hooks";
import { isSendable, refusedBecause, signIn } from "../service/session.ts";
import { TextField } from "../ui/field.tsx";

const UNSENDABLE =
  "It has a space, a letter that is not English, or a character that cannot be seen. Type it, or copy it again.";

export function SignIn() {
  const [apiKey, setApiKey] = useState("");
  const [tenantId, setTenantId] = useState("");
  const refused = refusedBecause.value;
  const [keyFault, tenantFault] = [apiKey, tenantId].map((text) =>
    isSendable(text.trim()) ? undefined : UNSENDABLE
  );
  return (
    <main class="sign-in">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (keyFault !== undefined || tenantFault !== undefined) return;
          signIn({ apiKey: apiKey.trim(), tenantId: tenantId.trim() });
        }}
      >
        <h1>Console</h1>
        <p>
          This service wants an API key. It stays in this tab and is forgotten when the tab is closed.
        </p>
        <TextField
          label="API key"
          type="password"
          fault={keyFault}
          value={apiKey}
          onInput={setApiKey}
          autocomplete="off"
          isRequired
        />
        <TextField
          label="Tenant id"
          hint="Only where the operator says so"
          fault={tenantFault}
          value={tenantId}
          onInput={setTenantId}
          autocomplete="off"
        />
        {refused !== null && (
          <p class="fault" role="alert">
            The service refused the key{tenantId === "" ? "" : " or the tenant id"}: {refused}
          </p>
        )}
        <button type="submit" class="primary">Open the console</button>
      </form>
    </main>
  );
}
