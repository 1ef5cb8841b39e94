#!/bin/sh
# Tests ree on several releases of Debian and Ubuntu, each with its own compilers and drivers, and writes
# one table of the results. Needs root, debootstrap, a network and about 10 GB of disk; takes about 40
# minutes per release on 2 cores.
#
#     tools/matrix.sh                                all releases
#     tools/matrix.sh bookworm trixie                only these
#     tools/matrix.sh --output docs/RELEASES.md      also write the table to this file
#     tools/matrix.sh --list                         list the releases and what exists of each; needs no root
#     tools/matrix.sh --enter trixie [COMMAND...]    open a shell in what a run left
#
#     --dir FOLDER      folder of roots, packages, logs and results (${XDG_CACHE_HOME:-~/.cache}/ree/matrix)
#     --only LIST       only these cells, such as "quickstart,gcc/lavapipe:512,clang" (names or beginnings of
#                       names); the table keeps the rows of the others
#     --shared FOLDER   the real models for the tests (default $REE_SHARED_DIR, or ../shared if it exists)
#     --fresh           make the bare roots again; by default existing ones are updated
#     --no-slow         leave out the slow tests: half of the time; the table says "(quick)"
#     --keep            keep the folder of a release even if all its cells are green
#     --compiler-cache  install ccache in the roots, with one cache for all runs and releases: unchanged files
#                       are not compiled again by the same compiler
#     --table           only write the table, from the recorded results
#     --stale           also accept archives whose index has expired: an outdated mirror or a snapshot
#     --mirror URL, --ubuntu-mirror URL     use other archives
#
# For each release:
#
#     1. debootstrap makes a bare root: its minimal variant, git and ca-certificates. The root and the
#        downloaded packages are kept for later runs.
#     2. A copy of the root gets a clone of this tree's HEAD (without uncommitted changes).
#     3. The cells run in it as for a new user, each with a log:
#
#        quickstart          tools/quickstart.sh
#        COMPILER            tools/test.sh --quick --slow, built with it: the CPU, and lavapipe with its default width
#        COMPILER/lavapipe:WIDTH   a few tests of Vulkan with vectors of another width, in bits
#        COMPILER/swiftshader      the tests of Vulkan on SwiftShader
#        COMPILER/swiftshader:few  a few of them
#
#        Drivers compile the shaders, so the second compiler runs on fewer drivers.
#
#        Each cell ends with the sample models (tools/check-sample.sh): their hashes are right or wrong.
#
# A cell is green if all its tests passed, no hash was wrong and no device failed. A cell is "not run",
# which is neither green nor failed, if its driver does not exist for this release, or if ree refuses the
# driver because it crashes or compiles wrong code.
#
# The table has a row for each cell, with the date and the commit of its run. Rows of cells that this run
# did not include come from the last run in the folder, or from the page of --output. The part of that page
# that begins with the line "## Notes" is kept.
#
# Roots are entered in their own mount and process namespaces: mounts and processes in them end with this
# script (after SIGKILL: with the current cell). Folders are removed outside of these namespaces, and never
# if something is mounted below them.
#
# Exit status
#     0  every cell of this run is green or not run, and at least one is green
#     1  otherwise
#     2  wrong usage
# shellcheck disable=SC2317 # most functions are called through in_background
set -u
tree=$(cd "$(dirname "$0")/.." && pwd -P) || exit 2
# shellcheck source=tools/packages.sh
. "$tree/tools/packages.sh"

known="bookworm bookworm-backports trixie testing sid noble"
title() { # RELEASE
    case $1 in
    bookworm) echo "Debian 12" ;;
    bookworm-backports) echo "Debian 12, Mesa from its backports" ;;
    trixie) echo "Debian 13" ;;
    testing) echo "Debian testing" ;;
    sid) echo "Debian sid" ;;
    noble) echo "Ubuntu 24.04" ;;
    esac
}
# On Debian 12 `clang` means clang 19 in tools/test.sh; the system's own is clang 14.
compilers() { # RELEASE
    case $1 in
    bookworm) echo "gcc clang clang-14" ;;
    *) echo "gcc clang" ;;
    esac
}
drivers() { # COMPILER
    case $1 in
    gcc) echo "lavapipe:128 lavapipe:256 lavapipe:512 swiftshader" ;;
    clang) echo "swiftshader:few" ;;
    esac
}

