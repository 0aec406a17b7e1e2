"""The command `dpgm`. stdout is the result, stderr is talk; heavy imports happen inside the commands.

Exit codes: 0 done, 1 the work failed or the answer is no, 2 the request was wrong.
"""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Sequence

import click

from dpgm.cli.common import print_err
from dpgm_core._util.blas import start_with_one_thread
from dpgm_core._util.version import __version__
from dpgm_core.errors import DpgmError, InferenceError, LearningFailed, PluginLoadError, TooLarge, did_you_mean

__all__ = ["cli", "main"]

# command -> (module under dpgm.cli, its one-line help); modules load when their command runs
_COMMANDS = {
    "init": ("init", "From public metadata to a domain and a spec file."),
    "fit": ("fit", "Count, charge, add noise, save the release and learn a model."),
    "plan": ("plan", "Show cost, sizes and expected errors; reads no data."),
    "release": ("release", "Make a noisy release only, to learn from later."),
    "learn": ("fit", "Learn a model from a saved release; costs no budget."),
    "query": ("query", "Compute marginals and conditionals of a model."),
    "analyse": ("analyse", "Estimate regressions, means and correlations from a model."),
    "sample": ("sample", "Draw synthetic records from a model."),
    "complete": ("complete", "Fill the missing cells of rows from a model."),
    "export": ("export", "Write a model for other programs, as BIF or UAI."),
    "report": ("report", "Write a page about a model, for a review board."),
    "compare": ("compare", "Compare models, releases and synthetic files."),
    "study": ("study", "Compare components on records drawn from a model."),
    "infer": ("infer", "Answer a task of the UAI competition."),
    "validate": ("ledger", "Compare a table with its domain, for its owner; shows values."),
    "ledger": ("ledger", "Create and show a budget ledger."),
    "plugins": ("plugins", "List every component, or the options of some."),
    "new": ("plugins", "Make a folder with a working plugin."),
    "check": ("plugins", "Run the conformance checks on a plugin."),
}

# commands that may charge a ledger
_CHARGING = {"fit", "release", "compare"}

# what commands were called before -> what they are called now; not in --help, and said where they are used
_FORMER = {"evaluate": "compare", "select": "release", "show": "plugins"}


class _Commands(click.Group):
    """Looks commands up in `_COMMANDS`, so that --help imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"dpgm.cli.{_COMMANDS[name][0]}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in _FORMER:
            print_err(f"dpgm: dpgm {name} is dpgm {_FORMER[name]} now")
            return super().resolve_command(ctx, [_FORMER[name], *args[1:]])
        if name not in _COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"there is no command {name!r}{did_you_mean(name, _COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in _COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpgm")
@click.option("-v", "--verbose", is_flag=True, help="Write more messages to stderr.")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
@click.pass_context
def cli(ctx: click.Context, verbose: bool, debug: bool) -> None:
    """Learn discrete graphical models from sensitive records under differential privacy."""
    ctx.obj = {"verbose": verbose, "debug": debug}


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: every failure is one line on stderr and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    debug = "--debug" in words
    start_with_one_thread()
    try:
        code = cli.main(args=words, prog_name="dpgm", standalone_mode=False)
        if isinstance(code, int) and code:  # of a command that did its work, and whose answer is no
            sys.exit(code)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        _fail("interrupted" + "; what was charged stays charged" * bool(_CHARGING.intersection(words)))
        sys.exit(1)
    except click.ClickException as error:
        hint = f" (try {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        if isinstance(error, click.NoSuchOption) and error.option_name in ("-v", "--verbose", "--debug"):
            hint = (
                f"; it goes before the command: dpgm {error.option_name} {error.ctx.info_name if error.ctx else 'fit'}"
            )
        _fail(f"{error.format_message()}{hint}")
        sys.exit(2)
    except DpgmError as error:
        if debug:
            _traceback()
        _fail(str(error))
        # What fails after the release was paid for is work that failed, whatever it says.
        failed = isinstance(error, (InferenceError, PluginLoadError, LearningFailed))
        sys.exit(1 if failed and not isinstance(error, TooLarge) else 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            _fail(f"cannot use {str(error.filename)!r:.200}: {error.strerror}; name another file")
            sys.exit(2)
        # Right of the noise by construction: the curator lets nothing foreign out of the counting.
        if debug:
            _traceback()
        _fail(f"internal fault, {type(error).__name__}: {error}; run with --debug for a traceback")
        sys.exit(1)


def _fail(message: str) -> None:
    print_err(f"dpgm: {' '.join(message.split())}")


def _traceback() -> None:
    import traceback

    for line in traceback.format_exc().rstrip("\n").split("\n"):
        print_err(line)
