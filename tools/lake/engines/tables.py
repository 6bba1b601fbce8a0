"""The page's tables for Trino and Athena: each statement is read in its dialect, and has the columns of the files."""

import sys

import sqlglot
from sqlglot import exp

DIALECTS = {"-- Trino": "trino", "-- Athena": "athena"}

# Names of DuckDB for types that the other engines do not tell apart. A JSON column of Parquet is text with a mark.
SAME = {"JSON": "TEXT", "VARCHAR": "TEXT", "INTEGER": "INT", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "TIMESTAMP(6)": "TIMESTAMP"}


def check(text, columns):
    """Compares a block of the page with the columns of the files, (name, type) in order. The last one is the day."""
    dialect = next((of for start, of in DIALECTS.items() if text.startswith(start)), None)
    if dialect is None:
        return False
    statements = sqlglot.parse(text, dialect=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    table = statements[0]
    if not isinstance(table, exp.Create) or table.args["kind"] != "TABLE":
        sys.exit(f"the statement for {dialect} creates no table")
    properties = {p.name for p in table.args["properties"].expressions if type(p) is exp.Property}
    declared = [(c.name, plain(c.kind.sql("duckdb"))) for c in table.this.expressions if isinstance(c, exp.ColumnDef)]
    want = [(name, plain(kind)) for name, kind in columns]
    if "projection.day.type" in properties:  # Athena computes the day, and keeps it apart
        want.pop()
    if declared != want:
        sys.exit(f"the columns for {dialect} are not those of the files: {sorted(set(declared) ^ set(want))}")
    return True


def plain(kind):
    return SAME.get(kind, kind)
