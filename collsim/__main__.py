"""`python -m collsim` and the command `collsim`."""

from collsim.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
