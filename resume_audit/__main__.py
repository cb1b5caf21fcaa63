"""`python -m resume_audit`."""

import sys

from resume_audit.cli import main

if __name__ == "__main__":
    sys.exit(main())
