#!/usr/bin/env bash
# Installs the system packages that Stoker needs and that are missing.
#
#     tools/install-deps.sh [build|test|lint|coverage]
#
# "build" is what building needs. "test" adds what some tests use, "lint" adds to that the tools that check
# the source, "coverage" adds gcovr to "test".
#
# On Debian and Ubuntu the script installs with apt, and with sudo when not root. On other systems, and
# without the right to install, it says nothing if everything is there, and otherwise lists what to
# install by hand. If an optional package (YAML, WebP, TIFF, JPEG 2000, cairo, libarchive, libcurl, expat)
# cannot be installed, the script prints one line and does not try again before `make clean`.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
goal=${1:-build}

# One line per package: its name; other packages that serve as well (separated by |, or - for none); how to
# find it without dpkg: a command, or a header.h, which may be followed by a comma and libraries of which
# one must link; and its name for people.
needs_build='gcc clang cc C_compiler
libc6-dev - stdio.h C_library_headers
make - make make
cmake - cmake CMake
ninja-build - ninja Ninja
pkg-config pkgconf pkg-config pkg-config
libjpeg-dev libjpeg62-turbo-dev|libjpeg-turbo8-dev jpeglib.h libjpeg-turbo
libpng-dev - png.h libpng
libopenblas-dev libopenblas-pthread-dev|libopenblas-openmp-dev|libopenblas-serial-dev cblas.h,openblas|cblas|blis|mkl_rt OpenBLAS'
optional_build='libyaml-dev - yaml.h libyaml
libwebp-dev - webp/decode.h libwebp
libtiff-dev - tiffio.h libtiff
libopenjp2-7-dev - openjpeg-2.5/openjpeg.h libopenjp2
libcairo2-dev - cairo/cairo.h cairo
libarchive-dev - archive.h libarchive
libcurl4-openssl-dev libcurl4-gnutls-dev|libcurl4-nss-dev curl/curl.h libcurl
libexpat1-dev - expat.h expat'
optional_test='curl - curl curl
openssl - openssl openssl
python3-venv - python3 Python
chromium chromium-browser|google-chrome-stable chromium Chromium'
optional_arm64='libclang-rt-16-dev libclang-rt-18-dev|libclang-rt-19-dev clang-16 a_fast_leak_sanitizer'
needs_lint='clang - clang clang
clang-format - clang-format clang-format
clang-tidy - clang-tidy clang-tidy
cppcheck - cppcheck cppcheck'
needs_coverage='gcovr - gcovr gcovr'

say() {
    printf 'install-deps: %s\n' "$*" >&2
}

optional=$optional_build$'\n'$optional_test
case $goal in
build)
    needs=$needs_build
    optional=$optional_build
    ;;
test) needs=$needs_build ;;
lint)
    needs=$needs_build$'\n'$needs_lint
    [ "$(uname -m)" != aarch64 ] || optional+=$'\n'$optional_arm64
    ;;
coverage) needs=$needs_build$'\n'$needs_coverage ;;
*)
    say "unknown goal '$goal'; it can be build, test, lint or coverage"
    exit 2
    ;;
esac

# installed_packages: prints the packages above that dpkg has installed, each between blanks. Asks dpkg once.
installed_packages() {
    local names
    command -v dpkg-query >/dev/null 2>&1 || return 0
    names=$(awk '{ print $1; if ($2 != "-") print $2 }' <<<"$needs"$'\n'"$optional" | tr '|' '\n')
    # shellcheck disable=SC2086,SC2016  # the names are words, and dpkg expands the braces
    dpkg-query -W -f='${Package} ${db:Status-Status}\n' $names 2>/dev/null |
        awk '$2 == "installed" { printf " %s ", $1 }' || true
}

# links LIBRARY[|LIBRARY...]: true if a program links with one of the libraries.
links() {
    local library
    for library in ${1//|/ }; do
        echo 'int main(void) { return 0; }' |
            cc -x c -o /dev/null - "-l$library" >/dev/null 2>&1 && return 0
    done
    return 1
}

# is_there PROBE: true if the command or the header is there, installed by dpkg or not.
is_there() {
    local file
    case $1 in
    *,*) is_there "${1%,*}" && links "${1#*,}" ;;
    *.h)
        command -v cc >/dev/null 2>&1 || return 1
        if printf '#include <stdio.h>\n#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1; then
            return 0
        fi
        for file in /usr/include/openblas*/"$1" /usr/include/*/openblas*/"$1" \
            /usr/local/include/"$1" /usr/local/include/*/"$1" /opt/*/include/"$1"; do
            [ -e "$file" ] && return 0
        done
        return 1
        ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

# missing_of TABLE: prints PACKAGE NAME of each line of the table whose package is missing.
missing_of() {
    local package others probe name other
    while read -r package others probe name; do
        case $have in *" $package "*) continue ;; esac
        for other in ${others//|/ }; do
            case $have in *" $other "*) continue 2 ;; esac
        done
        is_there "$probe" || printf '%s %s\n' "$package" "$name"
    done <<<"$1"
}

first_words() {
    awk '{ printf "%s%s", (NR > 1 ? " " : ""), $1 }' <<<"$1"
}

have=$(installed_packages)
missing=$(missing_of "$needs")
missing_optional=$(missing_of "$optional")
packages=$(first_words "$missing")
optional=$(first_words "$missing_optional")

tried=$root/build/.optional-packages-tried
if [ -n "$optional" ] && [ -e "$tried" ] && [ "$(cat "$tried")" = "$optional" ]; then
    optional=
fi
if [ -z "$packages$optional" ]; then
    exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
    as_root=(sudo)
fi
if ! command -v apt-get >/dev/null 2>&1 ||
    { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; }; then
    [ -n "$packages" ] || exit 0
    say "these are missing and cannot be installed from here:" \
        "$(awk '{ gsub("_", " ", $2); printf "%s%s", (NR > 1 ? ", " : ""), $2 }' <<<"$missing")."
    if command -v apt-get >/dev/null 2>&1; then
        say "neither root nor sudo; ask an administrator for: apt-get install $packages"
    else
        say "there is no apt-get; install them with this system's package manager, headers included."
    fi
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -q "$@" \
        >>"$log" 2>&1 </dev/null
}

install() {
    apt install -y --no-install-recommends "$@"
}

# Do not ask for a password if only optional packages are missing.
if [ -z "$packages" ] && [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    exit 0
fi
say "installing ${packages:+$packages }$optional"
# If apt cannot read one of its sources, the packages may still come from another.
apt update || true
# shellcheck disable=SC2086  # names of packages are words
if install $packages $optional; then
    exit 0
fi
# shellcheck disable=SC2086
if [ -n "$packages" ] && ! install $packages; then
    cat "$log" >&2
    say "apt-get could not install: $packages (its output stands above)"
    exit 1
fi
failed=
for package in $optional; do
    install "$package" || failed="$failed $package"
done
if [ -n "$failed" ]; then
    say "without$failed, which could not be installed; what needs them is left out"
    mkdir -p "$root/build"
    printf '%s\n' "${failed# }" >"$tried"
fi
