"""`python -m tallystick`: the command line."""

from tallystick.cli.app import app

if __name__ == "__main__":
    app(prog_name="tallystick")
