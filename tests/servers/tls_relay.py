"""TLS before a server that speaks plain HTTP.

    tls_relay.py PORT

It writes `ca.pem` and `key.pem`, a certificate for 127.0.0.1 that vouches for itself, prints the port on which it takes
connections over TLS, which it passes on to PORT, and ends when its input does. It needs the openssl command.
"""
import socket
import ssl
import subprocess
import sys
import threading


def make_certificate():
    """Writes ca.pem and key.pem."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=store of a test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    command += ["-keyout", "key.pem", "-out", "ca.pem"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def copy(source, sink):
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # whoever has gone need not be told


def serve(port):
    """Takes connections over TLS and passes them on to a port; returns the port it listens on."""
    make_certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("ca.pem", "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_one(client):
        try:
            with context.wrap_socket(client, server_side=True) as outer:
                with socket.create_connection(("127.0.0.1", port)) as inner:
                    back = threading.Thread(target=copy, args=(inner, outer), daemon=True)
                    back.start()
                    copy(outer, inner)
                    back.join()
        except OSError:
            pass  # the certificate was refused, as a test wants it

    def serve_all():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve_one, args=(client,), daemon=True).start()

    threading.Thread(target=serve_all, daemon=True).start()
    return listener.getsockname()[1]


if __name__ == "__main__":
    print(serve(int(sys.argv[1])), flush=True)
    sys.stdin.read()
