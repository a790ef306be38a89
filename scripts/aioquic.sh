# Sourced after bootstrap.sh by scripts that test HTTP/3: puts aioquic, a client that is not ours, into .tools/aioquic where it is missing.
# When that fails it only prints a message, because its tests are then skipped.
AIOQUIC_VERSION=1.7.2
export AIOQUIC_PYTHON="$TOOLS_DIR/aioquic/bin/python"

has_aioquic() { "$AIOQUIC_PYTHON" -c "import aioquic; assert aioquic.__version__ == '$AIOQUIC_VERSION'" 2>/dev/null; }

# Debian's python3 alone makes no environments.
install_aioquic() {
  python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv python3 python3 python python3 || return 1
  python3 -m venv "$TOOLS_DIR/aioquic" &&
    "$AIOQUIC_PYTHON" -m pip install --quiet --disable-pip-version-check "aioquic==$AIOQUIC_VERSION" >&2
}

if ! has_aioquic; then
  say "installing aioquic $AIOQUIC_VERSION from PyPI into .tools/ (once)"
  (install_aioquic) || say "aioquic could not be installed, going on without its tests"
fi
