/** The form for the key. It is kept in this tab's session storage, and nowhere else. */

import { useState } from "preact/hooks";
import { refusedBecause, signIn } from "../service/session.ts";
import { TextField } from "../ui/field.tsx";

export function SignIn() {
  const [apiKey, setApiKey] = useState("");
  const [tenantId, setTenantId] = useState("");
  const refused = refusedBecause.value;
  return (
    <main class="sign-in">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
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
          value={apiKey}
          onInput={setApiKey}
          autocomplete="off"
          isRequired
        />
        <TextField
          label="Tenant id"
          hint="Only where the operator says so"
          value={tenantId}
          onInput={setTenantId}
          autocomplete="off"
        />
        {refused !== null && (
          <p class="fault" role="alert">
            The service refused the key: {refused}
          </p>
        )}
        <button type="submit" class="primary">Open the console</button>
      </form>
    </main>
  );
}
