# verdicts.sh - helpers for tests of verdicts. Sourced after lib.sh.
# shellcheck shell=bash source=tests/cli/lib.sh

# verdict RUN KEY: prints the value of a key of the run's last verdict, which goes to the file last_verdict.
verdict() {
    grep '"event": "verdict"' "$1/events.jsonl" | tail -n 1 >last_verdict
    grep -oE -m 1 '"'"$2"'": "[^"]*"' last_verdict | head -n 1 | cut -d '"' -f 4
}

# expect_verdict NAME PATTERN: the last verdict of the run r has this name and a sentence that matches.
expect_verdict() {
    expect_exit 0
    local name
    name=$(json r/summary.json verdict)
    expect "the verdict is $name: $(verdict r text)" [ "$name" = "$1" ]
    expect "the summary has the name of the last event" [ "$name" = "$(verdict r name)" ]
    expect "the sentence has $2: $(verdict r text)" grep -qE "$2" <<<"$(verdict r text)"
}
