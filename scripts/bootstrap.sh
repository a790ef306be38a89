# Sourced by the other scripts: installs what is missing, prints what it installs, and does nothing if all is there.
#
#   Deno    the pinned version: the one on PATH if it has that version, else from npm into .tools/
#   ffmpeg  with the system's package manager, unless SERVICE_FFMPEG_PATH and SERVICE_FFPROBE_PATH name one
#
# Afterwards DENO is the path of the pinned Deno. With SETUP=deno nothing else is looked at. Except for the ffmpeg package, everything is
# written to .tools/ and, the web pages, to dist/.

DENO_VERSION=2.9.6
# SHA-256 of the program in the npm package, by the machine that `uname -sm` names; others are checked by their version only.
DENO_SHA256_LINUX_X86_64=bceb5b6a6239b0b010418406d8c77a508f67cf4337d94288f1c19fe71304aab0
DENO_SHA256_LINUX_AARCH64=d08d392418df53f4e6e88a08909c0e1bccbf9adcead7232df72b6ad6075ec416
PROJECT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS_DIR="$PROJECT_ROOT/.tools"

export DENO_DIR="${DENO_DIR:-$TOOLS_DIR/deno_cache}"
export DENO_NO_UPDATE_CHECK=1

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# Before it is started for the first time.
has_recorded_hash() {
  local recorded
  case $(uname -sm) in
    "Linux x86_64") recorded=$DENO_SHA256_LINUX_X86_64 ;;
    "Linux aarch64") recorded=$DENO_SHA256_LINUX_AARCH64 ;;
    *) return 0 ;;
  esac
  [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$recorded" ]
}

is_pinned_deno() { [ -x "$1" ] && has_recorded_hash "$1" && "$1" --version 2>/dev/null | grep -q "^deno $DENO_VERSION "; }

# The npm package of each platform contains the program.
installed_deno() {
  local candidate
  for candidate in "$TOOLS_DIR"/npm/node_modules/@deno/*/deno; do
    if is_pinned_deno "$candidate"; then printf '%s' "$candidate"; return 0; fi
  done
  return 1
}

find_deno() {
  local on_path
  on_path=$(command -v deno || true)
  if [ -n "$on_path" ] && is_pinned_deno "$on_path"; then printf '%s' "$on_path"; return 0; fi
  installed_deno
}

install_deno() {
  command -v npm >/dev/null || fail "Deno $DENO_VERSION is not on PATH and npm is missing; install Node.js with npm, or Deno $DENO_VERSION."
  say "installing Deno $DENO_VERSION from npm into .tools/ (once)"
  mkdir -p "$TOOLS_DIR/npm"
  npm install --prefix "$TOOLS_DIR/npm" --ignore-scripts --no-audit --no-fund --loglevel=error "deno@$DENO_VERSION" >&2 ||
    fail "npm could not install deno@$DENO_VERSION"
}

# Fails where .tools/ has another program than the recorded one.
refuse_changed_deno() {
  local candidate
  for candidate in "$TOOLS_DIR"/npm/node_modules/@deno/*/deno; do
    [ ! -x "$candidate" ] || has_recorded_hash "$candidate" ||
      fail "$candidate is not the recorded Deno $DENO_VERSION: its SHA-256 differs. Remove .tools/npm and start again; if that does not help, the package was changed."
  done
}

can_be_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

# with_root COMMAND...: runs it directly as root, else with sudo.
with_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "'$*' needs root and there is no sudo; run it yourself, then start this script again."
  fi
}

# refresh_apt: without root the lists that are there have to do.
refresh_apt() { ! can_be_root || with_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null; }

# say_line LINE: where this user cannot become root, the line to run as root.
say_line() {
  can_be_root || fail "this needs root and there is no sudo. Run this line as root, then start this script again: $1"
}

# install_packages APT DNF APK PACMAN BREW: installs one package list; there is one for each package manager.
install_packages() {
  if command -v apt-get >/dev/null; then
    say_line "apt-get update && apt-get install -y --no-install-recommends $1"
    refresh_apt && with_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $1 >/dev/null
  elif command -v dnf >/dev/null; then say_line "dnf install -y $2"; with_root dnf install -y -q $2
  elif command -v apk >/dev/null; then say_line "apk add $3"; with_root apk add -q $3
  elif command -v pacman >/dev/null; then say_line "pacman -S $4"; with_root pacman -S --noconfirm --quiet $4
  elif command -v brew >/dev/null; then brew install --quiet $5
  else fail "no known package manager here; install: $1"
  fi
}

# A program that a variable names is the operator's: another one must not be installed in its place.
require_named_program() {
  local variable=$1 program=${!1:-}
  [ -z "$program" ] || command -v "$program" >/dev/null ||
    fail "$variable must name an executable program, got '$program'; nothing was installed"
}

have_ffmpeg() {
  command -v "${SERVICE_FFMPEG_PATH:-ffmpeg}" >/dev/null && command -v "${SERVICE_FFPROBE_PATH:-ffprobe}" >/dev/null
}

if [ "${SETUP:-all}" != deno ]; then
  require_named_program SERVICE_FFMPEG_PATH
  require_named_program SERVICE_FFPROBE_PATH
fi

DENO=$(find_deno) || {
  refuse_changed_deno
  install_deno
  DENO=$(find_deno) || { refuse_changed_deno; fail "Deno was installed but does not start on this machine."; }
}
export DENO
[ "${SETUP:-all}" != deno ] || return 0

if ! have_ffmpeg; then
  say "installing ffmpeg with the system's package manager (once)"
  install_packages ffmpeg ffmpeg ffmpeg ffmpeg ffmpeg || fail "ffmpeg could not be installed"
  have_ffmpeg || fail "ffmpeg was installed but ffmpeg and ffprobe are not on PATH"
fi

# The packages of the service are downloaded here, because the service itself runs in a sandbox without that permission.
# Every module that starts a Worker is named: with --cached-only none of them gets anything later.
packages_of="src/main.ts src/service/service_worker.ts src/live/live_worker.ts src/media/files/decode_worker.ts src/flow/reason/schema_worker.ts src/remote/sources/relay_worker.ts src/data_tools/data_tools_worker.ts"
packages_stamp="$DENO_VERSION $(cksum <"$PROJECT_ROOT/deno.lock") $packages_of"
if [ "$(cat "$TOOLS_DIR/fetched" 2>/dev/null)" != "$packages_stamp" ] || [ ! -d "$DENO_DIR/npm" ]; then
  say "fetching the packages that the service uses (once)"
  (cd "$PROJECT_ROOT" && "$DENO" cache --quiet --frozen $packages_of) >&2 ||
    fail "the packages of deno.lock could not be fetched"
  mkdir -p "$TOOLS_DIR"
  printf '%s\n' "$packages_stamp" >"$TOOLS_DIR/fetched"
fi

# The web pages that the service serves.
pages_stamp=$(cd "$PROJECT_ROOT" && cat pages/*/* $(find console client/src client/mod.ts -type f | sort) schemas/openapi.json scripts/build_pages.ts scripts/build_console.ts deno.lock | cksum)
if [ "$(cat "$PROJECT_ROOT/dist/pages/built" 2>/dev/null)" != "$pages_stamp" ]; then
  say "building the web pages (once)"
  (cd "$PROJECT_ROOT" && "$DENO" run --quiet --frozen --allow-all scripts/build_pages.ts) >&2 ||
    fail "the web pages could not be built"
  printf '%s\n' "$pages_stamp" >"$PROJECT_ROOT/dist/pages/built"
fi
