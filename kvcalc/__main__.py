"""``kvcalc`` and ``python -m kvcalc``: answers `--version` before anything is imported."""

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from kvcalc import __version__

        sys.stdout.write(f"kvcalc {__version__}\n")
        sys.exit(0)
    from kvcalc.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
