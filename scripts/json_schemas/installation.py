"""Schemas of the commands about this machine and its packages, of --version, and of errors."""

from __future__ import annotations

from json_schemas.parts import (
    choice,
    document,
    flag,
    integer,
    items,
    mapping,
    maybe,
    number,
    record,
    text,
    texts,
)

__all__ = ["SCHEMAS"]

_BACKEND = record(
    backend=text("The backend."),
    state=choice("Whether it can be used.", "ready", "unavailable", "left out", "died", "no answer"),
    device=text("The device's label; - if there is none."),
    score=text("The number that orders devices, as text; - if there is no device."),
    about=text("The device's name, or why there is none."),
    details=mapping("Facts about the device.", {"type": "string"}),
)
_PLUGIN = {
    "name": text("The plugin's name."),
    "distribution": text("The package that brings it."),
    "version": text("The package's version."),
    "module": text("The module of the plugin."),
    "phase": text("ready, or the step at which it failed first."),
    "error": text("The first failure; empty if there is none."),
    "traceback": text("The tracebacks of all failures; empty if there are none."),
    "failures": items(
        "The failures.",
        record(
            phase=text("The step that failed: version, import, register or a hook."),
            error=text("What happened."),
            traceback=text("The traceback; empty if it was no exception."),
            remedies=texts("What to do: one of these."),
        ),
    ),
    "provides": mapping("The names that each hook provides.", texts("Names.")),
    "warnings": texts("What is suspicious, but no failure."),
}
_ENTRY_POINTS = mapping("The package's entry points in other groups.", mapping("Name to object.", {"type": "string"}))
_EXAMINED = record(
    **_PLUGIN,
    hooks=texts("The hooks that it implements."),
    api_version={
        "type": ["integer", "string", "array", "number", "boolean", "object", "null"],
        "description": "The LITE_API_VERSION that it states: a number, or the first and the last; null if none.",
    },
    seconds=mapping("The time of its import and of each hook.", {"type": "number", "minimum": 0}),
    requires=text("Its requirement of lite-core; empty if it states none."),
    other_entry_points=_ENTRY_POINTS,
)
_API_VERSION = integer("The version of the plugin API that lite-core has.", 1)

_KIND = record(
    kind=text("The kind of entries."),
    package=text("The package that makes them."),
    contents=text("What they are."),
    folder=text("Their folder."),
    entries=integer("The number of entries."),
    bytes=integer("Their size."),
    unsafe=text("Why the folder is not used; empty if it is."),
)
_FOLDER = text("The folder of the cache.")

_FILE = record(
    file=text("The .lite file."),
    written_by=text("The package that wrote it, with its version."),
    targets=text("What it is prepared for."),
    code_bytes=integer("The size of its compiled code."),
    digest=text("The digest of the code, in hexadecimal digits."),
    trusted=flag("True if the code is used on this machine."),
)

_TUNING = {
    **record(
        is_measured=flag("True if the numbers were measured on this machine."),
        source=text("When they were measured, or which defaults they are."),
        removed=flag("True if --clear removed stored numbers."),
        tile_rows=maybe(
            integer("The rows of a register tile of matrix products; 0 leaves it to the number of registers.")
        ),
        winograd_weight=maybe(number("The price of a weight of a Winograd convolution, in operations.")),
        bandwidth=maybe(number("What a core reads from main memory, in bytes per second.")),
        flops=maybe(number("The peak of a core, in floating-point operations per second.")),
        launch_seconds=maybe(number("The cost of a step.")),
        barrier_seconds=maybe(number("The further cost of a step that is divided among threads.")),
        threads=maybe(integer("The number of threads of use; 0 if it was not measured.")),
    ),
    "additionalProperties": True,
}

