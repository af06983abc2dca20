# For .ci/run and .ci/test: steps with a header and a clock, skips that are never silent, and the closing lines.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
case $CARGO_TARGET_DIR in /*) ;; *) CARGO_TARGET_DIR=$PWD/$CARGO_TARGET_DIR ;; esac

# The record of one run: a line per step done and per step skipped. `.ci/run` shares it with the `.ci/test` it calls.
if [ -z "${CI_RECORD:-}" ]; then
    mkdir -p "$CARGO_TARGET_DIR/ci"
    CI_RECORD=$(mktemp -d "$CARGO_TARGET_DIR/ci/run.XXXXXX")
    export CI_RECORD
    CI_STARTED=$(date +%s)
    export CI_STARTED
    ci_outermost=yes
    : >"$CI_RECORD/done"
    : >"$CI_RECORD/skipped"
fi
ci_step=

elapsed() {
    local seconds=$(($(date +%s) - CI_STARTED))
    printf '%d:%02d' $((seconds / 60)) $((seconds % 60))
}

# step NAME COMMAND...: runs the command under a header. A failure ends the script, by `set -e`.
step() {
    ci_step=$1
    shift
    printf '\n=== [%s] %s\n' "$(elapsed)" "$ci_step"
    "$@"
    echo "$ci_step" >>"$CI_RECORD/done"
    ci_step=
}

# skip NAME REASON: for what this machine cannot do.
skip() {
    printf '\n=== [%s] SKIP %s: %s\n' "$(elapsed)" "$1" "$2"
    echo "$1: $2" >>"$CI_RECORD/skipped"
}

# missing WHAT: for what the repository should hold and does not. Only a draft may go on (CI_DRAFT=1).
missing() {
    if [ "${CI_DRAFT:-}" = 1 ]; then
        skip "$1" "not there yet (CI_DRAFT=1)"
    else
        printf '\n=== [%s] MISSING: %s\n' "$(elapsed)" "$1"
        ci_step="look for $1"
        exit 1
    fi
}

closing() {
    local status=$?
    trap - EXIT
    if [ "${ci_outermost:-no}" = yes ]; then
        printf '\n=== [%s] %s: ' "$(elapsed)" "$0"
        if [ $status = 0 ]; then echo "done"; else echo "FAILED at: ${ci_step:-start}"; fi
        sed 's/^/ran     /' "$CI_RECORD/done"
        sed 's/^/SKIPPED /' "$CI_RECORD/skipped"
        printf 'steps: %d passed, %d failed, %d skipped\n' "$(wc -l <"$CI_RECORD/done")" $((status != 0)) "$(wc -l <"$CI_RECORD/skipped")"
        rm -rf "$CI_RECORD"
    elif [ $status != 0 ]; then
        echo "FAILED at: ${ci_step:-start}"
    fi
    exit $status
}
trap closing EXIT

# The names in [features] of Cargo.toml that match a pattern, one a line.
features_like() {
    awk '/^\[/ { inside = ($0 == "[features]") } inside && /^[A-Za-z_]/ { print $1 }' Cargo.toml | grep -E "$1" | grep -vx default
}

joined() { paste -sd, -; }

public_features=$(features_like '^[a-z]')
all_features=$(joined <<<"$public_features")
# Without the transports: nothing that is slow to build.
light_features=$(grep -vxE 'zmq|nng|iceoryx2|cuda' <<<"$public_features" | joined)
