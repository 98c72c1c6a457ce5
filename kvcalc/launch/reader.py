"""A launch file -> `LaunchSettings`: shell scripts, command lines, vLLM and LMCache YAML, JSON."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvcalc.errors import KvcalcError, ProfileError, SettingsError
from kvcalc.launch.container import flags_of_container, memory_volumes, said_as
from kvcalc.launch.fields import Findings, read_environment, read_flags, read_keys
from kvcalc.launch.flags import DIALECTS, LMCACHE, Dialect
from kvcalc.launch.flags.dialect import known_names
from kvcalc.launch.settings import Field, LaunchSettings, Remark
from kvcalc.launch.shell import Line, Script, Token

_VERSION = re.compile(
    r"\b(vllm|sglang)(?:-[a-z]+)?(?:==|:|~=)v?(\d+\.\d+(?:\.\d+)*(?:\.?(?:post|rc|dev)\d*)?)", re.IGNORECASE
)
_CONTAINER = frozenset({"docker", "podman", "nerdctl"})
_OF_CONTAINER = {"--shm-size": "shm_size", "--ipc": "ipc", "--memory": "memory", "-m": "memory"}
"""Flags of `docker run` -> what they say."""
_LMCACHE_KEYS = ("chunk_size", "local_cpu", "max_local_cpu_size", "local_disk", "remote_url")
"""Keys by which a YAML file is known for LMCache's."""


def read_launch(path: str) -> LaunchSettings:
    """Read a launch file; nothing in it is run.

    Raises
    ------
    ProfileError
        If the file cannot be read.
    SettingsError
        If it holds no launch that kvcalc knows.
    """
    from kvcalc.documents import read_text

    return parse_launch(read_text(Path(path)), path, Path(path).parent)


def parse_launch(text: str, name: str, beside: Path | None = None) -> LaunchSettings:
    """Read the text of a launch; files that it names are looked for in the folder `beside`.

    >>> launch = parse_launch("vllm serve m -tp 4 --kv-offloading-size 64", "launch.sh")
    >>> launch.engine, launch.value("tp"), launch.field("host_size").bytes / 2**30
    ('vllm', 4, 64.0)
    """
    if name.endswith((".yaml", ".yml", ".json")):
        return _from_document(text, name)
    return _from_script(text, name, beside)


def _from_document(text: str, name: str) -> LaunchSettings:
    data, lines = _document(text, name)
    if any(key in data for key in _LMCACHE_KEYS):
        found = Findings(name, replace(LMCACHE, document=()))
        read_keys(found, data, lines)
        return _settings(found, DIALECTS["vllm"], None)
    vllm = DIALECTS["vllm"]
    if "kv_connector" in data:
        found = Findings(name, vllm)
        found.document(data, name, None)
        return _settings(found, vllm, None)
    scripts = list(_command_lists(data))
    if scripts:
        return _relocated(_from_script("\n".join(scripts), name, None), text)
    if not any("--" + key.replace("_", "-") in known_names(vllm.names) for key in data):
        raise SettingsError(
            f"{name}: no key of a vLLM or LMCache configuration, and no command of a container, is in it"
        )
    found = Findings(name, vllm)
    read_keys(found, data, lines, prefix="--")
    return _settings(found, vllm, _version(text, vllm))


def _document(text: str, name: str) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    from kvcalc.documents import parse_documents, parse_json

    found = [parse_json(text, name)] if name.endswith(".json") else parse_documents(text, name)
    found = [item for item in found if item is not None] or [None]
    if not all(isinstance(item, Mapping) for item in found):
        raise ProfileError(f"{name}: expected keys and values")
    # What several hold are manifests: of a pod among others.
    data = found[0] if len(found) == 1 else {"items": found}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*:", line)
        if match:
            lines.setdefault(match[1], number)
    return {str(key): value for key, value in data.items()}, lines


