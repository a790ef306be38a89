# Sourced after bootstrap.sh by scripts that test the client: puts Bun, one of the runtimes that it is for, from npm into .tools/bun
# where it is missing. When that fails it only prints a message, because its test is then skipped.
BUN_VERSION=1.4.5
PATH="$PATH:$TOOLS_DIR/bun/bin"

# The npm package of each platform contains the program.
install_bun() {
  mkdir -p "$TOOLS_DIR/bun/bin"
  npm install --prefix "$TOOLS_DIR/bun" --ignore-scripts --no-audit --no-fund --loglevel=error "bun@$BUN_VERSION" >&2 || return 1
  local candidate
  for candidate in "$TOOLS_DIR"/bun/node_modules/@oven/*/bin/bun; do
    if "$candidate" --version >/dev/null 2>&1; then ln -sf "$candidate" "$TOOLS_DIR/bun/bin/bun"; return 0; fi
  done
  return 1
}

if ! command -v bun >/dev/null; then
  say "fetching Bun for the test of the client (once)"
  (install_bun) || say "Bun could not be fetched, going on without its test"
fi
