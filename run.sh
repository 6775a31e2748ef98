#!/bin/sh
# Sets up what a task needs, in a virtual environment of its own, and runs the task.
#   sh run.sh demo    the library's main job on built-in examples
#   sh run.sh test    lint, types, doctests, README examples, the test suite, the site
#   sh run.sh slow    the tests that are marked slow
#   sh run.sh docs    build the documentation site in build/site
#   sh run.sh build   build wheel and sdist in dist, install the wheel and try it
set -eu
cd "$(dirname "$0")"

export NO_MKDOCS_2_WARNING=1 # a notice of the site's theme, for its developers
unset PYTHONDONTWRITEBYTECODE # else every worker and every process compiles all anew
task=${1:-demo}
venv=${BLOCKSPCA_VENV:-.venv}

find_python() {
    for candidate in python3 python; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
            echo "$candidate"
            return
        fi
    done
    echo "run.sh: Python 3.10 or newer is needed, and was not found." >&2
    exit 1
}

# Installs the package with an extra, once: the stamp is as old as the last install.
install() {
    extra=$1
    stamp="$venv/.installed-$extra"
    if [ ! -x "$venv/bin/python" ]; then
        python=$(find_python)
        echo "Setting up $venv (once) ..." >&2
        if ! "$python" -m venv "$venv"; then
            rm -rf "$venv"
            echo "run.sh: '$python -m venv' failed; on Debian or Ubuntu, install" \
                "the package python3-venv." >&2
            exit 1
        fi
    fi
    if [ ! -f "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
        echo "Installing blockspca ($extra) ..." >&2
        if [ "$extra" = base ]; then
            "$venv/bin/python" -m pip install --quiet --editable .
        else
            "$venv/bin/python" -m pip install --quiet --editable ".[$extra]"
        fi
        touch "$stamp"
    fi
}

# Golden numbers are those of one set of BLAS kernels, the one that most machines have:
# others round otherwise, and a search that hangs on an ulp takes another way.
if grep -q -w avx2 /proc/cpuinfo 2>/dev/null; then
    export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-Haswell}
fi

# Runs tests, as many at a time as there are cores.
run_tests() {
    "$venv/bin/python" -m pytest --numprocesses auto --maxprocesses 8 \
        --dist worksteal "$@"
}

case $task in
demo)
    install base
    shift $(($# > 0 ? 1 : 0))
    "$venv/bin/blockspca" demo "$@"
    ;;
test)
    install test
    shift
    "$venv/bin/ruff" check .
    "$venv/bin/ruff" format --check .
    if [ $# -gt 0 ]; then # a few tests were asked for
        "$venv/bin/mypy"
        "$venv/bin/python" -m pytest "$@"
    else
        # Beside the tests: each of these keeps one core busy and the others idle.
        { "$venv/bin/mypy" && "$venv/bin/python" -m mkdocs build --strict --quiet; } &
        beside=$!
        trap 'kill $beside 2>/dev/null || true' EXIT
        # A worker for each core: threads of BLAS would only wait for one another.
        (export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 && run_tests -m "not slow")
        wait $beside
    fi
    ;;
slow)
    install test
    run_tests -m slow
    ;;
docs)
    install docs
    "$venv/bin/python" -m mkdocs build --strict --quiet
    echo "Open build/site/index.html"
    ;;
build)
    install base
    "$venv/bin/python" -m pip install --quiet build
    rm -rf dist
    "$venv/bin/python" -m build --outdir dist . >/dev/null
    tried=$(mktemp -d)
    trap 'rm -rf "$tried"' EXIT
    "$venv/bin/python" -m venv "$tried/venv"
    "$tried/venv/bin/python" -m pip install --quiet dist/*.whl
    (cd "$tried" && venv/bin/blockspca info && venv/bin/blockspca demo >/dev/null)
    "$tried/venv/bin/python" -m pip install --quiet --no-deps --force-reinstall \
        dist/*.tar.gz
    (cd "$tried" && venv/bin/blockspca --version)
    ls dist
    ;;
*)
    echo "run.sh: unknown task '$task'; use 'demo', 'test', 'slow', 'docs' or 'build'." >&2
    exit 2
    ;;
esac
