# For .ci/run and .ci/test: steps with a header and a clock, skips that are never silent, and the closing lines.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
case $CARGO_TARGET_DIR in /*) ;; *) CARGO_TARGET_DIR=$PWD/$CARGO_TARGET_DIR ;; esac

# One set of debug options for all: cargo builds a build dependency anew when a step shares it under other options,
# and with it libzmq, which takes a minute. A panic's line number does not depend on this.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_BENCH_DEBUG=0
# Nothing is compiled twice with a small change between: what incremental builds keep is written for nothing, gigabytes of it.
export CARGO_INCREMENTAL=0

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

closing() {
    local status=$?
    trap - EXIT
    # Ended in the middle of a step, by whatever: that step has failed.
    if [ $status = 0 ] && [ -n "$ci_step" ]; then status=1; fi
    if [ "${ci_outermost:-no}" = yes ]; then
        printf '\n=== [%s] %s: ' "$(elapsed)" "$0"
        if [ $status = 0 ] && [ "${CI_REQUIRE:-}" = 1 ] && [ -s "$CI_RECORD/skipped" ]; then
            ci_step="nothing is to be skipped"
            status=1
        fi
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
trap 'exit 130' INT
trap 'exit 143' TERM

# The names in [features] of Cargo.toml that match a pattern, one a line.
features_like() {
    awk '/^\[/ { inside = ($0 == "[features]") } inside && /^[A-Za-z_]/ { print $1 }' Cargo.toml | grep -E "$1" | grep -vx default
}

joined() { paste -sd, -; }

public_features=$(features_like '^[a-z]')
all_features=$(joined <<<"$public_features")
# Without what builds two hundred crates, and has no bench and no `unsafe` of ours.
lean_features=$(grep -vxE 'candle|cli' <<<"$public_features" | joined)
# Without the transports, and what builds hundreds of crates: nothing that is slow to build.
light_features=$(grep -vxE 'zmq|nng|iceoryx2|cuda|candle|cli' <<<"$public_features" | joined)