usage() { sed -n '2,/^# shellcheck/{/^# shellcheck/d; s/^# \{0,1\}//p;}' "$0"; }
wrong_usage() { echo "matrix.sh: $* (try --help)" >&2; exit 2; }

dir=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ree/matrix
releases="" action=run output="" only="" fresh=no keep=no stale=no slow=--slow compiler_cache=no
shared=${REE_SHARED_DIR:-$tree/../shared}
mirror=http://deb.debian.org/debian
ubuntu_mirror=http://archive.ubuntu.com/ubuntu
while [ $# -gt 0 ]; do
    case $1 in
    --dir | --output | --only | --shared | --mirror | --ubuntu-mirror | --enter)
        [ $# -gt 1 ] || wrong_usage "$1 requires a value" ;;
    esac
    case $1 in
    --help) usage; exit 0 ;;
    --list) action=list ;;
    --table) action=table ;;
    --fresh) fresh=yes ;;
    --keep) keep=yes ;;
    --compiler-cache) compiler_cache=yes ;;
    --no-slow) slow="" ;;
    --stale) stale=yes ;;
    --dir) dir=$2; shift ;;
    --output) output=$2; shift ;;
    --only) only=$2; shift ;;
    --shared) shared=$2; shift ;;
    --mirror) mirror=$2; shift ;;
    --ubuntu-mirror) ubuntu_mirror=$2; shift ;;
    --enter) action=enter; releases=$2; shift 2; break ;;
    -*) wrong_usage "unknown option '$1'" ;;
    *) releases="$releases $1" ;;
    esac
    shift
done
releases=${releases:-$known}
for release in $releases; do
    [ -n "$(title "$release")" ] || wrong_usage "unknown release '$release': $known"
done
case $dir in *[!A-Za-z0-9_./-]*) wrong_usage "--dir: letters, digits and _./- only, not '$dir'" ;; esac

# --- the table ---

write_table() {
    cat <<'END'
# Releases that were tried

A row is one run of tests on a release, in a bare root of it: a compiler, and the Vulkan driver beside
the CPU. `tools/matrix.sh` makes this table; `tools/matrix.sh --help` says what is run.

- passed, failed, skipped: tests of `tools/test.sh --quick --slow`, or `tools/quickstart.sh` as one; "(quick)": of
  `tools/test.sh --quick`
- hashes: whether the sample models have the recorded hashes (`tools/check-sample.sh`) on every device
- "not run": the driver of this row cannot be had on this release, or ree refuses it because of a defect

| release | run | compiler | driver | passed | failed | skipped | hashes | date, commit |
|---|---|---|---|---|---|---|---|---|
END
    for release in $known; do rows_of "$release"; done
    notes=$(for release in $known; do failures_of "$release"; done)
    [ -z "$notes" ] || printf '\nWhat failed:\n\n%s\n' "$notes"
    # The notes are written by hand.
    [ ! -f "$output" ] || sed -n '/^## Notes/{x;p;x;:a;p;n;ba}' "$output"
}

# The rows of a release and its failures: from the last run in this folder; without one, from the
# page that --output names.
rows_of() { # RELEASE
    if [ -f "$dir/results/$1.rows" ]; then
        cat "$dir/results/$1.rows"
    elif [ -f "$output" ]; then
        grep "^| $(title "$1") | .*[0-9]-[0-9][0-9], [0-9a-f]* |\$" "$output"
    fi
}
failures_of() { # RELEASE
    if [ -f "$dir/results/$1.rows" ]; then
        cat "$dir/results/$1.failures"
    elif [ -f "$output" ]; then
        grep "^- $(title "$1"): " "$output"
    fi
}

publish() {
    [ -n "$output" ] || return 0
    # shellcheck disable=SC2015 # either part may fail
    mkdir -p "$(dirname "$output")" && write_table >"$output.new" && mv "$output.new" "$output" ||
        die "cannot write $output"
}