SCHEMAS = {
    "backends": document(
        "lite backends --json: the installed backends and their devices",
        record(
            api_version=_API_VERSION,
            backends=items("One row for each device, or one with the reason why there is none.", _BACKEND),
            failed_plugins=items("The plugins that failed.", record(**_PLUGIN)),
        ),
    ),
    "doctor": document(
        "lite doctor --json: the environment, all plugins, and their problems",
        record(
            environment=mapping("Versions, the machine, and environment variables of Lite.", {"type": "string"}),
            plugins=items("The installed plugins.", record(**_PLUGIN)),
            backends=items("One row for each device, or one with the reason why there is none.", _BACKEND),
            reports=mapping("What backends say about themselves, by line.", texts("Lines.")),
        ),
    ),
    "plugins": document(
        "lite plugins --json: the installed plugins",
        record(
            api_version=_API_VERSION,
            plugins=items("All plugins, or those of the package that was named.", _EXAMINED),
        ),
    ),
    "plugins-validate": document(
        "lite plugins validate --json: whether a package can be published",
        record(
            package=text("The package."),
            version=text("Its version."),
            kind=choice("What was checked.", "installed", "folder", "wheel"),
            errors=integer("The number of errors."),
            warnings=integer("The number of warnings."),
            findings=items(
                "The errors, then the warnings.",
                record(
                    level=choice("How bad it is.", "error", "warning"),
                    check=choice(
                        "The check that found it.",
                        *("metadata", "api", "load", "imports", "hooks", "names", "objects", "contents"),
                    ),
                    where=text("The file, plugin, hook or object that it is about."),
                    text=text("What is wrong."),
                    remedy=text("What to do."),
                    traceback=text("The traceback of an exception; empty if there is none."),
                ),
            ),
            plugins=items("The package's plugins.", _EXAMINED),
        ),
    ),
    "cache": document(
        "lite cache --json: the folders of the cache",
        record(
            folder=_FOLDER,
            limit_bytes=number("The largest size of the cache, in bytes; inf if there is no limit.", finite=False),
            kinds=items("What is stored.", _KIND),
        ),
    ),
    "cache-clear": document(
        "lite cache clear --json: what was removed from the cache",
        record(removed=items("What was there before.", _KIND)),
    ),
    "cache-fill": document(
        "lite cache fill --json: what models have added to the cache",
        record(
            folder=_FOLDER,
            models=items(
                "The models that were run.",
                record(
                    model=text("The model as it was given."),
                    new_entries=integer("The number of entries that it has added."),
                ),
            ),
        ),
    ),
    "trust": document(
        "lite trust --json: the files whose code is used",
        record("Of files.", files=items("The files, as they are now.", _FILE)),
        record(
            "With --list.",
            trusted=items(
                "What is trusted.",
                record(
                    digest=text("The digest of the code, in hexadecimal digits."),
                    name=text("The name of the file when it was trusted, or config.json."),
                ),
            ),
        ),
    ),
    "tune": document(
        "lite tune --json: the numbers that choose kernels",
        record(
            backends=mapping("The numbers of each backend; it may have others besides these.", _TUNING),
            unavailable=mapping("Backends that could not be measured, with the reasons.", {"type": "string"}),
        ),
    ),
    "new-plugin": document(
        "lite new-plugin --json: the package that was created",
        record(
            name=text("The name."),
            kinds=items("What it adds to Lite.", {"type": "string"}),
            folder=text("Its folder."),
            files=texts("Its files."),
            next=texts("The commands to type next."),
        ),
    ),
    "completion": document(
        "lite completion --json: the script that makes a shell complete",
        record(shell=choice("The shell.", "bash", "zsh", "fish"), script=text("The script.")),
    ),
    "version": document(
        "--version --json: the version of a program",
        record(program=text("The program."), version=text("Its version.")),
    ),
    "error": document(
        "What every command prints with --json if it fails",
        record(
            error=text("What is wrong, and what to do."),
            exit_code={
                "enum": [1, 2, 3, 4, 5, 6],
                "description": "1 failure, 2 usage, 3 unavailable, 4 nothing executed, 5 crash, 6 file.",
            },
            next=text("The command to type next; empty if there is none."),
        ),
    ),
}
