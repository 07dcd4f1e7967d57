"""`python -m tallystick`: the command line."""

from tallystick.cli.app import app


def main() -> None:
    """Run the command line; the installed command does this, too."""
    app(prog_name="tallystick")


if __name__ == "__main__":
    main()