if [ $action = list ]; then
    echo "in $dir:"
    for release in $known; do
        state="no root yet"
        [ ! -d "$dir/bare/$release" ] || state="a bare root"
        [ ! -d "$dir/work/$release" ] || state="$state, and the folder of its last run"
        if [ -f "$dir/results/$release.rows" ]; then
            # Failed tests and wrong hashes are printed in bold.
            n_rows=$(grep -c . "$dir/results/$release.rows")
            n_absent=$(grep -c '| not run | not run |' "$dir/results/$release.rows")
            state="$state; $((n_rows - n_absent)) cells tried,"
            state="$state $(grep -c '\*\*' "$dir/results/$release.rows") of them not green"
            [ "$n_absent" = 0 ] || state="$state; $n_absent not run"
        fi
        printf '  %-20s %-36s %s\n' "$release" "$(title "$release")" "$state"
    done
    exit 0
elif [ $action = table ]; then
    publish
    [ -n "$output" ] || write_table
    exit 0
fi

# --- roots ---

[ "$(id -u)" = 0 ] || die "matrix.sh needs root, to make and enter root folders of other systems: sudo $0"
mkdir -p "$dir/bare" "$dir/work" "$dir/logs" "$dir/results" "$dir/packages" || die "cannot create $dir"
dir=$(cd "$dir" && pwd -P)

# All mounts exist only in this mount namespace and disappear with its last process.
# Arguments: root, folder of packages, shared folder or "", folder of ccache or "", command.
# shellcheck disable=SC2016 # expanded by the shell that runs it
mounts='
set -e
root=$1 packages=$2 shared=$3 ccache=$4
shift 4
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
# Modes as usual: apt downloads as a user of its own, who writes to /dev/null.
umask 0
for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    numbers=${node#*:}
    mknod -m 666 "$root/dev/${node%%:*}" c "${numbers%:*}" "${numbers#*:}"
done
ln -s /proc/self/fd "$root/dev/fd"
for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%:*}" "$root/dev/${name#*:}"; done
mkdir -m 755 "$root/dev/pts" "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
umask 022
mount --bind "$packages" "$root/var/cache/apt/archives"
if [ -n "$shared" ]; then
    mkdir -p "$root/root/shared"
    mount --bind "$shared" "$root/root/shared"
    mount -o remount,bind,ro "$root/root/shared"
fi
if [ -n "$ccache" ]; then
    mkdir -p "$root/root/ccache"
    mount --bind "$ccache" "$root/root/ccache"
fi
set +e
# Not exec: this shell, the first process of its namespace, collects what others leave.
chroot "$root" "$@"
exit $?
'
isolated() {
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
        --propagation private --mount-proc "$@"
}

# in_background LOG COMMAND...: runs the command and waits for it; a signal to this script ends it.
# On a terminal it shows the last line of the log meanwhile.
child=""
in_background() {
    log=$1
    shift
    "$@" >>"$log" 2>&1 </dev/null 9>&- &
    child=$!
    while [ -t 2 ] && kill -0 "$child" 2>/dev/null; do
        printf '\r\033[K            %s' \
            "$(tail -n 1 "$log" | tr -cd '[:print:]' | cut -c 1-64)" >&2
        sleep 2
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    wait "$child"
    ended_with=$?
    child=""
    return $ended_with
}
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null' EXIT
trap 'echo; echo "matrix.sh: interrupted" >&2; exit 1' HUP INT TERM

family() { case $1 in noble) echo ubuntu ;; *) echo debian ;; esac; }

# enter RELEASE ROOT COMMAND...: runs the command inside the root.
enter() {
    packages=$dir/packages/$(family "$1")-apt root=$2
    shift 2
    mkdir -p "$packages/partial"
    models=""
    [ ! -d "$shared" ] || models=$(cd "$shared" && pwd -P)
    path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ccache=""
    if [ "$compiler_cache" = yes ]; then
        ccache=$dir/ccache path=/usr/lib/ccache:$path
        mkdir -p "$ccache"
    fi
    # ccache knows a compiler by its content: packages of several releases may have the same one.
    isolated sh -c "$mounts" enter "$root" "$packages" "$models" "$ccache" \
        env -i HOME=/root PATH="$path" CCACHE_DIR=/root/ccache CCACHE_COMPILERCHECK=content \
        TERM="${TERM:-dumb}" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} "$@"
}

