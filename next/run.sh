#!/bin/sh
# Sets up what a task needs, in a virtual environment of its own, and runs the task.
#   sh run.sh demo                         fit wine, write a proof, check it
#   sh run.sh test [ARGUMENTS OF PYTEST]   lint, types, doctests, the test suite
#   sh run.sh slow                         tests that are marked slow
#   sh run.sh claims SECONDS               fresh examples of the claims, never the same
#   sh run.sh build                        wheel and sdist in dist, installed and tried
set -eu
cd "$(dirname "$0")"
task=${1:-test}
venv=${BLOCKSPCA_NEXT_VENV:-.venv}
[ $# -eq 0 ] || shift

# Installs the package once; the stamp is as old as the last install.
install() {
    stamp="$venv/.installed"
    if [ ! -x "$venv/bin/python" ]; then
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
            echo "run.sh: Python 3.11 or newer is needed." >&2
            exit 1
        }
        python3 -m venv "$venv"
    fi
    if [ ! -f "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
        echo "Installing blockspca and its test dependencies ..." >&2
        "$venv/bin/python" -m pip install --quiet --editable ".[test]" 2>"$venv/pip.log" || {
            cat "$venv/pip.log" >&2
            exit 1
        }
        touch "$stamp"
    fi
}

# One worker a core, so more threads of BLAS would only wait for one another.
run_tests() {
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$venv/bin/python" -m pytest \
        --numprocesses auto --maxprocesses 8 --dist worksteal "$@"
}

case $task in
demo)
    install
    python=$(cd "$venv/bin" && pwd)/python
    trial=$(mktemp -d)
    trap 'rm -rf "$trial"' EXIT
    cd "$trial"
    "$python" -c 'from sklearn.datasets import load_wine
load_wine(as_frame=True).data.to_csv("wine.csv", index=False)'
    "$python" -m blockspca fit wine.csv -k 3 --scale --proof wine.proof
    "$python" -m blockspca.checker wine.proof wine.csv --explain
    ;;
test)
    install
    "$venv/bin/ruff" check .
    "$venv/bin/ruff" format --check .
    "$venv/bin/mypy"
    run_tests -m "not slow" "$@"
    ;;
slow)
    install
    run_tests -m slow "$@"
    ;;
claims)
    install
    BLOCKSPCA_CLAIMS_SECONDS=${1:?seconds} "$venv/bin/python" -m pytest tests/test_claims.py \
        --hypothesis-profile=fresh -p no:xdist -q -s
    ;;
build)
    install
    "$venv/bin/python" -m pip install --quiet build 2>/dev/null
    rm -rf dist
    "$venv/bin/python" -m build --outdir dist . >/dev/null
    trial=$(mktemp -d)
    trap 'rm -rf "$trial"' EXIT
    "$venv/bin/python" -m venv "$trial/venv"
    "$trial/venv/bin/python" -m pip install --quiet dist/*.whl 2>/dev/null
    (cd "$trial" && venv/bin/python -c 'import blockspca; print(blockspca.__version__)')
    ls dist
    ;;
*)
    echo "run.sh: unknown task '$task'; use 'demo', 'test', 'slow', 'claims' or 'build'." >&2
    exit 2
    ;;
esac
