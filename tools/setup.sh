#!/bin/sh
# Make a virtual environment that holds exactly what a lock file lists:
#
#     sh tools/setup.sh PYTHON VENV LOCK TORCH_INDEX
#
# torch is installed first and alone, because its CPU build lies on an index of its own. Asking that index for every
# package would cost minutes wherever it cannot be reached; asked for one, with a short timeout, it costs seconds, and
# pip then takes the wheel from a folder it is configured with (PIP_FIND_LINKS), if there is one.
set -eu
python=$1 venv=$2 lock=$3 torch_index=$4

stop() {
    echo "setup: $*" >&2
    exit 2
}
remedy='install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.13), then name it, for example: make setup PYTHON=python3.13'

version=$("$python" -c 'import sys; print("%d.%d" % tuple(sys.version_info[:2]))' 2>/dev/null) ||
    stop "no Python starts as '$python'; Python 3.11, 3.12 or 3.13 is needed: $remedy"
case $version in
3.11 | 3.12 | 3.13) ;;
*) stop "'$python' is Python $version, but 3.11, 3.12 or 3.13 is needed: $remedy" ;;
esac
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "'$python' has no venv; install it (Debian, Ubuntu: apt install python$version-venv) or name another Python, for example: make setup PYTHON=python3.13"

install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input \
        --require-hashes --no-deps --only-binary=:all: "$@"
}
"$python" -m venv --clear "$venv"
# An entry of the lock file ends at its first line without a backslash.
sed -n '/^torch==/,/[^\\]$/p' "$lock" |
    install --retries 1 --timeout 15 --extra-index-url "$torch_index" -r /dev/stdin ||
    stop "no CPU build of torch; name a mirror of its index (make setup TORCH_INDEX=URL) or a folder that holds the wheel (PIP_FIND_LINKS=DIR make setup)"
install --quiet -r "$lock"
"$venv/bin/python" -m pip check --disable-pip-version-check
echo "setup: $venv is ready: $("$venv/bin/python" -VV)"