# Refuses if anything is mounted below the folder, because the mounted files would be removed too.
remove_folder() { # FOLDER below $dir
    [ -e "$1" ] || return 0
    case $1 in "$dir"/?*) ;; *) die "will not remove $1" ;; esac
    if grep -qF " $1/" /proc/self/mountinfo; then
        die "something is mounted below $1; unmount it first (findmnt -R)"
    fi
    rm -rf --one-file-system "$1" || die "cannot remove $1"
}

sources() { # RELEASE
    case $1 in
    noble)
        for pocket in noble noble-updates noble-security; do
            echo "deb $ubuntu_mirror $pocket main universe"
        done
        return ;;
    esac
    suite=${1%-backports}
    echo "deb $mirror $suite main"
    case $1 in
    bookworm* | trixie)
        echo "deb $mirror $suite-updates main"
        echo "deb ${mirror%/debian}/debian-security $suite-security main" ;;
    esac
    [ "$1" = "$suite" ] || echo "deb $mirror $1 main"
}

bootstrap() { # RELEASE ROOT
    suite=${1%-backports} archive=$mirror
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    # An old debootstrap has no script for a newer release of Ubuntu; all its scripts for Ubuntu are
    # the same.
    script=/usr/share/debootstrap/scripts/$suite
    if [ "$(family "$1")" = ubuntu ]; then
        archive=$ubuntu_mirror keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
        [ -e "$script" ] || script=/usr/share/debootstrap/scripts/gutsy
    fi
    if [ ! -f "$keyring" ]; then
        name=$(basename "$keyring")
        keyring=$dir/keyrings/$name
        if [ ! -f "$keyring" ]; then
            mkdir -p "$dir/keyrings"
            (cd "$dir/keyrings" && download_from trixie ubuntu-keyring &&
                dpkg-deb --fsys-tarfile ubuntu-keyring_*.deb |
                tar -x --strip-components=4 "./usr/share/keyrings/$name" &&
                rm -f ubuntu-keyring_*.deb) || return 1
        fi
    fi
    mkdir -p "$dir/packages/$(family "$1")"
    isolated debootstrap --variant=minbase --include=git,ca-certificates --keyring="$keyring" \
        --cache-dir="$dir/packages/$(family "$1")" "$suite" "$2" "$archive" "$script"
}

