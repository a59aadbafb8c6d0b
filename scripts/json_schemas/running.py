"""Schemas of the commands that run a model: run, bench, demo, report."""

from __future__ import annotations

from json_schemas.parts import (
    Schema,
    choice,
    document,
    flag,
    integer,
    items,
    mapping,
    maybe,
    named,
    number,
    or_null,
    record,
    text,
    texts,
)

__all__ = ["SCHEMAS"]

_PARTITION = record(
    name=text("The partition, such as x86/0."),
    device=text("The device that ran it."),
    nodes=integer("The number of its nodes."),
    seconds=number("Its time in the last run."),
)
_KERNEL = record(
    kernel=text("The kernel, or the algorithm it uses."),
    device=text("The device that ran it."),
    partition=text("The partition that it belongs to."),
    op=text("The operators that it computes, joined by +."),
    nodes=texts("The names of their nodes."),
    seconds=number("Its time in the last run."),
    flops=number("Its floating-point operations; 0 if they are not known."),
    bytes=number("The bytes that it reads and writes at least; 0 if they are not known."),
    peak_share=or_null(number("Its arithmetic as a share of the device's peak, 0 to 1; null if not known.")),
)
_COPY = record(
    value=text("The value that was copied."),
    source=text("The memory space it came from."),
    target=text("The memory space it went to."),
    bytes=integer("Its size; 0 if nothing had to be moved."),
    seconds=number("The time of the copy."),
)
_OPERATOR = record(
    partition=text("The partition."),
    op=text("The operators, joined by +; unaccounted for the time between kernels."),
    kernels=integer("The number of kernels; 0 for unaccounted."),
    seconds=number("Their time together; that of unaccounted may be negative.", None),
    share=number("That time as a share of the partition's.", None),
)
_SUMMARY = record(
    type=text("Element type and shape, such as float32[1, 10]."),
    min=text("The smallest element, with six digits; - if there is none."),
    max=text("The largest element."),
    mean=text("The mean of the elements."),
)
_TAP = record(
    value=text("The name of the value."),
    node=text("The node that computes it."),
    op=text("The operator of that node."),
    kernel=text("The kernel that computed it."),
    device=text("The device that computed it."),
    type=text("Element type and shape."),
    min=or_null(number("The smallest finite element; null if there is none.", None)),
    max=or_null(number("The largest finite element; null if there is none.", None)),
    mean=or_null(number("The mean of the finite elements; null if there is none.", None)),
    nan=integer("The number of elements that are NaN."),
    inf=integer("The number of elements that are infinite."),
)
_DIFFERENCE = record(
    output=text("The output."),
    where=text("The run, with its session or thread."),
    elements=integer("The number of elements that differ."),
    largest=number("The largest difference; nan if only shapes, NaN or infinity differ.", finite=False),
)
_CONSISTENCY = record(
    runs=integer("The number of runs that were compared."),
    sessions=integer("The number of sessions."),
    threads=integer("The number of threads that ran them at once."),
    differences=items("What was not identical bit by bit; empty if everything was.", _DIFFERENCE),
)
_NOT_FINITE = record(
    "A result that is not finite.",
    node=text("The node."),
    op=text("Its operator."),
    origin=text("Its origin in the file that was read."),
    device=text("The device that ran it."),
    output=text("The name of the result."),
    nan=integer("The number of elements that are NaN."),
    infinite=integer("The number of elements that are infinite."),
    elements=integer("The number of all elements."),
    inputs=items(
        "The floating-point values that the node read.",
        record(
            name=text("The value."),
            least=number("Its smallest finite element.", None, finite=False),
            largest=number("Its largest finite element.", None, finite=False),
        ),
    ),
)
_FINITENESS = record(
    values=integer("The number of results that were looked at."),
    not_finite=integer("The number of results with NaN or infinity."),
    first=or_null({**named("not_finite"), "description": "The first of them; null if there is none."}),
)

