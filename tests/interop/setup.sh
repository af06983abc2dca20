#!/usr/bin/env bash
# Prepares the Python end of the interop test, and says where it is.
#
#   bash tests/interop/setup.sh
#
# On success these lines are all there is on stdout, the last one only where pynng could be had:
#
#   TENSORWIRE_PYTHON=<an interpreter that imports torch, zmq and numpy>
#   TENSORWIRE_CODEC=<codec.py of the sglang release in requirements.txt>
#   TENSORWIRE_PYNNG=<a folder for its PYTHONPATH, with the module pynng>
#
# On failure: one line on stderr that says what to install, and a non-zero exit status.
#
# An interpreter is looked for in this order: $TENSORWIRE_PYTHON, the system's own, the first on PATH, the virtual
# environment of an earlier run, Debian's packages (as root, or by a sudo that asks nothing), a new virtual environment.
# Nothing is done twice: a second run installs and downloads nothing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
work=$target/interop
log=$work/setup.log
requirement=$(sed -n 's/^\(sglang==[0-9.]*\).*/\1/p' "$here/requirements.txt")
codec_dir=$work/${requirement/==/-}
pynng=pynng==0.9.0

mkdir -p "$work"
: >"$log"

fail() {
    echo "tests/interop/setup.sh: $* (log: $log)" >&2
    exit 1
}

# What a package manager says goes to the log.
quietly() {
    echo "+ $*" >>"$log"
    "$@" >>"$log" 2>&1 </dev/null
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        quietly "$@"
    else
        quietly sudo -n "$@"
    fi
}

apt_updated=no
apt_install() {
    command -v apt-get >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    if [ $apt_updated = no ]; then
        as_root apt-get update || return 1
        apt_updated=yes
    fi
    as_root apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "$@"
}

has_modules() {
    [ -n "$1" ] && command -v "$1" >/dev/null && quietly "$1" -c 'import numpy, torch, zmq; torch.frombuffer'
}

# PyPI's torch for Linux on x86-64 brings gigabytes of CUDA with it: there the system's package is the way.
make_venv() {
    case "$(uname -s)-$(uname -m)" in Linux-x86_64) return 1 ;; esac
    quietly python3 -m venv "$work/venv" && quietly "$work/venv/bin/python" -m pip install numpy pyzmq torch
}

find_python() {
    local candidate
    for candidate in "${TENSORWIRE_PYTHON:-}" /usr/bin/python3 "$(command -v python3 || true)" "$work/venv/bin/python"; do
        if has_modules "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    if apt_install python3 python3-numpy python3-torch python3-zmq && has_modules /usr/bin/python3; then
        echo /usr/bin/python3
    elif make_venv && has_modules "$work/venv/bin/python"; then
        echo "$work/venv/bin/python"
    else
        return 1
    fi
}

# Any pip will do: it only downloads.
find_pip() {
    local candidate
    for candidate in "$python -m pip" "python3 -m pip" pip3 pip; do
        # shellcheck disable=SC2086 # two words on purpose
        if quietly $candidate --version; then
            echo "$candidate"
            return
        fi
    done
    apt_install python3-pip && echo "/usr/bin/python3 -m pip"
}

extract='
import pathlib, sys, zipfile
wheel, folder = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for name in ("codec.py", "protocol.py"):
        member = "sglang/multimodal_gen/runtime/disaggregation/transport/" + name
        pathlib.Path(folder, name).write_bytes(archive.read(member))
'

# The wheel's own tags are given, so that any interpreter on any machine may fetch it: only pure Python is taken out of it.
fetch_codec() {
    local pip download
    pip=$(find_pip) || fail "no pip: install python3-pip"
    download=$(mktemp -d "$work/download.XXXXXX")
    # shellcheck disable=SC2064 # expanded now, while it has a value
    trap "rm -rf '$download'" EXIT
    # shellcheck disable=SC2086
    quietly $pip download --require-hashes --no-deps --only-binary :all: --dest "$download" \
        --implementation cp --python-version 3.11 --abi cp311 --platform manylinux_2_34_x86_64 \
        --requirement "$here/requirements.txt" || fail "pip could not download $requirement"
    quietly "$python" -c "$extract" "$download"/*.whl "$download" || fail "no codec.py in the wheel of $requirement"
    mkdir -p "$codec_dir"
    # codec.py last, by a rename: where it is, everything is.
    mv "$download/protocol.py" "$codec_dir/protocol.py"
    mv "$download/codec.py" "$codec_dir/codec.py"
}

# The wheels are for the interpreter, whichever pip fetches them; a folder of their own leaves Python's own alone.
pynng_dir=$work/pynng
has_pynng() { PYTHONPATH=$pynng_dir quietly "$python" -c 'import pynng; pynng.Pull0'; }
fetch_pynng() {
    local pip version
    pip=$(find_pip) || return 1
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    rm -rf "$pynng_dir"
    # shellcheck disable=SC2086
    quietly $pip install --target "$pynng_dir" --only-binary :all: --implementation cp --python-version "$version" "$pynng"
}

python=$(find_python) || fail "no Python with torch, pyzmq and numpy: install python3-torch and python3-zmq, or set TENSORWIRE_PYTHON"
[ -e "$codec_dir/codec.py" ] || fetch_codec

echo "TENSORWIRE_PYTHON=$python"
echo "TENSORWIRE_CODEC=$codec_dir/codec.py"
if has_pynng || { fetch_pynng && has_pynng; }; then
    echo "TENSORWIRE_PYNNG=$pynng_dir"
else
    echo "tests/interop/setup.sh: no $pynng, so no peer for the test interop_nng (log: $log)" >&2
fi
