#!/bin/sh
# One file with a program and Deno. It unpacks both once for each user, compares every byte with its hash before each start, and starts.
# Deno is taken in two halves, each by a process of its own, as it is large.
set -eu
# They would change what tar, gzip, xz and cd do here.
unset TAR_OPTIONS GZIP XZ_DEFAULTS XZ_OPT CDPATH

name=@NAME@
code=@CODE_FOLDER@
runtime=@RUNTIME_FOLDER@
code_bytes=@CODE_BYTES@
# As it is packed.
runtime_bytes=@RUNTIME_BYTES@
# How: by gzip, whose first half has so many bytes, or by xz.
runtime_packing=@RUNTIME_PACKING@
packed_half_bytes=@PACKED_HALF_BYTES@
# The first half of it unpacked.
half_bytes=@HALF_BYTES@
# What is unpacked, by two hash functions: BLAKE2b takes a third of the time, and not every system has it.
code_b2='@CODE_B2@'
code_sha256='@CODE_SHA256@'
half_b2=@HALF_B2@ rest_b2=@REST_B2@
half_sha256=@HALF_SHA256@ rest_sha256=@REST_SHA256@

fail() {
  printf '%s: %s\n' "$name" "$1" >&2
  exit 1
}

# refuse_folders_open_to_others FOLDER, a real path: whoever may write to it, or to one above it, could put another cache in its place
# between the check and the start. A sticky one, such as /tmp, keeps them from moving what is not theirs.
refuse_folders_open_to_others() {
  above=$1
  set --
  while [ -n "$above" ]; do
    set -- "$@" "$above"
    above=${above%/*}
  done
  [ "${1-}" = / ] || set -- "$@" /
  facts=$(stat -c '%u %a' -- "$@") || fail "cannot look at the folders above $1"
  owners="$user|0"
  for folder in "$@"; do
    owner=${facts%% *}
    mode=${facts#* }
    mode=0${mode%%"$newline"*}
    facts=${facts#*"$newline"}
    case "|$owners|" in *"|$owner|"*) ;; *) fail "$folder belongs to another user; set XDG_CACHE_HOME to a folder of your own" ;; esac
    [ $((mode & 022)) -eq 0 ] || [ $((mode & 01000)) -ne 0 ] ||
      fail "others may write to $folder; take that away: chmod go-w $folder, or set XDG_CACHE_HOME to another folder"
    owners="$user|0$unknown_owner"
  done
}

# In a namespace of users that has no root, the folders of root seem to belong to a user whom it does not know.
unknown_owner() {
  while read -r inside outside _; do
    [ "$inside $outside" != "0 0" ] || return 0
  done 2>/dev/null </proc/self/uid_map || return 0
  printf '|%s' "$(cat /proc/sys/kernel/overflowuid 2>/dev/null || printf 65534)"
}

refuse_open_to_others() {
  [ ! -L "$1" ] || fail "$1 is a link; remove it"
  [ -d "$1" ] || fail "$1 is not a folder; remove it"
  case $(stat -c '%u %a' -- "$1") in
    "$user 700") ;;
    "$user "*) fail "$1 is open to others, who may have changed it; remove it: rm -r $1" ;;
    *) fail "$1 belongs to another user; set XDG_CACHE_HOME to a folder of your own" ;;
  esac
}

code_is_recorded() (
  cd "$1" 2>/dev/null || return 1
  if command -v b2sum >/dev/null; then
    printf '%s\n' "$code_b2" | b2sum --check --strict --status - 2>/dev/null
  else
    printf '%s\n' "$code_sha256" | sha256sum --check --strict --status - 2>/dev/null
  fi
)

# has_hash BLAKE2B SHA256 of what comes in
has_hash() {
  if command -v b2sum >/dev/null; then
    [ "$(b2sum -l 256)" = "$1  -" ]
  else
    [ "$(sha256sum)" = "$2  -" ]
  fi
}

runtime_is_recorded() {
  [ -f "$1/deno" ] || return 1
  head -c "$half_bytes" -- "$1/deno" | has_hash "$half_b2" "$half_sha256" &
  half=$!
  tail -c "+$((half_bytes + 1))" -- "$1/deno" | has_hash "$rest_b2" "$rest_sha256" || {
    wait "$half" || true
    return 1
  }
  wait "$half"
}

# move_into_place NAME CHECK. The folder has its name only once it is complete, so that a crash, or two first starts at once, leave no part of it.
# Returns 1 where another start was earlier: what lies there is not what was compared here.
move_into_place() {
  "$2" "$new" || fail "$0 cannot be unpacked into $base: it is damaged, or the disk is full"
  if mv -T -- "$new" "$base/$1" 2>/dev/null; then return 0; fi
  [ -d "$base/$1" ] || fail "cannot create $base/$1"
  rm -rf -- "$new"
  return 1
}

# What a start that was killed while it unpacked has left, under its process id. Another container with the same cache has ids of its own, so
# that what is young stays too: unpacking takes seconds.
remove_stale() {
  for folder in "$base"/new.*; do
    [ -d "$folder" ] || continue
    owner=${folder##*/new.}
    ! kill -0 "${owner%%.*}" 2>/dev/null || continue
    now=$(stat -c %Y "/proc/$$" 2>/dev/null) && then=$(stat -c %Y -- "$folder" 2>/dev/null) || continue
    [ $((now - then)) -lt 600 ] || rm -rf -- "$folder"
  done
}

