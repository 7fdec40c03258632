"""Fills a tmpfs of 3 MB through the service, inside a mount namespace of its own, and prints what happened."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from harness import Server, read_log


def main():
    folder = Path(sys.argv[1]) / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=False).returncode:
        sys.exit("cannot mount")
    M = "/v1/models/m"
    data = folder / "data"
    figures = {"acknowledged": 0, "full": None}
    with Server(data) as server:
        server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
        for i in range(2000):
            body = {
                "attributes": {f"a rather long name, number {i * 30 + j}": 1.0 for j in range(30)},
                "label": "x",
                "id": f"i{i}",
            }
            status, _ = server.call("POST", f"{M}/learn", body)
            if status != 200:
                figures["full"] = status
                break
            figures["acknowledged"] += 1
        figures["predict"] = server.call("POST", f"{M}/predict", {"attributes": {"a": 1.0}})[0]
        server.kill()
        copy = Path(sys.argv[1]) / "copy"
        shutil.copytree(data, copy)  # another reader of SQLite's needs room for its own files
        figures["recovered"] = len(read_log(copy)["m"])
        server.start()
        figures["again"] = server.call("GET", M)[1]["trials"]
        figures["stopped"] = server.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
