"""`python -m tallystick`: the command line."""

from tallystick.cli.app import app
from tallystick.report.safe_text import program


def main() -> None:
    """Run the command line; the installed command does this, too."""
    app(prog_name=program())


if __name__ == "__main__":
    main()
