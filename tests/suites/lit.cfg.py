# SPDX-License-Identifier: Apache-2.0
"""lit's configuration for LLVM's tests of llvm-symbolizer, with our programs first in PATH (tests/suites/run)."""
import errno
import os

import lit.formats

config.name = "symbolizers"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".test", ".s", ".ll", ".c", ".yaml"]
config.excludes = ["Inputs", "pdb"]
config.test_source_root = os.environ["SUITE_TESTS"]
config.test_exec_root = os.environ["SUITE_OUTPUT"]
config.environment["PATH"] = os.pathsep.join(
    os.environ[name] for name in ("SUITE_PROGRAMS", "SUITE_TOOLS", "PATH"))
config.environment["CAIRN_CACHE_DIR"] = ""
config.available_features |= {
    "x86-registered-target", "x86_64-linux", "aarch64-registered-target", "powerpc-registered-target",
    "webassembly-registered-target", "system-linux", "can-execute", "curl",
}
config.substitutions += [
    ("%python", "python3"),
    ("%clang", "clang"),
] + [(f"%errc_{name}", f"'{os.strerror(number)}'") for number, name in errno.errorcode.items()]
