# test_completion.sh - the completion scripts are valid, and bash's answers.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# complete_as WORDS...: what bash offers for the last word; it lands in $OUT, one a line.
complete_as() {
    # shellcheck disable=SC2016  # the inner shell expands
    run_any bash --norc -c '. ./stoker.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        _stoker; printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

# syntax SHELL ARGUMENTS...: the shell reads its script without running it.
syntax() {
    local shell=$1
    it "writes a script that $shell can read"
    run completion "$shell"
    expect_exit 0
    cp "$OUT" "stoker.$shell"
    expect_file "stoker.$shell" 'stoker'
    if ! command -v "$shell" >/dev/null 2>&1; then
        skip "$shell is not installed"
        return
    fi
    run_any "$@" "stoker.$shell"
    expect_exit 0
    expect_no_err '.'
}

syntax bash -n
syntax zsh -fn
syntax fish --no-execute

it "offers the verbs first"
complete_as stoker ''
for verb in sample train predict status top stop bench completion help; do
    expect_out "^$verb\$"
done
complete_as stoker tr
expect_out '^train$'
expect_no_out '^sample$'

it "offers the flags of the verb"
complete_as stoker train --bat
expect_out '^--batch$'
complete_as stoker sample --bat
expect_no_out 'batch'

it "offers the second word of a verb, and then its flags and their values"
complete_as stoker bench ''
expect_out '^loader$'
expect_no_out 'batch'
complete_as stoker bench loader --sh
expect_out '^--sheet$'
complete_as stoker bench loader --split ''
expect_out '^val$'
complete_as stoker bench nonsense --sh
expect_no_out 'sheet'
complete_as stoker train --sh
expect_no_out 'sheet'

it "offers the values of a flag that has a list of them"
complete_as stoker train --metric ''
expect_out '^acc1$'
expect_out '^qwk$'
complete_as stoker train --precision fp
expect_out '^fp32$'
expect_no_out '='

it "offers files where anything may stand"
touch picture.jpg
complete_as stoker predict pic
expect_out '^picture.jpg$'

it "refuses a shell that it does not know"
run completion tcsh
expect_exit 2
expect_err 'bash, zsh and fish'

finish
