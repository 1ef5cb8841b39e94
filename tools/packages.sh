# shellcheck shell=sh disable=SC2034 # sourced, so its variables are used elsewhere
# Sourced by quickstart.sh, test.sh and others: Debian packages, and functions for messages.

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Packages that the build needs, and those that the Vulkan backend needs in addition (without them:
# only the CPU).
build_packages="gcc libc6-dev cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev \
    libcjson-dev libssl-dev libmpfr-dev libpcre2-dev libutf8proc-dev libzip-dev python3"
vulkan_packages="glslc spirv-tools libvulkan-dev libvulkan-volk-dev libvulkan1 mesa-vulkan-drivers"

# For generation on several machines; without them, only on one.
mpi_packages="libopenmpi-dev openmpi-bin"

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages() {
    for package in "$@"; do is_installed "$package" || printf '%s ' "$package"; done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        die "not root and without sudo; as root, run: $*"
    fi
}

lists_are_fresh=no
refresh_lists() {
    if [ $lists_are_fresh = no ]; then
        as_root apt-get update -q || die "apt-get update failed; check the network"
        lists_are_fresh=yes
    fi
}

# install_packages PACKAGE...: installs the packages that are missing. Fails and names them if this
# system does not have them.
install_packages() {
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || die "apt-get not found; please install: $missing"
    echo "installing Debian packages: $missing"
    refresh_lists
    unknown=""
    for package in $missing; do
        # A package that other packages only refer to has no version to install.
        [ -n "$(candidate_version "$package")" ] || unknown="$unknown $package"
    done
    if [ -n "$unknown" ]; then
        echo "not in this system's package sources:$unknown" >&2
        echo "(docs/RELEASES.md lists the tested releases; Ubuntu has these packages in 'universe')" >&2
        return 1
    fi
    # shellcheck disable=SC2086 # a list of words
    as_root apt-get install -q -y --no-install-recommends $missing
}

# candidate_version PACKAGE: prints the version that apt would install; nothing if there is none.
candidate_version() {
    LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([^(].*\)/\1/p'
}

# download_from SUITE PACKAGE: downloads a package of another suite of Debian into the current
# folder. The package lists go below that folder, so the system's sources do not change.
download_from() {
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    if ! [ -f $keyring ]; then
        echo "$keyring not found, so packages of Debian cannot be checked" >&2
        return 1
    fi
    # shellcheck disable=SC2016 # apt fills it in
    # The mirror that this system uses, if it is one of Debian's archive.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        grep '/debian/*$' | head -n 1)
    mkdir -p apt/lists/partial apt/cache
    echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} $1 main" \
        >apt/sources.list
    suite=$1 package=$2
    set -- -q -o Dir::Etc::sourcelist="$PWD/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" \
        -o APT::Sandbox::User="$(id -un)"
    apt-get "$@" update && apt-get "$@" download "$package/$suite"
    downloaded=$?
    rm -rf apt
    return $downloaded
}