def _command_lists(data: Any, mounts: Mapping[str, str] | None = None) -> list[str]:  # noqa: ANN401 - parsed
    """Return the commands of the containers in a compose file or a Kubernetes manifest."""
    found: list[str] = []
    if isinstance(data, Mapping):
        mounts = {**(mounts or {}), **memory_volumes(data)}
        words: list[str] = [str(data["image"])] if isinstance(data.get("image"), str) else []
        for key in ("entrypoint", "command", "args"):
            value = data.get(key)
            words += [value] if isinstance(value, str) else [str(item) for item in value or ()]
        if len(words) > 1:
            run = " ".join(("docker run", *flags_of_container(data, mounts)))
            found.append("\n".join((*_variables(data), f"{run} {_shell_words(words)}")))
        for value in data.values():
            found += _command_lists(value, mounts)
    elif isinstance(data, list):
        for item in data:
            found += _command_lists(item, mounts)
    return found


def _relocated(launch: LaunchSettings, text: str) -> LaunchSettings:
    """Return the launch with each field at the line of the file that first names its flag."""
    lines = text.splitlines()

    def where(flag: str) -> str:
        found = next((number for number, line in enumerate(lines, start=1) if flag in line), None)
        return launch.file if found is None else f"{launch.file}:{found}"

    def placed(item: Field) -> Field:
        name, line = said_as(item.flag, item.value, text)
        return replace(item, where=f"{launch.file}:{line}" if line else where(item.flag), flag=name)

    fields = tuple(placed(item) for item in launch.fields)
    remarks = tuple(replace(item, where=where(item.message.split()[0])) for item in launch.remarks)
    return replace(launch, fields=fields, remarks=remarks)


def _variables(data: Mapping[str, Any]) -> list[str]:
    given = data.get("environment", data.get("env")) or {}
    if isinstance(given, Mapping):
        return [f"export {name}='{value}'" for name, value in given.items()]
    return [
        f"export {item}" if isinstance(item, str) else f"export {item.get('name')}='{item.get('value', '')}'"
        for item in given
    ]


def _shell_words(words: list[str]) -> str:
    """Quote the items of a list as words; a long text, as after `bash -c`, stays a command."""
    quoted = [word if "\n" in word or " --" in word else "'" + word + "'" for word in words]
    return " ".join(word.replace("\n", " ") for word in quoted)


def _from_script(text: str, name: str, beside: Path | None) -> LaunchSettings:
    script = Script()
    lines = script.lines(text)
    starts = [(at, *started) for at, line in enumerate(lines) if (started := _start(line)) is not None]
    if not starts:
        return _environment_only(text, name, script)
    first, dialect, tokens = starts[0]
    line = lines[first]
    found = Findings(name, dialect)
    _read_files(found, line, tokens, script, beside)
    read_environment(found, line.environment)
    if dialect.engine == "vllm" and tokens and not tokens[0].text.startswith("-"):
        found.fields.append(Field("model", tokens[0].text, tokens[0].text, found.where(tokens[0].line)))
    read_flags(found, tokens)
    container = _read_container(found, line)
    found.remarks += _broken(found, lines[first:])
    if line.unclosed is not None:
        found.remarks.append(
            Remark(
                "unclosed-quote",
                "error",
                f"the quote on line {line.unclosed} is never closed: the shell waits for its end and starts "
                "nothing",
                "a second quote where the value ends",
                found.where(line.unclosed),
            )
        )
    if len(starts) > 1:
        found.remarks.append(
            Remark(
                "several-launches",
                "warning",
                f"the file starts {len(starts)} engines and only the first was checked",
                "keep each launch in a file of its own",
                found.where(lines[starts[1][0]].tokens[0].line),
            )
        )
    own = " ".join(token.text for token in line.tokens)
    version = _version(own, dialect) or _version(text, dialect)
    return replace(_settings(found, dialect, version), container=container)


def _start(line: Line) -> tuple[Dialect, tuple[Token, ...]] | None:
    """Return the engine that a command starts, and the words after its name."""
    texts = [token.text.rsplit("/", 1)[-1] for token in line.tokens]
    for dialect in DIALECTS.values():
        for program in dialect.programs:
            for at in range(len(texts) - len(program) + 1):
                if tuple(texts[at : at + len(program)]) == program and _may_start(texts[:at]):
                    return dialect, line.tokens[at + len(program) :]
    if texts[0] not in _CONTAINER and texts[:2] != ["sudo", "docker"]:
        return None
    for dialect in DIALECTS.values():
        for at, token in enumerate(line.tokens):
            if any(image in token.text for image in dialect.images) and not token.text.startswith("-"):
                return dialect, line.tokens[at + 1 :]
    return None


