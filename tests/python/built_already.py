#!/usr/bin/env python3
"""Stands in for cargo where maturin packs a program that is built already, `$KUBARIUM_PROGRAM`.

maturin takes from `$CARGO` what builds, and reads where the program is in what that says: here what cargo says of a
program at which there is nothing to do. All else of the wheel is as `make wheel` makes it.
"""

import json
import os
import subprocess
import sys

if "rustc" in sys.argv:
    root = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
    target = {
        "kind": ["bin"], "crate_types": ["bin"], "name": "kubarium", "src_path": f"{root}/src/main.rs",
        "edition": "2024", "doc": True, "doctest": False, "test": True,
    }
    profile = {"opt_level": "0", "debuginfo": 0, "debug_assertions": True, "overflow_checks": True, "test": False}
    program = os.environ["KUBARIUM_PROGRAM"]
    package = subprocess.check_output(["cargo", "pkgid", "--manifest-path", f"{root}/Cargo.toml"], text=True).strip()
    print(json.dumps({
        "reason": "compiler-artifact", "package_id": package, "fresh": True,
        "manifest_path": f"{root}/Cargo.toml", "target": target, "profile": profile, "features": [],
        "filenames": [program], "executable": program,
    }))
    print(json.dumps({"reason": "build-finished", "success": True}))
else:
    os.execvp("cargo", ["cargo", *sys.argv[1:]])
