#!/usr/bin/env bash
# Prepares the Python end of the interop tests, and says where it is.
#
#   bash tests/interop/setup.sh
#
# On success these lines are all there is on stdout, the last three only where the module could be had:
#
#   TENSORWIRE_PYTHON=<an interpreter that imports torch, zmq and numpy>
#   TENSORWIRE_CODEC=<codec.py of the sglang release in requirements.txt; protocol.py and the head node's files lie beside it>
#   TENSORWIRE_PYNNG=<a folder for its PYTHONPATH, with the module pynng>
#   TENSORWIRE_MSGSPEC=<a folder for its PYTHONPATH, with the module msgspec, which the head node imports>
#   TENSORWIRE_SAFETENSORS=<a folder for its PYTHONPATH, with the module safetensors>
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
# Modules for one test each: a folder of their own leaves Python's own alone.
pynng=pynng==0.9.0
msgspec=msgspec==0.23.0
safetensors=safetensors==0.8.0

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
names = ["orchestrator.py", "dispatch_policy.py", "request_state.py", "roles.py", "transport/codec.py", "transport/protocol.py"]
with zipfile.ZipFile(wheel) as archive:
    for name in names:
        member = "sglang/multimodal_gen/runtime/disaggregation/" + name
        pathlib.Path(folder, pathlib.Path(name).name).write_bytes(archive.read(member))
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
    quietly "$python" -c "$extract" "$download"/*.whl "$download" || fail "the wheel of $requirement lacks a file"
    mkdir -p "$codec_dir"
    # roles.py last, by a rename: where it is, everything is.
    for name in codec protocol orchestrator dispatch_policy request_state roles; do
        mv "$download/$name.py" "$codec_dir/$name.py"
    done
}

has_module() { PYTHONPATH=$work/$1 quietly "$python" -c "import $1"; }

# Prints the folder of a module; the wheels are for the interpreter, whichever pip fetches them.
fetch_module() {
    local name=$1 requirement=$2 pip version
    if ! has_module "$name"; then
        pip=$(find_pip) || return 1
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        rm -rf "${work:?}/$name"
        # shellcheck disable=SC2086
        quietly $pip install --target "$work/$name" --only-binary :all: --implementation cp --python-version "$version" "$requirement"
        has_module "$name" || return 1
    fi
    echo "$work/$name"
}

python=$(find_python) || fail "no Python with torch, pyzmq and numpy: install python3-torch and python3-zmq, or set TENSORWIRE_PYTHON"
[ -e "$codec_dir/roles.py" ] || fetch_codec

echo "TENSORWIRE_PYTHON=$python"
echo "TENSORWIRE_CODEC=$codec_dir/codec.py"
if folder=$(fetch_module pynng "$pynng"); then
    echo "TENSORWIRE_PYNNG=$folder"
else
    echo "tests/interop/setup.sh: no $pynng, so no peer for the test interop_nng (log: $log)" >&2
fi
if folder=$(fetch_module msgspec "$msgspec"); then
    echo "TENSORWIRE_MSGSPEC=$folder"
else
    echo "tests/interop/setup.sh: no $msgspec, so no head node for the test interop_head_node (log: $log)" >&2
fi
if folder=$(fetch_module safetensors "$safetensors"); then
    echo "TENSORWIRE_SAFETENSORS=$folder"
else
    echo "tests/interop/setup.sh: no $safetensors, so no second reader of .safetensors for the test cli (log: $log)" >&2
fi
