# Sourced after bootstrap.sh by scripts that need speech synthesis: installs espeak-ng if it is missing. When that fails it
# only prints a message, because everything except speech works without it.
if ! command -v "${AUDIO_SIDECAR_ESPEAK_PROGRAM:-espeak-ng}" >/dev/null; then
  say "installing espeak-ng with the system's package manager (once)"
  (install_packages espeak-ng espeak-ng espeak-ng espeak-ng espeak-ng) || say "espeak-ng could not be installed, going on without speech"
fi
