# Sourced after bootstrap.sh by scripts/test. Unless FFMPEGS is set, it becomes the folders of two ffmpegs: the system's, and one of the
# 7 line where the system's is older. That one is unpacked into .tools/ffmpeg7 from the packages of Debian 13, without root and
# without a change to the system. When that fails it prints a message, and with CI=true it ends the run, as then half of the tests is missing.

FFMPEG7="$TOOLS_DIR/ffmpeg7"

major_of() { "$1" -version 2>/dev/null | sed -n '1s/^ffmpeg version n\{0,1\}\([0-9]*\).*/\1/p'; }

# Where the system itself gets its packages from.
debian_mirror() {
  apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 ~ /^(bookworm|bullseye)$/ && $2 == "main" { print $3; exit }'
}

# With an own state: nothing of it counts as installed, so all that ffmpeg needs is fetched.
unpack_ffmpeg7() {
  local work="$1" mirror interpreter folders program library
  mirror=$(debian_mirror) && [ -n "$mirror" ] || { say "this is no Debian whose packages apt knows"; return 1; }
  mkdir -p "$work"/{lists/partial,archives/partial,root,made/lib}
  : >"$work/status"
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie main\n' "$mirror" >"$work/sources.list"
  cat >"$work/apt.conf" <<EOF
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$work/lists";
Dir::State::Status "$work/status";
Dir::Cache::Archives "$work/archives";
Dir::Cache::PkgCache "";
Dir::Cache::SrcPkgCache "";
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Update::Post-Invoke "";
Acquire::Languages "none";
Debug::NoLocking "true";
EOF
  APT_CONFIG="$work/apt.conf" apt-get update -qq >/dev/null &&
    APT_CONFIG="$work/apt.conf" apt-get install -qq -y --download-only ffmpeg patchelf >/dev/null || return 1
  for program in "$work"/archives/*.deb; do dpkg-deb -x "$program" "$work/root" || return 1; done

  # The linker and the libraries of both programs lie beside them, and the programs name these, as they need newer ones than the system's.
  interpreter=$(find "$work/root/usr/lib" -name 'ld-linux-*' -type f | head -1)
  folders=$(find "$work/root/usr/lib" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
  for program in ffmpeg ffprobe; do
    cp "$work/root/usr/bin/$program" "$work/made/"
    for library in $("$interpreter" --library-path "$folders" --list "$work/made/$program" | awk '/=> \//{ print $3 }'); do
      cp -L "$library" "$work/made/lib/"
    done
  done
  cp "$interpreter" "$work/made/lib/"
  patch() { "$interpreter" --library-path "$folders" "$work/root/usr/bin/patchelf" --force-rpath --set-rpath "$FFMPEG7/lib" "$@"; }
  for library in "$work"/made/lib/*; do
    [ "$(basename "$library")" = "$(basename "$interpreter")" ] || patch "$library" || return 1
  done
  patch --set-interpreter "$FFMPEG7/lib/$(basename "$interpreter")" "$work/made/ffmpeg" "$work/made/ffprobe" || return 1
  rm -rf "$FFMPEG7" && mv "$work/made" "$FFMPEG7" && chmod -R a+rX "$FFMPEG7"
}

if [ -z "${FFMPEGS:-}" ]; then
  FFMPEGS=$(dirname "$(command -v ffmpeg)")
  if [ "$(major_of ffmpeg)" -lt 7 ]; then
    if [ -z "$(major_of "$FFMPEG7/ffmpeg")" ]; then
      say "unpacking an ffmpeg of the 7 line into .tools/ (once)"
      (unpack_ffmpeg7 "$TOOLS_DIR/ffmpeg7.new") || true
      rm -rf "$TOOLS_DIR/ffmpeg7.new"
    fi
    if [ -z "$(major_of "$FFMPEG7/ffmpeg")" ]; then
      [ "${CI:-}" != true ] || fail "there is no ffmpeg of the 7 line: install one and name both folders in FFMPEGS"
      say "there is no ffmpeg of the 7 line, going on with the system's"
    fi
    [ -z "$(major_of "$FFMPEG7/ffmpeg")" ] || FFMPEGS="$FFMPEGS:$FFMPEG7"
  fi
fi
export FFMPEGS
