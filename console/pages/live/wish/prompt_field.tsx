/** What a model is asked of each picture. */

import { TextField } from "../../../ui/field.tsx";

const BYTES_MAX = 32_768;

export function promptFault(prompt: string): string | undefined {
  return new TextEncoder().encode(prompt).length > BYTES_MAX ? `At most ${BYTES_MAX} bytes.` : undefined;
}

export function PromptField(
  { prompt, onPrompt }: { prompt: string; onPrompt: (prompt: string) => void },
) {
  return (
    <TextField
      label="Question to the model"
      rows={3}
      value={prompt}
      onInput={onPrompt}
      fault={promptFault(prompt)}
      placeholder="What happens at the dock? Name each vehicle."
      hint="Without one it says what is seen and what has changed. The service chooses the model."
    />
  );
}