def _may_start(before: list[str]) -> bool:
    """Whether a program after these words is run, and not installed, killed or echoed."""
    return not set(before) & {"echo", "pip", "pkill", "grep", "apt", "uv", "which", "printf", "kill", "cd"}


def _read_files(
    found: Findings, line: Line, tokens: tuple[Token, ...], script: Script, beside: Path | None
) -> None:
    """Read the configuration files that the launch names, where they can be seen."""
    named = Findings(found.file, found.dialect)
    read_environment(named, line.environment)
    read_flags(named, tokens)
    for kind, dialect, prefix in (("lmcache_file", LMCACHE, ""), ("config_file", found.dialect, "--")):
        target = next((item for item in named.fields if item.name == kind), None)
        if target is None:
            continue
        base = str(target.value).rsplit("/", 1)[-1]
        text = _content(str(target.value), base, script, beside)
        if text is None:
            found.remarks.append(
                Remark(
                    "not-read",
                    "info",
                    f"{target.flag} names {target.value}, which is not beside this file",
                    "check that file too",
                    target.where,
                )
            )
            continue
        data, lines = _document(text, base if base.endswith((".yaml", ".yml", ".json")) else base + ".yaml")
        inner = Findings(base, dialect)
        read_keys(inner, data, lines, prefix)
        found.fields += inner.fields
        found.remarks += inner.remarks


def _content(path: str, base: str, script: Script, beside: Path | None) -> str | None:
    from kvcalc.documents import read_text

    if base in script.documents:
        return script.documents[base][0]
    if beside is None:
        return None
    try:
        return read_text(beside / (base if Path(path).is_absolute() else path))
    except (KvcalcError, OSError):
        return None


def _read_container(found: Findings, line: Line) -> bool:
    """Read what docker gives the engine; return whether it runs in a container."""
    texts = [token.text for token in line.tokens]
    container = bool(set(texts[:2]) & _CONTAINER)
    for at, token in enumerate(line.tokens if container else ()):
        if not token.text.startswith("-") and any(image in token.text for image in found.dialect.images):
            break  # what follows is the engine's
        name, equals, value = token.text.partition("=")
        if name in _OF_CONTAINER:
            given = value if equals else (texts[at + 1] if at + 1 < len(texts) else "")
            found.fields.append(Field(_OF_CONTAINER[name], given, name, found.where(token.line)))
    return container


def _broken(found: Findings, lines: list[Line]) -> list[Remark]:
    """Report flags that the shell does not give to the engine, though they look as if it did."""
    remarks = []
    for line in lines[1:2]:
        token = line.tokens[0]
        if token.text.startswith("-"):
            at = lines[0].broken
            reason = (
                f"a blank after the backslash on line {at} ends the command"
                if at
                else "a comment or a missing backslash ends the command before it"
            )
            remarks.append(
                Remark(
                    "broken-line",
                    "error",
                    f"{token.text} and what follows is not part of the launch: {reason}",
                    "end each line but the last with a backslash and nothing after it",
                    found.where(token.line),
                )
            )
    return remarks


def _environment_only(text: str, name: str, script: Script) -> LaunchSettings:
    vllm = DIALECTS["vllm"]
    found = Findings(name, vllm)
    read_environment(found, script.environment())
    if not found.fields:
        known = ", ".join(" ".join(item.programs[0]) for item in DIALECTS.values())
        raise SettingsError(f"{name}: no launch found; known are {known} and the files of vLLM and LMCache")
    return _settings(found, vllm, _version(text, vllm))


def _version(text: str, dialect: Dialect) -> str | None:
    for match in _VERSION.finditer(text):
        if match[1].lower() == dialect.engine:
            return match[2]
    return None


def _settings(found: Findings, dialect: Dialect, version: str | None) -> LaunchSettings:
    return LaunchSettings(found.file, dialect.engine, version, tuple(found.fields), tuple(found.remarks))
