# Sourced after bootstrap.sh by scripts that test the completions of the command line: installs zsh and fish where they are missing, so
# that their own parsers read what is made for them. When that fails it only prints a message, because their tests are then skipped.
for shell in zsh fish; do
  command -v "$shell" >/dev/null || {
    say "installing $shell with the system's package manager (once)"
    (install_packages "$shell" "$shell" "$shell" "$shell" "$shell") || say "$shell could not be installed, going on without its test"
  }
done