# Makes or updates the bare root of the release in $dir/bare/RELEASE.
prepare() { # RELEASE
    root=$dir/bare/$1
    [ "$fresh" = no ] || remove_folder "$root"
    if [ ! -d "$root" ]; then
        remove_folder "$root.new"
        bootstrap "$1" "$root.new" || return 1
        # Starts no daemons. Skips syncing: a power failure may cost this root.
        printf '#!/bin/sh\nexit 101\n' >"$root.new/usr/sbin/policy-rc.d" &&
            chmod 755 "$root.new/usr/sbin/policy-rc.d" &&
            echo force-unsafe-io >"$root.new/etc/dpkg/dpkg.cfg.d/matrix" &&
            printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n' "$(hostname)" \
                >"$root.new/etc/hosts" &&
            rm -f "$root.new/etc/apt/sources.list.d"/* &&
            mv "$root.new" "$root" || return 1
    fi
    # resolv.conf is a link on some systems.
    rm -f "$root/etc/resolv.conf" && cp -L /etc/resolv.conf "$root/etc/resolv.conf" &&
        sources "$1" >"$root/etc/apt/sources.list" &&
        if [ "$stale" = yes ]; then
            echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90-stale"
        fi &&
        enter "$1" "$root" sh -c 'apt-get update -q && apt-get -q -y dist-upgrade' || return 1
}

# Copies the bare root to $dir/work/RELEASE, with a clone of ree.
clone() { # RELEASE
    cp -a --reflink=auto "$dir/bare/$1" "$dir/work/$1" &&
        git clone -q "$dir/ree.bundle" "$dir/work/$1/root/ree" || return 1
    if [ "$compiler_cache" = yes ]; then
        enter "$1" "$dir/work/$1" apt-get -q -y --no-install-recommends install ccache || return 1
    fi
    case $1 in
    *-backports)
        enter "$1" "$dir/work/$1" apt-get -q -y --no-install-recommends -t "$1" install \
            mesa-vulkan-drivers ;;
    esac
}

prepare_and_clone() { prepare "$1" && clone "$1"; }

if [ $action = enter ]; then
    [ -d "$dir/work/$releases" ] || die "$dir/work has no folder of a run of $releases"
    [ $# -gt 0 ] || set -- bash -c 'cd /root/ree && exec bash -i'
    enter "$releases" "$dir/work/$releases" "$@"
    exit $?
fi

# --- cells ---

# The script that runs in a root. Its last lines, each beginning with @, are for the table.
# shellcheck disable=SC2016 # expanded by the shell that runs it
cell_script='
cd /root/ree || exit 2
. tools/packages.sh
compiler=$1 driver=$2 tree=build status=0 absent=no
lavapipe=$(find /usr/share/vulkan/icd.d -name "lvp_icd*.json" 2>/dev/null | head -n 1)
if [ "$compiler" = quickstart ]; then
    ./tools/quickstart.sh || status=1
else
    case $compiler in clang*) tree=build-clang ;; esac
    set -- --quick $3 --compiler "$compiler"
    [ -z "$driver" ] || set -- "$@" --driver "$driver"
    ./tools/test.sh "$@"
    case $? in
    0) ;;
    77) absent=yes ;;
    *) status=1 ;;
    esac
    lavapipe=$(find /usr/share/vulkan/icd.d -name "lvp_icd*.json" 2>/dev/null | head -n 1)
    export VK_ICD_FILENAMES=${lavapipe:-none}
    case $driver in
    lavapipe:*) export LP_NATIVE_VECTOR_WIDTH=${driver#*:} ;;
    swiftshader*) VK_ICD_FILENAMES=$PWD/build/swiftshader/vk_swiftshader_icd.json ;;
    esac
    set -- vulkan
    [ -n "$driver" ] || set -- cpu vulkan
    if [ $absent = yes ]; then
        echo "$driver is not available: not run"
    elif [ -x $tree/ree-run ]; then
        ./tools/check-sample.sh --ree-run $tree/ree-run "$@" || status=1
    fi
fi
echo
# Not the link to ccache of this name.
PATH=${PATH#/usr/lib/ccache:}
c=$(sed -n "s/^CMAKE_C_COMPILER:[A-Z]*=//p" $tree/CMakeCache.txt)
c=$(readlink -f "$(command -v "${c#/usr/lib/ccache/}")")
case $c in *clang*) family=clang ;; *) family=gcc ;; esac
echo "@compiler $family $("$c" --version | sed -n "1s/.* \([0-9][0-9]*\.[0-9][0-9.]*\).*/\1/p")"
facts=$($tree/ree-run devices vulkan 2>&1)
bits=$(printf "%s\n" "$facts" | sed -n "1s/.*, \([0-9]* bits\)).*/, \1/p")
name=$(printf "%s\n" "$facts" | sed -n "s/^ *driver  *\(.*[^, ]\)[, ]*\$/\1/p")
case $driver in
swiftshader*)
    bits=" of Chromium $(candidate_version chromium-common)" name=${name:+SwiftShader}
    name=${name:-SwiftShader, which does not load,} ;;
esac
[ $absent = no ] || name="no ${driver%:*}" bits=""
case $absent,$facts in
yes,*"crashed in the probe"*) name="refused: it crashes in the probe" ;;
yes,*"generates wrong instructions"*) name="refused: its compiler has a known defect" ;;
esac
echo "@driver ${name:-none}$bits"
if [ $absent = yes ] && [ $status = 0 ]; then
    echo "@absent"
    exit 77
fi
exit $status
'

