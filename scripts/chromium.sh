# Sourced after bootstrap.sh by scripts that need a browser: installs Chromium if it is missing. When that fails it only
# prints a message, because the browser tests are then skipped.
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  say "installing Chromium with the system's package manager (once)"
  (install_packages chromium chromium chromium chromium chromium) || say "Chromium could not be installed, going on without its tests"
fi
