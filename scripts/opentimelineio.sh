# Sourced after bootstrap.sh by scripts that test EDLs: puts OpenTimelineIO, an editor's reader that is not ours, into
# .tools/opentimelineio where it is missing. When that fails it only prints a message, because its tests are then skipped.
OPENTIMELINEIO_VERSION=0.18.1
CMX3600_VERSION=1.0.0
export OPENTIMELINEIO_PYTHON="$TOOLS_DIR/opentimelineio/bin/python"

has_opentimelineio() {
  "$OPENTIMELINEIO_PYTHON" -c "
import importlib.metadata as found
assert found.version('opentimelineio') == '$OPENTIMELINEIO_VERSION'
assert found.version('otio-cmx3600-adapter') == '$CMX3600_VERSION'" 2>/dev/null
}

# Debian's python3 alone makes no environments.
install_opentimelineio() {
  python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv python3 python3 python python3 || return 1
  python3 -m venv "$TOOLS_DIR/opentimelineio" &&
    "$OPENTIMELINEIO_PYTHON" -m pip install --quiet --disable-pip-version-check \
      "opentimelineio==$OPENTIMELINEIO_VERSION" "otio-cmx3600-adapter==$CMX3600_VERSION" >&2
}

if ! has_opentimelineio; then
  say "installing OpenTimelineIO $OPENTIMELINEIO_VERSION from PyPI into .tools/ (once)"
  (install_opentimelineio) || say "OpenTimelineIO could not be installed, going on without its tests"
fi
