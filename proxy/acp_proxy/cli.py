"""Reads the command line; every command's work is done in `app`.

stdout belongs to the protocol, so whatever goes wrong is said on stderr. Exit status 2 is a usage
or configuration error, 1 an error of ours that nobody foresaw; all others come from `app`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from acp_proxy import __version__
from acp_proxy.errors import AcpProxyError, AgentStartError, ConfigError

if TYPE_CHECKING:
    from acp_proxy.config import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

# `app` and `config` are imported by the commands: --help and --version need neither.
_INTERRUPTED = 130


def _settings_options(command: _Command) -> _Command:
    """Options that every command takes; all but --config and --set are keys of the settings too."""
    for option in (
        click.option("--log-format", type=click.Choice(["text", "json"]), help="Form of the diagnostics."),
        click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"]),
            help="Least level of diagnostics to write on stderr.  [default: warning]",
        ),
        click.option(
            "--set", "sets", metavar="KEY=VALUE", multiple=True, help="Set one configuration key; repeatable."
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Read settings from TOML.",
        ),
    ):
        command = option(command)
    return command


def _relay_options(command: _Command) -> _Command:
    """Options of the commands that join a client and an agent."""
    for option in (
        click.option(
            "--findings",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Write findings, one JSON object a line.",
        ),
        click.option(
            "--record",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Write the traffic and findings to a trace.",
        ),
        click.option(
            "--lifecycle",
            type=click.Choice(["observe", "enforce", "strict"]),
            help="What happens to a lifecycle violation: note it, repair it, refuse it.  [default: observe]",
        ),
        click.option(
            "--bridge",
            type=click.Choice(["auto", "off"]),
            help="Translate between protocol versions.  [default: auto]",
        ),
    ):
        command = option(command)
    return command


def _settled(options: dict[str, Any]) -> Settings:
    """The settings out of a command's options, which click named for their keys."""
    from pathlib import Path

    from acp_proxy import config

    file, sets = options["config_file"], options["sets"]
    keys = {
        "bridge.mode": options.get("bridge"),
        "lifecycle.mode": options.get("lifecycle"),
        "record.file": options.get("record"),
        "findings.file": options.get("findings"),
        "log.level": options["log_level"],
        "log.format": options["log_format"],
    }
    trouble: dict[str, bool] = click.get_current_context().ensure_object(dict)
    trouble["traceback"] = options["log_level"] == "debug"
    settings = config.load(Path(file) if file is not None else None, sets, keys)
    trouble["traceback"] = settings.log.level == "debug"
    return settings


@click.group(
    "acp-proxy",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A transparent proxy for the Agent Client Protocol.",
)
@click.version_option(__version__, prog_name="acp-proxy")
def cli() -> None:
    """The group of all commands."""


# Whatever stands after the agent's name is the agent's, with or without `--` before it.
@cli.command(
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] --",
    help="Stand between a client on stdin and stdout and AGENT, started as a child process.",
    short_help="Stand between a client and AGENT.",
    epilog="`acp-proxy config schema` lists the keys of --config and --set."
    " Exit status: the agent's own when it ends by itself; 0 when the client closes first;"
    " 128+N when signal N killed the agent or ended the proxy; 2 for a usage or configuration error;"
    " 126 and 127 for an agent that is not executable or not found.",
)
@_relay_options
@_settings_options
@click.argument("agent", nargs=-1, required=True, type=click.UNPROCESSED, metavar="AGENT [ARG ...]")
def wrap(agent: tuple[str, ...], **options: Any) -> int:
    """Run `app.wrap`; its result is the exit status."""
    settings = _settled(options)
    from acp_proxy import app

    return app.wrap(settings, list(agent))


@cli.command(
    help="Stand inside a conductor: client on stdin and stdout, the agent behind proxy/successor on the same stream.",
    short_help="Stand inside a conductor.",
    epilog="`acp-proxy config schema` lists the keys of --config and --set.",
)
@_relay_options
@_settings_options
def component(**options: Any) -> int:
    """Run `app.component`; its result is the exit status."""
    settings = _settled(options)
    from acp_proxy import app

    return app.component(settings)


