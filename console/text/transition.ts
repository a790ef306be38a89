/** What two descriptions in a row differ in, of which the service writes JSON text. */

export function transitionText(text: string): string {
  try {
    const { from_state, to_state } = JSON.parse(text);
    return `From “${from_state}” to “${to_state}”`;
  } catch {
    return text;
  }
}
