# Finds a Python for the scripts of this folder. Sourced by tests after tests/cli/lib.sh.
# shellcheck shell=bash

# competitions_python PACKAGE...: sets $PYTHON to python3 where it has the packages already, otherwise to a new
# environment with them. Fails with the reason in $CANNOT.
competitions_python() {
    local names=$*
    names=${names/Pillow/PIL}
    PYTHON=python3
    ! "$PYTHON" -c "import ${names// /, }" >/dev/null 2>&1 || return 0
    python_with "$LIB_FOLDER/venv" "$@" || return 1
    PYTHON=$LIB_FOLDER/venv/bin/python
}