make_new() {
  new=$(mktemp -d "$base/new.$$.XXXXXXXXXX") || fail "cannot create a folder in $base"
}

unpack_code() {
  make_new
  tail -c $((runtime_bytes + code_bytes)) -- "$self" | head -c "$code_bytes" | gzip -dc |
    tar -x -f - -C "$new" --no-same-owner || true
  if move_into_place "$code" code_is_recorded; then is_code_compared=yes; fi
}

unpack_runtime() {
  make_new
  if [ "$runtime_packing" = gzip ]; then
    tail -c "$runtime_bytes" -- "$self" | head -c "$packed_half_bytes" | gzip -dc >"$new/deno" &
    tail -c $((runtime_bytes - packed_half_bytes)) -- "$self" | gzip -dc >"$new/rest" || true
    wait $! || true
    cat -- "$new/rest" >>"$new/deno" || true
    rm -f -- "$new/rest"
  elif command -v xz >/dev/null; then
    tail -c "$runtime_bytes" -- "$self" | xz -dc -T0 >"$new/deno" || true
  elif command -v dpkg-deb >/dev/null; then
    # It reads xz without the program of that name, from what looks like a package of Debian.
    {
      printf '!<arch>\n'
      printf '%-16s%-12s%-6s%-6s%-8s%-10s`\n' debian-binary 0 0 0 100644 4
      printf '2.0\n'
      printf '%-16s%-12s%-6s%-6s%-8s%-10s`\n' control.tar 0 0 0 100644 0
      printf '%-16s%-12s%-6s%-6s%-8s%-10s`\n' data.tar.xz 0 0 0 100644 "$runtime_bytes"
      tail -c "$runtime_bytes" -- "$self"
    } >"$new/packed.deb"
    dpkg-deb --fsys-tarfile "$new/packed.deb" >"$new/deno" || true
    rm -f -- "$new/packed.deb"
  else
    fail "it needs xz to unpack itself; install xz-utils (Debian) or xz"
  fi
  chmod 0500 "$new/deno"
  if move_into_place "$runtime" runtime_is_recorded; then is_runtime_compared=yes; fi
}

clean_cache() {
  for folder in "$base"/*; do
    case $folder in "$base/$code" | "$base/$runtime" | "$notes" | "$base/*") ;; *) rm -rf -- "$folder" ;; esac
  done
}

self=$0
case $self in */*) ;; *) [ ! -f "$self" ] || self=./$self ;; esac
case $self in */*) ;; *) self=$(command -v -- "$self") || fail "cannot find $0" ;; esac
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
case $cache in
  /*) ;;
  *) fail "it unpacks itself into a cache folder: set XDG_CACHE_HOME, or HOME, to an absolute path" ;;
esac
newline='
'
user=$(id -u)
unknown_owner=$(unknown_owner)
[ -d "$cache" ] || (umask 077 && mkdir -p -- "$cache") ||
  fail "cannot create $cache; set XDG_CACHE_HOME to a folder in which this user may write"
cache=$(cd -P -- "$cache" && pwd -P) || fail "cannot enter $cache; set XDG_CACHE_HOME to a folder of your own"
refuse_folders_open_to_others "$cache"
base=$cache/service
notes=$base/$runtime.notes
# Whether this start has unpacked them, and so has compared them.
is_code_compared=no
is_runtime_compared=no

if [ ! -d "$base/$code" ] || [ ! -d "$base/$runtime" ]; then
  (umask 077 && mkdir -p -- "$base") || fail "cannot create $base; set XDG_CACHE_HOME to a folder in which this user may write"
  refuse_open_to_others "$base"
  new=
  trap '[ -z "$new" ] || rm -rf -- "$new"' EXIT
  trap 'exit 1' HUP INT TERM
  callers_umask=$(umask)
  umask 077
  [ -d "$base/$code" ] || unpack_code
  [ -d "$base/$runtime" ] || unpack_runtime
  umask "$callers_umask"
  trap - EXIT HUP INT TERM
fi
[ -d "$notes" ] || (umask 077 && mkdir -p -- "$notes") || fail "cannot create $notes"
for folder in "$base" "$base/$code" "$base/$runtime" "$notes"; do refuse_open_to_others "$folder"; done
changed() {
  fail "$1 was changed or damaged: its bytes are not those of this program; remove it: rm -r $1"
}
remove_stale
[ $is_code_compared = yes ] || code_is_recorded "$base/$code" || changed "$base/$code"
[ $is_runtime_compared = yes ] || runtime_is_recorded "$base/$runtime" || changed "$base/$runtime"
if [ "${1-}" = --clean-cache ]; then
  clean_cache
  exit 0
fi

[ -x "$base/$runtime/deno" ] ||
  fail "the system does not start programs in $base, whose disk may be mounted with noexec; set XDG_CACHE_HOME to another folder"

# Deno notes there which module imports which, without code. Compiled code is not kept, as nobody could check it.
export DENO_DIR="$notes" DENO_NO_UPDATE_CHECK=1
folder=$base/$code
@EXPORTS@
exec "$base/$runtime/deno" run --quiet --no-prompt --no-code-cache --no-lock --no-remote --no-npm --cached-only \
  --config "$folder/deno.json" @PERMISSIONS@ "$folder/dist/bundle/main.mjs" "$@"
