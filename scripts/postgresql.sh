# Sourced after bootstrap.sh by scripts that test the mirror database: installs PostgreSQL if it is missing, without a server that
# starts by itself. When that fails it only prints a message, because the tests of the mirror are then skipped.
find_postgresql() {
  local folder
  for folder in /usr/lib/postgresql/*/bin /usr/libexec/postgresql* /opt/homebrew/opt/postgresql*/bin; do
    if [ -x "$folder/initdb" ]; then PATH="$PATH:$folder"; fi
  done
  command -v initdb >/dev/null && command -v postgres >/dev/null
}

# Debian's package makes a cluster and starts it, unless this file says otherwise.
make_no_cluster() {
  if ! can_be_root || ! command -v apt-get >/dev/null || [ -e /etc/postgresql-common/createcluster.conf ]; then return 0; fi
  with_root mkdir -p /etc/postgresql-common
  printf 'create_main_cluster = false\n' | with_root tee /etc/postgresql-common/createcluster.conf >/dev/null
}

if ! find_postgresql; then
  say "installing PostgreSQL with the system's package manager (once)"
  (make_no_cluster && install_packages postgresql postgresql-server postgresql postgresql postgresql) ||
    say "PostgreSQL could not be installed, going on without the tests of the mirror"
  find_postgresql || true
fi
