"""A driver whose manifest declares it a portability driver (is_portability_driver, as MoltenVK's does) is
listed and opened like any other. The loader hides such drivers from programs that do not ask for them.

The test declares the drivers that VK_ICD_FILENAMES names to be such drivers."""
import json
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

args = harness.parser().parse_args()
paths = [path for path in os.environ.get("VK_ICD_FILENAMES", "").split(":") if path]
if not paths:
    harness.skip("VK_ICD_FILENAMES names no driver")


def names(manifests):
    # VK_DRIVER_FILES takes precedence over VK_ICD_FILENAMES in newer loaders.
    files = ":".join(map(str, manifests))
    listed = json.loads(harness.run(args.ree_run, "devices", "--json",
                                    env={"VK_ICD_FILENAMES": files, "VK_DRIVER_FILES": files}))
    return [device["name"] for device in listed["devices"] if device["spec"].startswith("vulkan")]


usual = names(paths)
if not usual:
    harness.skip("no Vulkan device")
with tempfile.TemporaryDirectory() as folder:
    declared = []
    for i, path in enumerate(paths):
        manifest = json.loads(pathlib.Path(path).read_text())
        library = manifest["ICD"]["library_path"]
        if "/" in library:  # relative to the manifest
            manifest["ICD"]["library_path"] = str((pathlib.Path(path).resolve().parent / library).resolve())
        manifest["ICD"]["is_portability_driver"] = True
        declared.append(pathlib.Path(folder) / f"{i}.json")
        declared[-1].write_text(json.dumps(manifest))
    check(names(declared) == usual, lambda: f"{names(declared)}, not {usual}")
sys.exit(harness.finish())
