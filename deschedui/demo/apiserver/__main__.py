"""`python -m deschedui.demo.apiserver`: the demo's API server, with its sample cluster and controllers."""

import argparse
import asyncio
import errno
import secrets
import sys
from pathlib import Path

from deschedui.demo.controller import Controller
from deschedui.demo.samplecluster import load

from .app import App
from .serving import Address, serve, write_private
from .store import Store


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m deschedui.demo.apiserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument(
        "--token", default="", help="bearer token of the only user; made up where none is given"
    )
    parser.add_argument(
        "--ready-file",
        type=Path,
        help="written once it listens: JSON with url, token, certificateAuthority, pid",
    )
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig here once it listens")
    parser.add_argument(
        "--empty", action="store_true", help="no sample cluster: only the namespaces of a new cluster"
    )
    return parser


def main(kind: type[App] = App) -> None:
    """Serve until Ctrl-C.

    Args:
        kind: of the application: tests have one that stalls.
    """
    options = arguments().parse_args()
    token = options.token or secrets.token_urlsafe(24)
    store = Store()
    load(store, empty=options.empty)
    controller = Controller(store, drama=not options.empty)

    def ready(address: Address) -> None:
        if options.kubeconfig:
            write_private(options.kubeconfig, address.kubeconfig())
        if options.ready_file:
            write_private(options.ready_file, address.as_json())
        print(f"The demo's API server listens on {address.url}", flush=True)

    app = kind(store, {token: "demo-admin"})
    try:
        asyncio.run(serve(app, port=options.port, token=token, ready=ready, background=controller.run))
    except KeyboardInterrupt:
        print("The demo's API server has ended")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit(f"port {options.port} on 127.0.0.1 is taken: choose another with --port")


if __name__ == "__main__":
    main()
