/** The frame of every page: the rail of pages, the bar above with search and the state of the connection. */

import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useRef } from "preact/hooks";
import { awaySinceMs, hasKey, sessionState, signOut } from "../service/session.ts";
import { clock, durationText } from "../text/time.ts";
import { Toasts } from "../ui/toast.tsx";
import { ConfirmDialog } from "../ui/confirm.tsx";
import { HealthPill } from "./health_pill.tsx";
import { KeyHelp, listenForKeys, useKeys } from "./keys.tsx";
import { pageOf, PAGES } from "./pages.ts";
import { go, hrefOf, place } from "./place.ts";
import { SignIn } from "./sign_in.tsx";

export function App() {
  useEffect(listenForKeys, []);
  const { path, query } = place.value;
  const page = pageOf(path);
  const title = page?.rail === undefined ? "Console" : `${page.rail} – Console`;
  useEffect(() => void (document.title = title), [title]);
  useEffect(focusLost, [path.join("/")]);
  if (sessionState.value === "refused") return <SignIn />;
  if (sessionState.value === "checking") return <Checking />;
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={skipToMain}>Skip to the page</a>
      <Rail current={page?.rail} />
      <Bar />
      <main id="main" tabIndex={-1}>
        <Guarded key={path.join("/")}>
          {page ? <page.Page key={page.keyOf?.(path)} path={path} query={query} /> : <UnknownPage />}
        </Guarded>
      </main>
      <Toasts />
      <ConfirmDialog />
      <KeyHelp />
    </div>
  );
}

/**
 * A link that went away with its page had the focus: the new page gets it, unless something on it took it.
 */
function focusLost(): () => void {
  const timer = setTimeout(() => {
    if (document.activeElement === document.body) {
      document.getElementById("main")?.focus({ preventScroll: true });
    }
  });
  return () => clearTimeout(timer);
}

/** A page with a fault of its own says so; the rail and the bar go on. */
function Guarded({ children }: { children: ComponentChildren }) {
  const [fault] = useErrorBoundary((error) => console.error(error));
  if (fault === undefined) return <>{children}</>;
  return (
    <section class="page">
      <h1>This page does not work</h1>
      <div class="note fault" role="alert">
        <p>
          <strong>The console has a fault: {fault instanceof Error ? fault.message : String(fault)}</strong>
          {" "}
          Nothing was changed on the service. Load the console again; where that does not help, the address
          may name something that cannot be shown.
        </p>
        <button type="button" onClick={() => location.reload()}>Load again</button>{" "}
        <a href={hrefOf([])}>Go to the overview</a>
      </div>
    </section>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault(); // the address after `#` names the page
  document.getElementById("main")?.focus();
}

function Rail({ current }: { current: string | undefined }) {
  const rail = useRef<HTMLElement>(null);
  useEffect(() => {
    // Where the page is narrow, the rail is a line that can be moved sideways.
    const shown = rail.current?.querySelector("[aria-current]");
    shown?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <nav class="rail" aria-label="Pages" ref={rail}>
      {PAGES.filter(({ mark }) => mark !== undefined).map((
        { rail, path, mark },
      ) => (
        <a
          key={rail}
          href={hrefOf(path)}
          aria-current={rail === current ? "page" : undefined}
        >
          <span class="rail-mark" aria-hidden="true">{mark}</span>
          <span>{rail}</span>
        </a>
      ))}
    </nav>
  );
}

function Bar() {
  return (
    <header class="bar">
      <SearchBox />
      <HealthPill />
      <Connection />
      {hasKey.value && (
        <button type="button" class="quiet" onClick={signOut}>
          Forget key
        </button>
      )}
    </header>
  );
}

const FOCUS_SEARCH = "search";

function SearchBox() {
  const box = useRef<HTMLInputElement>(null);
  useKeys("Everywhere", useSearchKeys(box));
  const { path: [page], query } = place.value;
  const asked = page === "search" ? query.get("q") ?? "" : "";
  // Only what is asked changes: the address changes for many reasons while somebody types. At once: what is
  // typed meanwhile would go.
  useLayoutEffect(() => void (box.current!.value = asked), [asked]);
  return (
    <form
      role="search"
      class="search-box"
      onSubmit={(event) => {
        event.preventDefault();
        const text = box.current!.value.trim();
        if (text !== "") go(["search"], { q: text });
      }}
    >
      <input
        ref={box}
        type="search"
        aria-label="Search descriptions"
        placeholder="Search descriptions  /"
      />
    </form>
  );
}

function useSearchKeys(box: { current: HTMLInputElement | null }) {
  const actions = useRef([{
    keys: ["/"],
    does: FOCUS_SEARCH,
    run: () => box.current?.focus(),
  }]);
  return actions.current;
}

/** Whether the service answers; said aloud when it changes. */
function Connection() {
  const since = awaySinceMs.value;
  return (
    <span
      class={`connection ${since === null ? "is-up" : "is-away"}`}
      role="status"
    >
      {since === null ? "● connected" : `○ no answer since ${clock(since)}, asking again`}
      {since !== null && <span class="hidden">, for {durationText(Date.now() - since)}</span>}
    </span>
  );
}

function Checking() {
  return (
    <main class="sign-in">
      <p role="status">
        {awaySinceMs.value === null
          ? "Asking the service …"
          : "The service does not answer. Asking again every 2 s."}
      </p>
    </main>
  );
}

function UnknownPage() {
  return (
    <section class="page">
      <h1>There is no such page</h1>
      <p>
        The address names a page that the console does not have. <a href={hrefOf([])}>Go to the overview</a>.
      </p>
    </section>
  );
}
