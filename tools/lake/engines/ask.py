"""Asks one engine every question of some archives. Each answer is a file with a JSON array for each row.

    ask.py ENGINE QUESTIONS WORK PAGE ARCHIVE ANSWERS [ARCHIVE ANSWERS]...

ENGINE is a module of this folder. QUESTIONS is a folder of SQL, one file for each question. WORK is a folder for
temporary files. PAGE is docs/lake.md: its examples for the engine run with the first archive. The times go to the file
times.json of each folder ANSWERS.
"""

import importlib
import json
import pathlib
import re
import sys
import time

import files


def main(name, questions, work, page, *pairs):
    engine = importlib.import_module(name).Engine(pathlib.Path(work))
    try:
        for archive, answers in zip(pairs[::2], pairs[1::2]):
            ask(engine, pathlib.Path(questions), archive, pathlib.Path(answers))
        run_examples(engine, pathlib.Path(page).read_text(encoding="utf-8"), pairs[0])
    finally:
        engine.close()


def ask(engine, questions, archive, answers):
    answers.mkdir(parents=True, exist_ok=True)
    engine.open(archive)
    seconds = {}
    for question in sorted(questions.glob("*.sql")):
        start = time.monotonic()
        rows = engine.ask(question.stem, question.read_text(encoding="utf-8"))
        with open(answers / f"{question.stem}.jsonl", "w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(list(row), ensure_ascii=False, separators=(",", ":")) + "\n")
        seconds[question.stem] = round(time.monotonic() - start, 3)
    times = {"engine": engine.version, "seconds": seconds}
    (answers / "times.json").write_text(json.dumps(times), encoding="utf-8")


def run_examples(engine, page, archive):
    """Runs the page's list of files, then its examples for the engine."""
    names, ran = {}, 0
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        text = text.replace("/srv/docket-archive", archive)
        if language == "python" and text.startswith("import json, pathlib"):
            exec(text, names)
            if names["files"] != files.of(archive):
                sys.exit("the page lists other files than those that count")
        elif engine.example(language, text, names):
            ran += 1
    if "files" not in names or ran != engine.examples:
        sys.exit(f"the page has no list of files, or {ran} examples for {engine.version} in place of {engine.examples}")


if __name__ == "__main__":
    main(*sys.argv[1:])