_RUN = document(
    "lite run --json: the outputs, devices and times of a run",
    record(
        model=text("The model as it was given."),
        devices=texts("The devices that run nodes, in the order of preference."),
        selection_log=texts("Why each backend was used or not."),
        computes=texts("The element types that each partition computes in."),
        inputs=mapping("Each input's source: a file, or random numbers.", {"type": "string"}),
        outputs=mapping("Each output, summarised.", _SUMMARY),
        load_seconds=number("The time to load the model and to compile it for the shapes."),
        run_seconds=items("The time of each run that counts, in their order.", {"type": "number", "minimum": 0}),
        warmup_runs=integer("The number of runs before those that count."),
        partitions=items("The partitions of the last run, in their order.", _PARTITION),
        kernels=items("The kernels of the last run; empty if no backend measures them.", _KERNEL),
        copies=items("The copies between memory spaces in the last run.", _COPY),
        operators=items("The time of each operator in each partition; the rows of a partition add up.", _OPERATOR),
        unaccounted_seconds=number("The time of the run outside of partitions and copies.", None),
        saved=or_null(text("The file that the outputs were written to.")),
        taps=items("The values of --tap in the last run.", _TAP),
        consistency=or_null({"description": "The result of --verify.", **_CONSISTENCY}),
        finiteness=or_null({"description": "The result of --validate.", **_FINITENESS}),
    ),
    not_finite=_NOT_FINITE,
)

_OPTION = record(
    name=text("The option."),
    value=text("Its value in effect."),
    origin=text("Where the value comes from: command line, environment variable, file or default."),
)
_LATENCIES: dict[str, Schema] = {
    "latency_mean_ms": number("The mean time of a run, in milliseconds."),
    "latency_std_ms": number("The standard deviation of the times, in milliseconds."),
    "latency_min_ms": number("The shortest time, in milliseconds."),
    "latency_p50_ms": number("The median time, in milliseconds."),
    "latency_p90_ms": number("The 90th percentile of the times, in milliseconds."),
    "latency_p95_ms": number("The 95th percentile of the times, in milliseconds."),
    "latency_p99_ms": number("The 99th percentile of the times, in milliseconds."),
    "latency_max_ms": number("The longest time, in milliseconds."),
    "throughput_per_second": number("The number of runs per second."),
}
_TIMES = items("One list for each turn.", items("Milliseconds, in their order.", {"type": "number", "minimum": 0}))
_RESULT = record(
    name=text("The measured configuration: its backends, and what else tells it from the others."),
    devices=texts("The devices that ran nodes."),
    options=items("The options of the session.", _OPTION),
    load_ms=number("The time to load the model, in milliseconds."),
    compile_ms=number("The time to plan and compile, in milliseconds."),
    first_run_ms=number("The time of the first run, in milliseconds."),
    code_from=choice("Where the plan comes from: the .lite file, or made here.", "file", "here"),
    kernels=mapping(
        "The kernels of each backend.",
        record(
            found=integer("The number of kernels that were compiled before."),
            compiled=integer("The number of kernels that were compiled now."),
            compile_ms=number("The time of compiling them, in milliseconds."),
        ),
    ),
    runs=integer("The number of runs that count.", 1),
    **_LATENCIES,
    under_load=or_null(
        record(
            "The same with several threads that run the session at once.",
            concurrent=integer("The number of threads.", 2),
            runs=integer("The number of runs that count.", 1),
            **_LATENCIES,
        )
    ),
    rss_before_mib=or_null(number("The resident memory of the process before, in MiB; null if not known.")),
    peak_rss_mib=mapping(
        "The peak resident memory of the process in each phase, in MiB; null if not known.",
        {"type": ["number", "null"], "minimum": 0},
    ),
    nodes=mapping("The number of nodes on each device.", {"type": "integer", "minimum": 1}),
    refusals=items(
        "Nodes that a preferred device refused.",
        record(
            op=text("The operator."),
            device=text("The device that runs them."),
            refused_by=text("The device that refused."),
            reason=text("Its reason."),
            nodes=integer("The number of nodes.", 1),
        ),
    ),
    notes=texts("Notes of the session."),
    latencies_ms=maybe({**_TIMES, "description": "Of --save only: the time of each run, a list for each turn."}),
    latencies_under_load_ms=maybe({**_TIMES, "description": "Of --save only: the same under load."}),
)
_CHANGES = record(
    "The comparison with the measurement of --against.",
    file=text("The earlier measurement."),
    unlike=texts("What was different then, and may explain a change."),
    changes=items(
        "The figures that were measured in many runs.",
        record(
            name=text("The configuration."),
            figure=text("The figure, such as median latency."),
            before_ms=number("Then, in milliseconds."),
            after_ms=number("Now, in milliseconds."),
            verdict=choice("What the change is.", "faster", "slower", "no difference", "too few runs"),
            text=text("The change in words."),
            change_percent=or_null(number("The change; null if there were too few runs.", None)),
            change_low_percent=or_null(number("The lower end of its interval, which holds with 99 %.", None)),
            change_high_percent=or_null(number("The upper end of that interval.", None)),
        ),
    ),
    measured_once=items(
        "The figures that were measured once.",
        record(
            name=text("The configuration."),
            figure=choice("The figure.", "load", "compile", "first_run"),
            before_ms=number("Then, in milliseconds."),
            after_ms=number("Now, in milliseconds."),
        ),
    ),
)

