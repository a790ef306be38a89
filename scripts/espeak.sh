# Sourced after bootstrap.sh by what speaks: installs espeak-ng where it is missing. Without it nothing is spoken, and all
# else works, so that a machine without a package manager only gets a message.
if ! command -v "${AUDIO_SIDECAR_ESPEAK_PROGRAM:-espeak-ng}" >/dev/null; then
  say "installing espeak-ng with the system's package manager (once)"
  (install_packages espeak-ng espeak-ng espeak-ng espeak-ng espeak-ng) || say "espeak-ng could not be installed, going on without speech"
fi
