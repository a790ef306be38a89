/** How a receiver knows that a delivery is genuine: code to take, and a box to try it. */

import { useEffect, useRef } from "preact/hooks";
import { setQuery } from "../../../shell/place.ts";
import { copy } from "../../../ui/value.tsx";
import { checkWishes } from "./pasted.ts";
import { SAMPLES } from "./samples.ts";
import { VerifyBox } from "./verify_box.tsx";

export function SignatureHelp({ query }: { query: URLSearchParams }) {
  const box = useRef<HTMLElement>(null);
  const isOpen = query.has("check");
  const wishes = checkWishes.value;
  const seen = useRef(wishes);
  useEffect(() => {
    if (wishes === seen.current) return;
    seen.current = wishes;
    if (!isOpen) setQuery({ check: "" });
    else bring(box.current);
  }, [wishes]);
  useEffect(() => {
    if (isOpen && wishes > 0) bring(box.current);
  }, [isOpen]);
  return (
    <section class="card signature" ref={box} aria-label="Signatures">
      <div class="row">
        <h2>Signatures</h2>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setQuery({ check: isOpen ? null : "" })}
        >
          {isOpen ? "Hide" : "How to check them"}
        </button>
      </div>
      {isOpen && (
        <>
          <p>
            Each delivery is signed with the webhook's secret over its id, its time and the body, exactly as
            it was received. A receiver computes the same and refuses what differs, and what is older than
            five minutes.
          </p>
          <div class="columns">
            <Code query={query} />
            <div>
              <h3>Try it</h3>
              <VerifyBox />
            </div>
          </div>
        </>
      )}
    </section>
  );
}

function Code({ query }: { query: URLSearchParams }) {
  const chosen = query.get("lang") ?? "shell";
  const { about, code } = SAMPLES[chosen] ?? SAMPLES.shell!;
  return (
    <div class="form">
      <div class="row" role="group" aria-label="Language">
        {Object.entries(SAMPLES).map(([lang, { name }]) => (
          <button
            key={lang}
            type="button"
            aria-pressed={lang === chosen}
            onClick={() => setQuery({ lang })}
          >
            {name}
          </button>
        ))}
        <button type="button" class="quiet" onClick={() => copy(code)}>
          Copy
        </button>
      </div>
      <p class="hint">{about}</p>
      <pre class="code is-program" tabIndex={0}>{code}</pre>
    </div>
  );
}

function bring(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "start" });
  element?.querySelector("input")?.focus({ preventScroll: true });
}
