"""Schema of the command that runs a model over a dataset: map."""

from __future__ import annotations

from json_schemas.parts import Schema, document, flag, integer, items, mapping, number, record, text, texts

__all__ = ["SCHEMAS"]

_FAILURE = record(
    part=text("The part: its file and rows."),
    message=text("Why it failed; names the rows."),
)

SCHEMAS: dict[str, Schema] = {
    "map": document(
        "`lite map --json`: the state of a run over a dataset",
        record(
            model=text("The model as it was typed."),
            input=text("The dataset as it was typed."),
            output=text("The folder of the results as it was typed."),
            complete=flag("True if every part is finished."),
            parts=integer("The number of parts of the dataset."),
            finished_parts=integer("The number of finished parts."),
            finished_before=integer("The number of parts that were finished before this run began."),
            rows=integer("The rows of the finished parts."),
            rows_before=integer("The rows of the parts that were finished before."),
            columns=mapping("The columns of the results, by name.", text("The type of the column, as Arrow calls it.")),
            batch=integer("The rows of each run of the model.", 1),
            workers=integer("The number of parts that this process did at once.", 1),
            devices=texts("The devices that ran the model."),
            seconds=number("The time of this run."),
            rows_per_second=number("The rows of this run in a second."),
            failures=items("The parts that failed in this run.", _FAILURE),
            notes=texts("Facts about earlier results, such as files that were changed."),
            next=text("The command to type next; empty if the run is complete."),
        ),
    )
}