chosen() { # CELL
    [ -n "$only" ] || return 0
    rest=$only,
    while [ -n "$rest" ]; do
        pattern=${rest%%,*} rest=${rest#*,}
        # shellcheck disable=SC2254 # patterns may be patterns
        case $1 in $pattern | $pattern/*) return 0 ;; esac
    done
    return 1
}

cells() { # RELEASE
    echo quickstart
    for compiler in $(compilers "$1"); do
        echo "$compiler"
        for driver in $(drivers "$compiler"); do echo "$compiler/$driver"; done
    done
}

bold_unless() { # VALUE GOOD
    if [ "$1" = "$2" ]; then echo "$1"; else echo "**$1**"; fi
}

# Prints the results of the sample models on each device, from a cell's log: "vulkan:0 right".
verdicts() { # LOG
    sed -n 's/^\(cpu\|vulkan\|vulkan:[0-9]*\|cuda\|cuda:[0-9]*\|devices\)  *\(right\|WRONG: .*\|failed: .*\)$/\1 \2/p' "$1"
}

# Prints green, failed, or absent (the driver does not exist). quickstart.sh succeeds even if a
# device that is not needed failed; such a cell is not green.
outcome() { # LOG STATUS
    if [ "$2" = 77 ] && grep -q '^@absent$' "$1"; then
        echo absent
    elif [ "$2" = 0 ] && ! verdicts "$1" | grep -q ' WRONG: \| failed: '; then
        echo green
    else
        echo failed
    fi
}

# Prints a row of the table from a cell's log.
row() { # RELEASE CELL LOG STATUS OUTCOME
    summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$3" | tail -n 1)
    passed=$(printf '%s\n' "$summary" | sed -n 's/ passed.*//p')
    failed=$(printf '%s\n' "$summary" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    skipped=$(printf '%s\n' "$summary" | sed -n 's/.* \([0-9]*\) skipped.*/\1/p')
    if [ "$2" = quickstart ]; then
        passed=$((1 - $4)) failed=$4 skipped=0
    elif [ -z "$summary" ]; then
        passed=0 failed="no end"
    fi
    devices=$(verdicts "$3")
    hashes=right
    if [ -z "$devices" ]; then
        hashes="-"
    elif printf '%s\n' "$devices" | grep -q WRONG; then
        hashes="**WRONG**: $(printf '%s\n' "$devices" | sed -n 's/ WRONG: /: /p' | paste -sd';' -)"
    elif printf '%s\n' "$devices" | grep -q ' failed: '; then
        hashes="right, but for $(printf '%s\n' "$devices" | sed -n 's/^\([^ ]*\) failed: \(.*\)/\1, which **failed** (\2)/p' |
            tr '|' '/' | paste -sd';' -)"
    fi
    failed=$(bold_unless "$failed" 0) skipped=${skipped:-0}
    [ -n "$slow" ] || [ "$2" = quickstart ] || passed="$passed (quick)"
    case $5-$failed-$hashes in
    absent-*) passed="not run" failed="not run" skipped="-" ;;
    failed-*\*\**) ;;
    failed-*) hashes="$hashes; **failed**, see its log" ;;
    esac
    printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s, %s |\n' "$(title "$1")" "$2" \
        "$(sed -n 's/^@compiler //p' "$3")" "$(sed -n 's/^@driver //p' "$3")" \
        "$passed" "$failed" "$skipped" "$hashes" "$(date -u +%Y-%m-%d)" "$commit"
}

# Prints the names of the failed tests from a cell's log.
failures() { # RELEASE CELL LOG OUTCOME
    names=$(sed -n '/(Skipped)$/d; s/^[[:space:]]*[0-9]* - \([^ ]*\) (.*)$/\1/p; s/^\(.*\): FAILED$/\1/p' "$3" |
        sort -u | paste -sd, - | sed 's/,/, /g')
    [ -n "$names" ] || [ "$4" = failed ] || return 0
    echo "- $(title "$1"): $2: ${names:-see its log}"
}

# --- the run ---

missing=""
for tool in debootstrap unshare setpriv git; do
    command -v $tool >/dev/null || missing="$missing $tool"
done
[ -z "$missing" ] || die "please install:$missing (Debian, Ubuntu: apt-get install debootstrap util-linux git)"
exec 9>"$dir/lock"
flock -n 9 || die "another run uses $dir"

# With sudo the tree may belong to another user. All releases get the same commit, even if the tree
# changes.
ours() { git -c safe.directory="$tree" -C "$tree" "$@"; }
commit=$(ours rev-parse --short=10 HEAD) || die "$tree is not a clone of ree"
ours bundle create -q "$dir/ree.bundle" HEAD || die "cannot copy the commits of $tree"
[ -z "$(ours status --porcelain --untracked-files=no)" ] ||
    echo "note: uncommitted changes are not tested; testing $commit"

