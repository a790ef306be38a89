/** `completions`: scripts that ask this program what may follow the words of a command line. */

import { PROGRAM } from "../program_name.ts";
import { CliError } from "../failure.ts";
import type { Handler } from "../session.ts";

export const completions: Handler = ({ out }, [shell], { name = PROGRAM }) => {
  if (!/^[\w.-]+$/.test(name)) {
    throw new CliError("usage", "--name must be letters, digits, `.`, `_` and `-`");
  }
  const script = { bash, zsh, fish }[shell as "bash" | "zsh" | "fish"];
  out.line(script(name, Deno.env.get("SERVICE_CLI_STARTER") ?? name).trimEnd());
};

/** `'it'\''s'`. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The shell's own word breaks split at `=` and `:`, which no candidate has. */
function bash(name: string, starter: string): string {
  return `# Completes ${name} in bash.
__${variable(name)}_complete() {
  local line word
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    elif [[ -n $line ]]; then
      COMPREPLY+=("\${line%%$'\\t'*}")
    fi
  done < <(${quoted(starter)} __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F __${variable(name)}_complete ${name}
`;
}

function zsh(name: string, starter: string): string {
  return `#compdef ${name}
# Completes ${name} in zsh.
__${variable(name)}_complete() {
  local line tab=$'\\t'
  local -a candidates
  for line in "\${(@f)$(${quoted(starter)} __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then
      _files
    elif [[ -n $line ]]; then
      candidates+=("\${\${line%%$tab*}//:/\\\\:}:\${line#*$tab}")
    fi
  done
  (( \${#candidates} )) && _describe -V '${name}' candidates
}
if [[ $funcstack[1] == _${name} ]]; then
  __${variable(name)}_complete "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
  compdef __${variable(name)}_complete ${name}
fi
`;
}

function fish(name: string, starter: string): string {
  return `# Completes ${name} in fish.
function __${variable(name)}_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (${quoted(starter)} __complete $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            printf '%s\\n' $line
        end
    end
end
complete -c ${name} -f -a '(__${variable(name)}_complete)'
`;
}

function variable(name: string): string {
  return name.replaceAll(/\W/g, "_");
}
