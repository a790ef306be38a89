# Sourced after bootstrap.sh by scripts that need the strongest cage of decoders: installs bubblewrap if it is missing. When that
# fails it only prints a message, because decoders then have a weaker cage and its tests are skipped.
if [ "$(uname -s)" = Linux ] && ! command -v bwrap >/dev/null; then
  say "installing bubblewrap with the system's package manager (once)"
  (install_packages bubblewrap bubblewrap bubblewrap bubblewrap bubblewrap) || say "bubblewrap could not be installed, going on without its tests"
fi
