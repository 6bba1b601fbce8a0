"""The files of an archive that count: a manifest names them, and no later archive supersedes that manifest."""

import json
import pathlib

SUFFIX = ".manifest.json"


def of(root):
    root = pathlib.Path(root)
    manifests = {}
    for path in root.glob("decision_logs-*" + SUFFIX):
        manifests[path.name.removesuffix(SUFFIX)] = json.loads(path.read_text(encoding="utf-8"))
    superseded = {name for manifest in manifests.values() for name in manifest.get("supersedes", [])}
    return [str(root / file["name"]) for name in sorted(manifests.keys() - superseded) for file in manifests[name]["files"]]
