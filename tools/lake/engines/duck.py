"""DuckDB reads the archive as one table."""

import duckdb

import files

VIEW = """
CREATE OR REPLACE VIEW decisions AS
SELECT *, epoch_us(ts) AS micros, raw->>'$.input.method' AS method
  FROM read_parquet(getvariable('files'), hive_partitioning = true)
"""


class Engine:
    version = "DuckDB " + duckdb.__version__

    def __init__(self, work):
        self.db = duckdb.connect()
        self.db.execute("SET memory_limit = '3GB'")
        self.db.execute(f"SET temp_directory = '{work}/duckdb'")

    def open(self, archive):
        listed = ", ".join(f"'{path}'" for path in files.of(archive))
        self.db.execute(f"SET VARIABLE files = [{listed}]")
        self.db.execute(VIEW)

    def ask(self, _, sql):
        return self.db.execute(sql).fetchall()

    def example(self, language, text, _):
        if language == "sql" and text.startswith("-- DuckDB"):
            print(self.db.execute(text).fetchall())
            return True
        return False

    def close(self):
        self.db.close()