_BENCH = document(
    "lite bench --json, and the file of --save: the run times of a model",
    record(
        model=text("The model as it was given."),
        model_sha256=text("The SHA-256 of the model's files, in hexadecimal digits."),
        inputs=mapping("Each input's source: a file, or random numbers.", {"type": "string"}),
        input_types=mapping("Each input's element type and shape.", {"type": "string"}),
        other_load=or_null(
            record(
                "What other processes did during the measurement; null if not known.",
                busy=number("The processors that they kept busy."),
                processors=integer("The number of processors.", 1),
            )
        ),
        environment=record(
            "The machine and the software.",
            processor=text("The processor."),
            cores_of_use=integer("The number of cores that Lite uses.", 1),
            system=text("The operating system."),
            python=text("The version of Python."),
            numpy=text("The version of NumPy."),
            packages=texts("Lite's packages with their versions."),
        ),
        options=items("The options of the measurement.", _OPTION),
        notes=texts("Notes about the measurement."),
        results=items("One result for each configuration.", _RESULT),
        agreement=record(
            "Whether the configurations compute the same.",
            reference=text("The configuration that the others are compared with."),
            allowed_share_of_range=number("The largest allowed difference, as a share of an output's range."),
            ok=flag("True if all agree."),
            largest_difference_share_of_range=mapping(
                "For each other configuration and output the largest difference, as a share of the output's range.",
                mapping("Output to difference.", number("The difference.", finite=False)),
            ),
            sentences=texts("The same in words."),
        ),
        against=or_null(_CHANGES),
    ),
)

_DEMO = document(
    "lite demo --json: the text in a picture",
    record(
        lines=items(
            "The lines of text, from top to bottom.",
            record(
                text=text("The text."),
                score=number("The mean confidence of its characters, 0 to 1."),
                box=items(
                    "The four corners of its box, clockwise from the top left, each [x, y] in pixels.",
                    items("x, y", {"type": "number"}),
                ),
            ),
        ),
        parts=items(
            "The three models.",
            record(
                part=choice("What the model does.", "detection", "orientation", "recognition"),
                model=text("The model."),
                nodes=integer("The number of its nodes."),
                backend=text("The devices that ran it."),
                seconds=number("The time of its runs."),
            ),
        ),
        load_seconds=number("The time to load the models."),
        output=text("The annotated picture that was written."),
    ),
)

_OUTCOMES = ("ran", "failed", "crashed", "hung")

_REPORT = document(
    "lite report --json: a report for an issue",
    record(
        report=text("The zip file that was written."),
        outcome=choice("What happened to the model.", *_OUTCOMES),
        summary=text("The same in a sentence."),
        command=text("The command that repeats it after unpacking; empty if the model could not be read."),
        replay=choice("How that command ended when it was tried; empty if there is none.", *_OUTCOMES, ""),
        node=texts("The names of the nodes of the kernel that failed."),
        node_command=text("The command that runs these nodes by themselves."),
        node_replay=choice("How that command ended when it was tried; empty if it was not.", *_OUTCOMES, ""),
        files=mapping("The files in the report, with what they contain.", {"type": "string"}),
        left_out=texts("What was left out for privacy or size."),
        not_scrubbed=mapping(
            "Files with private names that cannot be removed, with these names.",
            {"type": "array", "items": {"type": "string"}},
        ),
    ),
)

SCHEMAS = {"run": _RUN, "bench": _BENCH, "demo": _DEMO, "report": _REPORT}
