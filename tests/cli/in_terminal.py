#!/usr/bin/env python3
"""Runs a command in a terminal of its own, as a person would see it.

    in_terminal.py COLUMNSxROWS WAIT_FOR DO COMMAND...

What the command writes goes to standard output. When the text WAIT_FOR has come, DO is done: `keys:TEXT`
presses keys, `signal:NUMBER` sends a signal, `size:COLUMNSxROWS` changes the size and then presses q
after the next picture, `nothing` waits for the end. The exit code is the command's, 70 when the terminal
is not left as it was found, and 71 when the command does not end in a minute.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


def set_size(fd, text):
    columns, rows = map(int, text.split("x"))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def take(terminal):
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(terminal, fd)


def act(fd, pid, what):
    kind, _, value = what.partition(":")
    if kind == "keys":
        os.write(fd, value.encode().decode("unicode_escape").encode())
    elif kind == "signal":
        os.kill(pid, int(value))
    elif kind == "size":
        set_size(fd, value)


def main():
    size, wait_for, what = sys.argv[1:4]
    control, terminal = pty.openpty()
    set_size(control, size)
    before = termios.tcgetattr(terminal)
    pid = os.fork()
    if pid == 0:
        os.close(control)
        take(terminal)
        os.execv(sys.argv[4], sys.argv[4:])
    seen = b""
    done = False
    resized_at = None
    until = time.time() + 60
    status = None
    while time.time() < until:
        ready, _, _ = select.select([control], [], [], 0.05)
        if ready:
            piece = os.read(control, 65536)
            seen += piece
            os.write(1, piece)
        if not done and wait_for.encode() in seen:
            done = True
            act(control, pid, what)
            resized_at = len(seen) if what.startswith("size:") else None
        if resized_at is not None and b"\x1b[J" in seen[resized_at:]:
            resized_at = None
            os.write(control, b"q")
        if not ready:
            ended, code = os.waitpid(pid, os.WNOHANG)
            if ended:
                status = os.WEXITSTATUS(code) if os.WIFEXITED(code) else 128 + os.WTERMSIG(code)
                break
    if status is None:
        os.kill(pid, 9)
        return 71
    if termios.tcgetattr(terminal) != before:
        return 70
    return status


sys.exit(main())
