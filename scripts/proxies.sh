# Sourced after bootstrap.sh by scripts that test deploy/: puts nginx and Caddy into .tools/proxies if one is missing. Where
# there is apt they are unpacked, not installed, as the packages would start servers. When that fails it only prints a
# message, because the tests of the proxies are then skipped.
PATH="$PATH:$TOOLS_DIR/proxies/usr/sbin:$TOOLS_DIR/proxies/usr/bin"

unpack_proxies() {
  local folder="$TOOLS_DIR/proxies"
  mkdir -p "$folder"
  refresh_apt &&
    (cd "$folder" && apt-get download -qq nginx libnginx-mod-stream caddy >/dev/null 2>&1 &&
      for package in *.deb; do dpkg-deb -x "$package" .; done && rm -f -- *.deb)
}

if ! command -v nginx >/dev/null || ! command -v caddy >/dev/null; then
  say "fetching nginx and Caddy for the tests of deploy/ (once)"
  if command -v apt-get >/dev/null; then
    (unpack_proxies) || say "nginx and Caddy could not be fetched, going on without their tests"
  else
    (install_packages "" "nginx nginx-mod-stream caddy" "nginx nginx-mod-stream caddy" "nginx caddy" "nginx caddy") ||
      say "nginx and Caddy could not be installed, going on without their tests"
  fi
fi
