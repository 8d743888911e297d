#!/usr/bin/env python3
"""Writes the wheel of the package in python with a library: wheel.py LIBRARY VERSION FOLDER."""

import base64
import hashlib
import pathlib
import platform
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent / "python"
METADATA = """\
Metadata-Version: 2.1
Name: primus-fl
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""


def pep440(described):
    """Return the version of Python for one of git describe."""
    match = re.match(r"v?(\d+\.\d+\.\d+)(?:-rc\.(\d+))?(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$", described)
    if match is None:
        local = re.sub(r"[^a-zA-Z0-9]+", ".", described).strip(".")
        return "0.0.0+" + local if local else "0.0.0"
    version = match[1] + (f"rc{match[2]}" if match[2] else "")
    local = ".".join(part for part in (match[3] or "", match[4] or "", "dirty" if match[5] else "") if part)
    return version + ("+" + local if local else "")


def tag(library):
    """Return the tag of the oldest glibc that has all that a library needs."""
    minors = [int(m) for m in re.findall(rb"GLIBC_2\.(\d+)", library)]
    return f"py3-none-manylinux_2_{max(minors)}_{platform.machine()}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    library, described = pathlib.Path(sys.argv[1]).read_bytes(), sys.argv[2]
    version = pep440(described)
    info = f"primus_fl-{version}.dist-info"
    summary = re.search(r'^description = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    files = {}
    for path in sorted((ROOT / "primus_fl").rglob("*")):
        if path.suffix in (".py", ".typed"):
            files[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    text = files["primus_fl/_version.py"].decode()
    text = text.replace('__version__ = "0.0.0"', f'__version__ = "{version}"').replace('LIBRARY = ""', f'LIBRARY = "{described}"')
    files["primus_fl/_version.py"] = text.encode()
    files["primus_fl/lib/libprimus.so"] = library
    readme = (ROOT / "README.md").read_text()
    files[f"{info}/METADATA"] = METADATA.format(version=version, summary=summary, readme=readme).encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: primus-fl\nRoot-Is-Purelib: false\nTag: {tag(library)}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    folder = pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"primus_fl-{version}-{tag(library)}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(entry, content)
    print(out)


if __name__ == "__main__":
    main()
