# Sourced after bootstrap.sh by scripts that make single files: installs xz if it is missing.
if ! command -v xz >/dev/null; then
  say "installing xz with the system's package manager (once)"
  install_packages xz-utils xz xz xz xz || fail "xz could not be installed"
fi
