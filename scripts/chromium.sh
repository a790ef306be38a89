# Sourced after bootstrap.sh by what needs a browser: installs Chromium where it is missing. Without it the tests of the
# browser are skipped, so that a machine without a package manager, or without the right to use it, only gets a message.
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  say "installing Chromium with the system's package manager (once)"
  (install_packages chromium chromium chromium chromium chromium) || say "Chromium could not be installed, going on without its tests"
fi