n_cells=0 n_done=0 n_green=0 n_absent=0 not_green="" not_run=""
for release in $releases; do
    for cell in $(cells "$release"); do
        if chosen "$cell"; then n_cells=$((n_cells + 1)); fi
    done
done
[ $n_cells != 0 ] || wrong_usage "--only: no cell is named like '$only'"

clock() { date +%H:%M; }
newline="
"
# In braces, so that the shell reads all of it at once: this file may change during the hours of a
# run.
{
for release in $releases; do
    logs=$dir/logs/$release
    rm -rf "$logs"
    mkdir -p "$logs" || die "cannot write $logs"
    say "$(title "$release")"
    begin=$(date +%s)
    echo "$(clock) a bare root (log: $logs/root.log)"
    remove_folder "$dir/work/$release"
    if ! in_background "$logs/root.log" prepare_and_clone "$release"; then
        tail -n 5 "$logs/root.log"
        echo "$(clock) NO ROOT: its cells cannot run"
        not_green="$not_green
  $release: no root, see $logs/root.log"
        for cell in $(cells "$release"); do
            if chosen "$cell"; then n_done=$((n_done + 1)); fi
        done
        continue
    fi
    echo "$(clock) ready after $(($(date +%s) - begin)) s"
    old_rows=$(rows_of "$release") old_notes=$(failures_of "$release") rows="" notes="" green=yes
    for cell in $(cells "$release"); do
        if ! chosen "$cell"; then
            rows=$rows$(printf '%s\n' "$old_rows" | grep -F "| $(title "$release") | $cell | ")
            notes=$notes$(printf '%s\n' "$old_notes" | grep -F -e "- $(title "$release"): $cell: ")
            [ -z "$rows" ] || rows="${rows%"$newline"}$newline"
            [ -z "$notes" ] || notes="${notes%"$newline"}$newline"
            continue
        fi
        n_done=$((n_done + 1))
        compiler=${cell%%/*} driver=""
        [ "$compiler" = "$cell" ] || driver=${cell#*/}
        log=$logs/$(echo "$cell" | tr '/:' '--').log
        begin=$(date +%s)
        # The default width of the driver was already tested with the whole suite.
        case $driver in lavapipe:*)
            if grep -qs "^@driver .*, ${driver#*:} bits" "$logs/$compiler.log"; then
                n_done=$((n_done - 1)) n_cells=$((n_cells - 1))
                continue
            fi ;;
        esac
        echo "$(clock) [$n_done/$n_cells] $release, $cell (log: $log)"
        in_background "$log" enter "$release" "$dir/work/$release" timeout 7200 \
            sh -c "$cell_script" cell "$compiler" "$driver" "$slow"
        status=$?
        outcome=$(outcome "$log" $status)
        [ $status = 0 ] || status=1
        line=$(row "$release" "$cell" "$log" $status "$outcome")
        note=$(failures "$release" "$cell" "$log" "$outcome")
        echo "            $(($(date +%s) - begin)) s $line"
        rows=$rows$line$newline
        [ -z "$note" ] || notes=$notes$note$newline
        case $outcome in
        green) n_green=$((n_green + 1)) ;;
        absent)
            n_absent=$((n_absent + 1)) not_run="$not_run
  $release, $cell: $log" ;;
        *)
            green=no not_green="$not_green
  $release, $cell: $log" ;;
        esac
    done
    printf %s "$rows" >"$dir/results/$release.rows"
    printf %s "$notes" >"$dir/results/$release.failures"
    publish
    if [ $green = yes ] && [ $keep = no ]; then remove_folder "$dir/work/$release"; fi
done

say "all recorded results"
write_table
[ -z "$not_green" ] || printf '\nnot green:%s\n' "$not_green"
[ -z "$not_run" ] || printf '\nnot run, because the driver is not available:%s\n' "$not_run"
printf '\n%d of %d cells are green' $n_green $n_cells
[ $n_absent = 0 ] || printf ', %d not run' $n_absent
echo
[ $n_green != 0 ] && [ $((n_green + n_absent)) = $n_cells ]
exit
}