@cli.command(help="List the rules that findings and lifecycle.rules name.")
def rules() -> int:
    """Run `app.list_rules`; its result is the exit status."""
    from acp_proxy import app

    return app.list_rules()


@cli.command(
    help="Show a legacy agent under a v2 client in this terminal; needs no key and no network.",
    short_help="Show a legacy agent under a v2 client.",
)
@_settings_options
def demo(**options: Any) -> int:
    """Run `app.demo`; its result is the exit status."""
    settings = _settled(options)
    from acp_proxy import app

    return app.demo(settings)


@cli.command(
    help="List the plugins that are installed and which of them the settings enable.",
    short_help="List the plugins that are installed.",
)
@_settings_options
def plugins(**options: Any) -> int:
    """Run `app.list_plugins`; its result is the exit status."""
    settings = _settled(options)
    from acp_proxy import app

    return app.list_plugins(settings)


@cli.command(help="List the agent profiles, or print the one called NAME.")
@_settings_options
@click.argument("name", required=False)
def profiles(name: str | None, **options: Any) -> int:
    """Run `app.list_profiles`; its result is the exit status."""
    settings = _settled(options)
    from acp_proxy import app

    return app.list_profiles(settings, name)


@cli.command(
    help="Judge recorded traffic: recordings of --record, or captures with one"
    ' {"t", "dir": "c2a" or "a2c", "line"} a line. Each TRACE is a file, or - for stdin.',
    short_help="Judge recorded traffic.",
    epilog="Exit status: 0 clean, 1 findings, 2 unusable input.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as --findings writes them.")
@click.option("--states", is_flag=True, help="Tell the states of each session too, with time and cause.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    default="warning",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@_settings_options
@click.argument("traces", nargs=-1, required=True, metavar="TRACE ...")
def check(traces: tuple[str, ...], as_json: bool, states: bool, fail_on: str, **options: Any) -> int:
    """Run `app.check`; its result is the exit status."""
    settings = _settled(options)
    from acp_proxy import app

    return app.check(settings, list(traces), as_json=as_json, states=states, fail_on=fail_on)


@cli.group("config", help="Help with the settings file.")
def settings_file() -> None:
    """The group of commands about configuration."""


@settings_file.command("schema", help="Print the JSON Schema (draft 2020-12) of the settings file.")
def config_schema() -> None:
    """Print it in UTF-8, two spaces a level."""
    import json

    from acp_proxy.config_schema import schema

    click.echo(json.dumps(schema(), indent=2, ensure_ascii=False))


@settings_file.command("check", help="Tell every mistake in a settings file, with its line.")
@click.argument("file", metavar="FILE")
def config_check(file: str) -> int:
    """Run `app.check_config`; its result is the exit status."""
    from pathlib import Path

    from acp_proxy import app

    return app.check_config(Path(file))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status and raises nothing but SystemExit.

    `argv` is the command line without the program's name, by default the process's own.
    """
    trouble: dict[str, bool] = {}
    try:
        status = cli.main(argv, prog_name="acp-proxy", standalone_mode=False, obj=trouble)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except ConfigError as exc:
        return _failed(str(exc), 2)
    except AgentStartError as exc:
        return _failed(exc.reason, exc.exit_status)
    except AcpProxyError as exc:
        return _failed(str(exc), 1)
    except Exception as exc:
        if trouble.get("traceback"):
            import traceback

            click.echo(traceback.format_exc(), err=True, nl=False)
        return _failed(f"{type(exc).__name__}: {exc} (a defect; --log-level debug shows where)", 1)
    return status if isinstance(status, int) else 0


def _failed(text: str, status: int) -> int:
    """Say it on one line of stderr, stripped: names and values in it may come from outside."""
    from acp_proxy.diagnostics import printable

    click.echo(f"Error: {printable(text)}", err=True)
    return status
