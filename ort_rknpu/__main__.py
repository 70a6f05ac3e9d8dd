"""``python -m ort_rknpu``: the command line."""

from ort_rknpu.cli import main

if __name__ == "__main__":
    main()
