/** The present time, for sentences that count seconds. */

import { useEffect, useState } from "preact/hooks";

/** Epoch milliseconds; draws anew every second while the page can be seen. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(
      () => document.hidden || setNow(Date.now()),
      1000,
    );
    return () => clearInterval(timer);
  }, []);
  return now;
}
