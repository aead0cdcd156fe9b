"""The longer texts of --help and the man page."""

from __future__ import annotations

SHORT_HELP = """\
usage: supervise [run] [OPTIONS] [--] COMMAND [ARG...]
       supervise SUBCOMMAND ...

Run COMMAND, and everything it starts, under one policy.

  -p, --policy NAME|FILE   policy to use; may be repeated, later ones add rules
      --allow-path PATH[:OPS]  allow one path for this run
      --mode MODE          enforce (default) or observe
      --audit FILE         record to FILE instead of the default log
      --timeout DURATION   end COMMAND after 30s, 5m, 1h (exit code 124)
      --fail-on-deny       exit 123 where COMMAND ended with 0 after denials
      --dry-run            print what would be enforced; run nothing
  -q, --quiet / -v, --verbose
      --version, -h (this text), --help (everything)

Subcommands: policy, audit, log, doctor, completion

Examples:
  supervise -- make test
  supervise -p read-only --allow-path ./out:write,create -- python3 build.py
"""

DESCRIPTION = """\
Run COMMAND, and everything it starts, under one policy. What the policy does
not allow is refused with its errno and told on stderr. No root, no daemon and
no change to COMMAND is needed. After -- nothing is an option of ours; without
it, the first word that is no option starts COMMAND."""

EXIT_CODES = (
    ("N", "COMMAND ended with exit code N"),
    ("128+N", "signal N ended COMMAND"),
    ("127", "COMMAND was not found"),
    ("126", "COMMAND was found but cannot be executed, or the policy denies it"),
    ("125", "supervise itself failed; bad options and bad policies included"),
    ("124", "--timeout ended COMMAND"),
    ("123", "--fail-on-deny: COMMAND ended with 0, but something was denied"),
    ("122", "a limit of the policy ended COMMAND (its limit `wall`: 124)"),
)
OTHER_EXIT_CODES = (
    ("0", "fine, or the answer is ALLOW"),
    ("1", "something was found, or the answer is DENY"),
    ("2", "bad options, or an error of our own"),
)
ENVIRONMENT = (
    ("SUPERVISE_POLICY", "policy to use where no --policy is given"),
    ("TMPDIR", "where the private folder of a run is made (/tmp without it)"),
    ("XDG_STATE_HOME", "default audit logs are kept below it (~/.local/state without it)"),
    ("NO_COLOR, FORCE_COLOR", "no colour, or colour even where stderr is no terminal"),
)
